"""docs/how-to/add-a-profile.md, executed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support import suites
from tflq.comparison.inspection.profile_pairs import compare_profiles
from tflq.engine.profiles import by_name

PAGE = (suites.ROOT / "docs" / "how-to" / "add-a-profile.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_block_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(suites.ROOT)
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    said = capsys.readouterr().out
    assert "SOFTMAX" in said
    assert "otter" in said
    differing: dict[str, set[str]] = {}
    for difference in compare_profiles(names["reference"], names["OTTER"]):
        differing.setdefault(difference.op, set()).update(p.name for p in difference.primitives)
    assert differing["SOFTMAX"] == {"kernel"}
    assert "requantize" in differing["CONV_2D"]
    assert "requantize_dense" in differing["FULLY_CONNECTED"]
    assert "LEAKY_RELU" in differing
    assert not {"RESHAPE", "MAX_POOL_2D", "LOG_SOFTMAX"} & set(differing)
    assert set(differing) <= set(said.split())


def test_the_file_states_what_the_python_does(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "otter.yaml"
    path.write_text(text, encoding="utf-8")
    profile, reference = by_name(str(path)), by_name("litert-ref")
    assert "SOFTMAX" not in profile.kernels
    assert profile.arithmetic.requantize is not reference.arithmetic.requantize
    assert profile.kernels["RELU6"] != reference.kernels["RELU6"]


def test_its_links_lead_somewhere() -> None:
    text = (suites.ROOT / "docs" / "runtimes.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (suites.ROOT / "docs" / target).exists(), target
