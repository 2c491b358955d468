"""Every public name explains itself by an example, and the example does what it says."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites

#: Names that are told without an example: errors are raised, not made, and the file's values are what `load` gives.
WITHOUT = {"Model", "TflqError", "__version__"}
#: Examples that take seconds, for they search or run a runtime.
SLOW = {"discriminate", "explain", "fit", "prove", "quantize", "record", "reduce", "verify"}
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in tflq.__all__ if name not in WITHOUT
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_does_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ("record", "verify", "quantize"):
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    (tmp_path / "golden").symlink_to(suites.ROOT / "golden")
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(getattr(tflq, name), name, globs={"tflq": tflq, "np": np})
    assert found.examples, f"{name} has no example"
    said: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=said.append)
    assert not outcome.failed, "".join(said)
