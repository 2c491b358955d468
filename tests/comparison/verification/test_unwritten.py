"""Tensors that XNNPACK never writes: constants behind DEQUANTIZE are neither compared, nor read, nor recorded."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import tflq
from support.graphs import Graph, Op, build
from support.processors import has_xnnpack_profile
from support.single_op import T
from support.sweeping import few
from tflq.comparison.evidence.dumps import load_dumps
from tflq.comparison.goldens.golden import Golden
from tflq.comparison.results import Status, Verdict
from tflq.comparison.verification.verifying import verify
from tflq.diagnosis.profile_fit import fit
from tflq.engine.interpreter.fusions import unpack_tensors
from tflq.engine.profiles import by_name
from tflq.face.report.render import text as layout
from tflq.face.report.verbs.golden import record_report
from tflq.face.report.verbs.verify import coverage_texts, junit, verify_document
from tflq.model.ir import view
from tflq.verbs.drift import diff_goldens

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)
NO_FUNCTION = {"fused_activation_function": 0}
DENSE = ("FullyConnectedOptions", NO_FUNCTION)
ADD = ("AddOptions", NO_FUNCTION)
X = T("float32", (2, 8))


def weights(kind: str, *shape: int) -> T:
    """A constant in one of the forms that files keep float weights in."""
    real = RNG.standard_normal(shape)
    if kind == "float16":
        return T("float16", shape, value=real.astype(np.float16))
    codes = RNG.integers(-127, 128, shape, dtype=np.int8)
    scales = [0.02] if kind == "int8" else [float(s) for s in np.linspace(0.01, 0.03, shape[0])]
    return T("int8", shape, scale=scales, zero_point=[0] * len(scales), value=codes)


def dense(kind: str) -> bytes:
    """FULLY_CONNECTED with weights of one kind."""
    tensors = [X, weights(kind, 4, 8), T("float32", (4, 8)), T("float32", (2, 4))]
    ops = [
        Op("DEQUANTIZE", [1], [2], version=3 if kind == "float16" else 2),
        Op("FULLY_CONNECTED", [0, 2, -1], [3], DENSE),
    ]
    return build(Graph(tensors, [0], [3], ops))


def shared() -> bytes:
    """A float16 constant that two operators read, both of which XNNPACK takes."""
    tensors = [X, weights("float16", 1, 8), T("float32", (1, 8)), T("float32", (2, 8)), T("float32", (2, 8))]
    ops = [
        Op("DEQUANTIZE", [1], [2], version=3),
        Op("ADD", [0, 2], [3], ADD),
        Op("MUL", [3, 2], [4], ("MulOptions", NO_FUNCTION)),
    ]
    return build(Graph(tensors, [0], [4], ops))


def left(name: str = "POW") -> bytes:
    """A float16 constant of an ADD and of an operator that XNNPACK does not take: it is written."""
    tensors = [X, weights("float16", 1, 8), T("float32", (1, 8)), T("float32", (2, 8)), T("float32", (2, 8))]
    ops = [Op("DEQUANTIZE", [1], [2], version=3), Op("ADD", [0, 2], [3], ADD), Op(name, [3, 2], [4])]
    return build(Graph(tensors, [0], [4], ops))


def gathered() -> bytes:
    """Float16 weights of a dense layer that an operator reads, too, which XNNPACK does not take: they are written."""
    rows = T("int32", (2,), value=np.array([1, 0], np.int32))
    tensors = [X, weights("float16", 4, 8), T("float32", (4, 8)), T("float32", (2, 4)), rows, T("float32", (2, 8))]
    ops = [
        Op("DEQUANTIZE", [1], [2], version=3),
        Op("FULLY_CONNECTED", [0, 2, -1], [3], DENSE),
        Op("GATHER", [2, 4], [5], ("GatherOptions", {"axis": 0})),
    ]
    return build(Graph(tensors, [0], [3, 5], ops))


def reshaped() -> bytes:
    """A float16 constant that is reshaped and transposed before it is read."""
    shape, axes = (T("int32", (n,), value=np.array(v, np.int32)) for n, v in ((2, (4, 2)), (2, (1, 0))))
    made = [T("float32", s) for s in ((1, 8), (4, 2), (2, 4), (2, 4))]
    tensors = [T("float32", (2, 4)), weights("float16", 1, 8), shape, axes, *made]
    ops = [
        Op("DEQUANTIZE", [1], [4], version=3),
        Op("RESHAPE", [4, 2], [5], ("ReshapeOptions", {"new_shape": [4, 2]})),
        Op("TRANSPOSE", [5, 3], [6]),
        Op("ADD", [0, 6], [7], ADD),
    ]
    return build(Graph(tensors, [0], [7], ops))


def given_out(kind: str) -> bytes:
    """A constant behind DEQUANTIZE that is read and an output of the model."""
    tensors = [X, weights(kind, 1, 8), T("float32", (1, 8)), T("float32", (2, 8))]
    version = 3 if kind == "float16" else 2
    return build(
        Graph(tensors, [0], [2, 3], [Op("DEQUANTIZE", [1], [2], version=version), Op("ADD", [0, 2], [3], ADD)])
    )


@has_xnnpack_profile
@pytest.mark.parametrize(
    ("model", "count"),
    [
        (dense("float16"), 1),
        (dense("int8"), 1),
        (dense("channels"), 1),
        (shared(), 1),
        (reshaped(), 1),
        (left(), 0),
        (gathered(), 0),
        (given_out("float16"), 1),
        (given_out("int8"), 1),
    ],
)
@pytest.mark.parametrize("mode", few(["isolated", "cumulative"], "cumulative"))
def test_what_the_runtime_does_not_write_is_not_compared(model: bytes, count: int, mode: str) -> None:
    report = verify(model, "litert-xnnpack", mode=mode)
    is_an_output = any(t.unwritten for t in report.outputs)
    assert report.verdict == (Verdict.INCOMPLETE if is_an_output else Verdict.SAME)
    coverage = report.coverage
    assert len(coverage.unwritten) == count
    assert coverage.missing == (("output 0 (the runtime never writes it)",) if is_an_output else ())
    if mode == "isolated":
        assert coverage.operators == (len(report.operators) - count, len(report.operators))
    assert [o.op for o in report.operators if o.status == Status.NOT_WRITTEN] == ["DEQUANTIZE"] * count
    line = next(coverage_texts(report))
    assert ("1 tensor not written by the runtime" in line) == bool(count)
    assert verify_document(report)["coverage"]["not_written"] == ["tensor 2 of operator 0 DEQUANTIZE"][:count] or count


@has_xnnpack_profile
def test_other_resolvers_write_everything() -> None:
    assert verify(dense("float16"), "litert-opt").coverage.unwritten == ()


@has_xnnpack_profile
@pytest.mark.parametrize("name", ["g.npz", "g.zip"])
def test_a_golden_has_no_values_of_what_is_not_written(tmp_path: Path, name: str) -> None:
    model = dense("float16")
    golden = tflq.record(model, "litert-xnnpack", all_tensors=True, samples=2, output=tmp_path / name)
    assert golden.unwritten == ((None, 2),)
    assert all(one.tensors.get(2) is None for one in golden.observations)
    report = verify(model, tmp_path / name)
    assert (report.verdict, len(report.coverage.unwritten)) == (Verdict.SAME, 1)
    assert junit(report).get("skipped") == "1"
    assert "all tensors except 1 that the runtime never writes" in layout.text_of(
        layout.lines_of(record_report(golden, "m", "g"))
    )


def with_garbage(model: bytes, against: str = "litert-xnnpack") -> Golden:
    """A golden that was recorded without the test, and holds memory in place of a constant."""
    golden = tflq.record(model, against, all_tensors=True, samples=2)
    garbage = np.frombuffer(b"\x5a\x01\x00\x80" * 32, np.float32).reshape(4, 8)
    seen = (replace(o, tensors=MappingProxyType({**o.tensors, 2: garbage})) for o in golden.observations)
    return replace(golden, observations=tuple(seen), unwritten=None)


@has_xnnpack_profile
@pytest.mark.parametrize("kind", few(["float16", "int8", "channels"], "int8"))
def test_memory_in_an_old_golden_is_not_compared(kind: str, tmp_path: Path) -> None:
    model = dense(kind)
    golden = with_garbage(model)
    report = verify(model, golden)
    assert (report.verdict, len(report.coverage.unwritten)) == (Verdict.SAME, 1)
    assert verify(model, with_garbage(model, "litert-opt")).verdict == Verdict.DIFFERS  # there it is a fault
    golden.save(tmp_path / "g.npz")
    dumps = load_dumps(tflq.load(model), tmp_path / "g.npz")
    found = fit(tflq.load(model), dumps, "litert-xnnpack")
    assert "litert-xnnpack" in found.fitting
    assert "litert-ref" not in found.fitting


@pytest.mark.parametrize(
    ("model", "profile", "expected"),
    [
        (dense("float16"), "litert-xnnpack", {2}),
        (dense("channels"), "litert-1.4-xnnpack", {2}),
        (dense("float16"), "litert-opt", set()),
        (left(), "litert-xnnpack", set()),
        (left("GATHER_ND"), "litert-xnnpack", set()),
        (given_out("int8"), "tflite-2.12-xnnpack", {2}),
    ],
)
def test_structure(model: bytes, profile: str, expected: set[int]) -> None:
    assert unpack_tensors(view(tflq.load(model)), by_name(profile)) == expected


@has_xnnpack_profile
def test_an_explanation_knows_what_a_golden_names(tmp_path: Path) -> None:
    model = dense("float16")
    tflq.record(model, "litert-xnnpack", all_tensors=True, output=tmp_path / "g.npz")
    (dump,) = load_dumps(tflq.load(model), tmp_path / "g.npz")
    assert dump.unwritten == {2}
    assert "litert-xnnpack" in fit(tflq.load(model), [dump]).fitting
    assert tflq.explain(model, tmp_path / "g.npz", "litert-xnnpack").verdict == Verdict.SAME


@pytest.mark.parametrize("kind", ["float16", "int8", "channels"])
def test_an_older_runtime_is_tested_alike(kind: str) -> None:
    python = os.environ.get("TFLQ_TFLITE_2_14_PYTHON", "")
    if not python:
        pytest.skip("TFLQ_TFLITE_2_14_PYTHON names no Python that has tflite_runtime")
    report = verify(dense(kind), "tflite-runtime-xnnpack", python=python)
    assert report.coverage.unwritten == ("tensor 2 of operator 0 DEQUANTIZE",)
    assert not [one for one in report.operators if one.op == "DEQUANTIZE" and one.status == Status.DIFFERS]


@has_xnnpack_profile
def test_recordings_are_the_same_where_neither_holds_what_is_never_written(tmp_path: Path) -> None:
    model = dense("float16")
    for name, against in (("a", "litert-xnnpack"), ("b", "litert-xnnpack"), ("c", "litert-opt")):
        tflq.record(model, against, all_tensors=True, output=tmp_path / f"{name}.npz")
    same = diff_goldens(model, tmp_path / "a.npz", tmp_path / "b.npz")
    assert same.verdict == Verdict.SAME
    other = diff_goldens(model, tmp_path / "a.npz", tmp_path / "c.npz")
    assert [o.index for o in other.changed] == [1]  # its inputs are equal: one of them is a constant
