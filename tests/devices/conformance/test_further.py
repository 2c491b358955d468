"""Cases of operators that only `full` asks for: the real runtime decides, older cases stay, and outputs can differ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from support import suites
from tflq.devices.grids import FURTHER
from tflq.devices.suites.draft import Draft
from tflq.devices.suites.judge import CaseResult
from tflq.devices.suites.make import Suite, SuiteOrder, make, write_suite
from tflq.devices.suites.make import _case as case_of
from tflq.devices.suites.run import run_suite
from tflq.devices.suites.target import target_of
from tflq.engine.profiles import by_name
from tflq.typing import Array

FURTHER_DRAFTS = [draft for family in FURTHER for draft in family(0)]


def suite_of(drafts: Iterable[Draft], path: Path, profile: str) -> dict[str, Array]:
    """Write a suite of drafts; return its data."""
    data: dict[str, Array] = {}
    cases = [case_of(number, draft, by_name(profile), [], "smoke", data) for number, draft in enumerate(drafts)]
    write_suite(str(path), Suite(profile, "smoke", 0, "test", tuple(case for case in cases if case), (1, 1)), data)
    return data


@pytest.mark.parametrize("profile", ["litert-ref", "litert-opt", "litert-xnnpack"])
def test_the_real_runtime_gives_the_expected_bits(profile: str, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    some = FURTHER_DRAFTS[:: 5 if profile == "litert-ref" else 15]
    suite_of(some, tmp_path / "suite.npz", profile)
    verdicts = run_suite(str(tmp_path / "suite.npz"), target_of(f"runtime:{profile}"))
    other = [one for one in verdicts.cases if one.result is not CaseResult.PASSES]
    assert len(verdicts.cases) == len(some)
    assert {(one.case.op, one.result) for one in other} <= {
        ("ELU", CaseResult.REFUSED)
    }  # not in the reference resolver


def test_no_case_has_constant_outputs(tmp_path: Path) -> None:
    for number, draft in enumerate(FURTHER_DRAFTS):
        data: dict[str, Array] = {}
        case = case_of(number, draft, by_name("litert-ref"), [], "smoke", data)
        assert case is not None, draft
        outputs = np.concatenate([data[name].ravel().astype(np.int64) for sample in case.expected for name in sample])
        assert len(np.unique(outputs)) > 1, draft


def test_older_cases_keep_their_models_and_inputs() -> None:
    """A record of an older suite is comparable: its cases are those of today."""
    listed = json.loads((suites.ROOT / "golden/conformance/cases/5d13816344a43006.json").read_text())["cases"]
    known = {digest for kinds in listed.values() for words in kinds.values() for digest in words.split()}
    today = {
        case.digest[:12] for case in make(SuiteOrder(level="smoke", shard=(3, 80))).suite.cases if not case.is_refused
    }
    assert len(today) > 15
    assert 0.7 < len(today & known) / len(today) < 0.9  # the others are new operators
