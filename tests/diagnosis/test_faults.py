"""A fault in a hypothesis, or in a part of the explanation, is named and costs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.commands import tflq
from support.devices import dump, explained, names_of, one
from support.single_op import T, build
from tflq.diagnosis import findings, mistakes
from tflq.engine.kernels import rectifiers as relu6
from tflq.engine.numerics.codes import Clamp
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.explain import explain_report
from tflq.model.ir import Model

CODES = np.arange(-128, 128, dtype=np.int8)


def rescale() -> tuple[Model, Any]:
    """A rescale of codes, and its dump by a device that rounds towards minus infinity."""
    model = one("QUANTIZE", [T("int8", (256,), 0.3125, 0)], T("int8", (256,), 1.0, 0), ("QuantizeOptions", {}))
    return model, dump(model, [CODES], [np.floor(CODES * 0.3125).astype(np.int8)])


def failing(*_: Any) -> Iterator[Any]:
    raise TypeError("an unforeseen constant")
    yield


@pytest.mark.slow
def test_a_source_of_mistakes_that_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mistakes.LISTED, "taps", mistakes.Listed(failing))
    model, dumped = rescale()
    found = explained(model, dumped)
    assert found.explanation is not None
    assert "rounds towards minus infinity, in fixed point" in names_of(found)
    assert [(f.name, f.kind, f.text) for f in found.explanation.faults] == [
        ("mistakes in taps", "TypeError", "an unforeseen constant")
    ]
    said = [line.text for line in lines_of(explain_report(found))]
    assert "  1 hypothesis could not be run: mistakes in taps (TypeError: an unforeseen constant)" in said


@pytest.mark.slow
@pytest.mark.parametrize("part", ["explain_operator", "compare_elsewhere", "_work", "by_consequence"])
def test_a_part_that_raises_loses_neither_verdict_nor_exit_code(
    part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def raising(*_: Any, **__: Any) -> Any:
        raise IndexError("beyond the end")

    monkeypatch.setattr(findings, part, raising)
    _, dumped = rescale()
    path = tmp_path / "m.tflite"
    options = ("QuantizeOptions", {})
    path.write_bytes(build("QUANTIZE", [T("int8", (256,), 0.3125, 0)], [T("int8", (256,), 1.0, 0)], options))
    np.savez(tmp_path / "d.npz", **{str(t): value for t, value in dumped.tensors.items()})
    done = tflq("explain", path, "--dump", tmp_path / "d.npz", "--json")
    assert done.exit_code == 1, done.output
    document = json.loads(done.output)
    assert document["verdict"] == "differs"
    assert document["faults"]
    assert all("IndexError: beyond the end" in text for text in document["faults"])


def test_a_rectifier_of_microcontrollers_takes_limits_beyond_its_type() -> None:
    """Hypotheses such as "no clamp" hand the kernel limits that no code has."""
    made = relu6.eval_held(relu6.HeldData(Clamp(-(2**31), 2**31 - 1)), CODES)
    np.testing.assert_array_equal(made, CODES)
    np.testing.assert_array_equal(relu6.eval_held(relu6.HeldData(Clamp(-5, 55)), CODES), np.clip(CODES, -5, 55))


def test_the_float_rectifier_of_a_real_device_is_explained(shared: Path) -> None:
    folder = shared / "devices"
    arguments = [str(folder / "models/tvm_relu6_crash.tflite"), "--dump", str(folder / "tvm_relu6_crash.npz")]
    done = tflq("explain", *arguments, "--json")
    assert done.exit_code == 1, done.output
    document = json.loads(done.output)
    assert document["explanation"]["faults"] == document["faults"] == []
    names = [n for cause in document["explanation"]["exact"] for n in (cause["name"], *cause["also"])]
    assert "computed in float32, rounded half to even" in names
