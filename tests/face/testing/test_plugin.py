"""The plugin, in pytest processes of their own: goldens that hold, that changed, that are missing, that are renewed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from support import suites
from tflq.comparison.goldens.stored import load_golden, save_golden
from tflq.engine.api.files import load
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite"
GOLDEN = suites.ROOT / "golden" / "singleop" / "recorded" / "tie_conv_i8_0.npz"

TESTS = """
import pytest

def test_whole(tflq_golden):
    assert tflq_golden({model!r}, {golden!r}, {profile!r}).differing == 0

@pytest.mark.tflq({model!r}, {golden!r}, {profile!r})
def test_each(tflq_operator):
    tflq_operator()
"""


def run(folder: Path, golden: Path | str, *words: str, profile: str = "litert-ref") -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(TESTS.format(model=str(MODEL), golden=str(golden), profile=profile))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_plugin(), *words, "test_it.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(suites.ROOT)},
        timeout=600,
        check=False,
    )


def _plugin() -> list[str]:
    """The plugin by name, where this installation does not announce it."""
    from importlib.metadata import entry_points

    announced = any(e.value == "tflq.face.testing" for e in entry_points(group="pytest11"))
    return [] if announced else ["-p", "tflq.face.testing"]


@pytest.mark.slow
def test_a_golden_that_holds_passes(tmp_path: Path) -> None:
    done = run(tmp_path, all_tensors(tmp_path))
    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("ci", ["", "true"])  # pytest's summary has whole messages where CI is set
def test_a_changed_bit_is_told_with_operator_element_and_cause(
    ci: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    if ci:
        monkeypatch.setenv("CI", ci)
    done = run(tmp_path, all_tensors(tmp_path), profile="litert-opt")
    assert "2 failed" in done.stdout, done.stdout
    failures, _, summary = done.stdout.partition("short test summary info")
    assert failures.count("operator 0 CONV_2D: differs under litert-opt") == 1
    assert failures.count("expected -5, got -4") == 1
    assert "expected -5" not in summary
    assert "another exception" not in done.stdout
    assert "operator 0 CONV_2D: differs under litert-opt" in done.stdout
    assert "expected" in done.stdout
    assert "cause: in operator 0 CONV_2D, the golden has the bits of litert-ref" in done.stdout


@pytest.mark.slow
def test_a_changed_model_fails_once_with_one_line(tmp_path: Path) -> None:
    golden = tmp_path / "golden.npz"
    save_golden([replace(load_golden(all_tensors(tmp_path)), model_sha256="0" * 64)], golden)
    done = run(tmp_path, golden)
    assert "1 failed, 1 skipped" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout
    lines = done.stdout.splitlines()
    failure = lines[lines.index(next(line for line in lines if line.startswith("____"))) + 1 :]
    assert "the model changed: no result that the golden holds; `pytest --tflq-update` records it" in failure[0]


@pytest.mark.slow
def test_a_missing_golden_says_what_to_do(tmp_path: Path) -> None:
    done = run(tmp_path, tmp_path / "nothing.npz")
    assert "pytest --tflq-update records it" in done.stdout, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["made.npz", "made.zip", "made/"])
def test_a_golden_is_renewed(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    made = f"{tmp_path / name}{'/' * name.endswith('/')}"
    for _ in range(2):  # recorded, then recorded again in its place
        done = run(tmp_path, made, "--tflq-update")
        assert "2 passed" in done.stdout, done.stdout
    done = run(tmp_path, made)
    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_outputs_alone_say_nothing_of_operators(tmp_path: Path) -> None:
    done = run(tmp_path, GOLDEN)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "holds outputs only" in done.stdout


def all_tensors(folder: Path) -> Path:
    """The recorded golden, whose outputs are the only operator's results."""
    found, (output,) = load_golden(GOLDEN), view(load(MODEL)).outputs
    observations = tuple(replace(o, tensors={output: o.outputs[0]}) for o in found.observations)
    place = folder / "golden.npz"
    replace(found, observations=observations, tensors=True).save(place)
    return place
