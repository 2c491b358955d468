"""The picture of a target: failing operators against types, the others folded, and every case in one cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tflq.devices.suites.run import SuiteOrder, make_suite
from tflq.face.report.blocks import Fold, TableBlock, plain
from tflq.face.report.render import html
from tflq.face.report.verbs.conform import conform_report, picture
from tflq.verbs.conform import conform


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "suite.npz"
    make_suite(str(path), SuiteOrder(every=900))
    return path


@pytest.mark.parametrize("target", ["profile:tflm", "profile:litert-ref"])
def test_every_case_is_in_one_cell_and_only_failures_are_open(suite: Path, target: str) -> None:
    verdicts = conform(suite, target)
    folds = [block for block in picture(verdicts).blocks if isinstance(block, Fold)]
    failing = {judged.case.op for judged in verdicts.failing}
    opened = [fold for fold in folds if fold.opened]
    assert len(opened) == bool(failing)
    for fold in opened:
        (table,) = (block for block in fold.blocks if isinstance(block, TableBlock))
        assert {plain(row[0]) for row in table.rows} == failing
        counts = [re.findall(r"\d+", plain(cell)) for row in table.rows for cell in row[1:] if plain(cell)]
        assert sum(int(found[0]) for found in counts if len(found) == 2) == len(verdicts.failing)
    named = " ".join(plain(cell) for fold in folds for b in fold.blocks for cell in _cells(b))
    assert all(judged.case.op in named for judged in verdicts.cases)
    page = html.page_of(conform_report(verdicts, str(suite)))
    assert page.index("Operators by types") < page.index("every type and level")


def _cells(block: object) -> list[object]:
    return [row[0] for row in block.rows] if isinstance(block, TableBlock) else [block.text]  # type: ignore[attr-defined]
