"""Operators that XNNPACK computes in one go: compared together where a dump lacks the tensor between them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import tflq
from support.graphs import Graph, Op, build
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import run
from support.single_op import T
from tflq.comparison.evidence.dumps import dump_of
from tflq.comparison.results import CompareMode, Located, Verdict
from tflq.comparison.verification.localization import Localizer
from tflq.comparison.verification.verifying import verify
from tflq.diagnosis.profile_fit import fit
from tflq.engine.profiles import by_name

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(31)

pytestmark = has_xnnpack_profile


def multiplied() -> tuple[bytes, list[Array]]:
    """DEQUANTIZE of a matrix, then BATCH_MATMUL."""
    tensors = [
        T("float32", (5, 40)),
        T("int8", (40, 7), scale=[0.02], zero_point=[0]),
        T("float32", (40, 7)),
        T("float32", (5, 7)),
    ]
    options = ("BatchMatMulOptions", {"adj_x": False, "adj_y": False})
    ops = [Op("DEQUANTIZE", [1], [2], version=2), Op("BATCH_MATMUL", [0, 2], [3], options)]
    x = RNG.standard_normal((5, 40)).astype(np.float32)
    return build(Graph(tensors, [0, 1], [3], ops)), [x, RNG.integers(-128, 128, (40, 7)).astype(np.int8)]


def summed() -> tuple[bytes, list[Array]]:
    """MUL of floats by themselves, then SUM."""
    axes = T("int32", (1,), value=np.array([1], np.int32))
    tensors = [T("float32", (5, 90)), T("float32", (5, 90)), axes, T("float32", (5,))]
    ops = [
        Op("MUL", [0, 0], [1], ("MulOptions", {"fused_activation_function": 0})),
        Op("SUM", [1, 2], [3], ("ReducerOptions", {"keep_dims": False})),
    ]
    return build(Graph(tensors, [0], [3], ops)), [RNG.standard_normal((5, 90)).astype(np.float32)]


MODELS = {"matrix": multiplied(), "sum": summed()}


def located(model: bytes, dump: dict[int, Array]) -> list[Located]:
    of = tflq.load(model)
    localizer = Localizer(of, by_name(XNNPACK or ""), CompareMode.ISOLATED)
    return [row[0] for row in localizer.operators([dump_of(of, dump)])]


@pytest.mark.parametrize("name", MODELS)
def test_a_plain_run_without_the_tensor_between(name: str) -> None:
    model, inputs = MODELS[name]
    golden = tflq.record(model, "litert-xnnpack", inputs=inputs)
    (seen,) = golden.observations
    dump = dict(zip([0, 1] if name == "matrix" else [0], inputs, strict=True))
    out = seen.outputs[0]
    assert out is not None
    assert not any(one.differs for one in located(model, {**dump, 3: out}))
    assert XNNPACK in fit(tflq.load(model), [dump_of(tflq.load(model), {**dump, 3: out})], XNNPACK or "").fitting


@pytest.mark.parametrize("name", MODELS)
def test_operators_one_by_one_are_the_runtimes_too(name: str) -> None:
    """Check a runtime that gives every tensor out and joins nothing."""
    model, inputs = MODELS[name]
    golden = tflq.record(model, "litert-xnnpack", inputs=inputs, all_tensors=True)
    between, last = (1, 3) if name == "sum" else (2, 3)
    (seen,) = golden.observations
    middle = seen.tensors[between]
    assert middle is not None
    apart = Graph(
        [T("float32", middle.shape), T("int32", (1,), value=np.array([1], np.int32)), T("float32", (5,))],
        [0],
        [2],
        [Op("SUM", [0, 1], [2], ("ReducerOptions", {"keep_dims": False}))],
    )
    alone = run(build(apart), [middle], XNNPACK or "")[0] if name == "sum" else seen.tensors[last]
    tensors = MappingProxyType({**seen.tensors, last: alone})
    changed = replace(golden, observations=(replace(seen, tensors=tensors, outputs=(alone,)),))
    assert verify(model, changed, mode="isolated").verdict == Verdict.SAME


@pytest.mark.parametrize("name", MODELS)
def test_a_fault_still_differs(name: str) -> None:
    model, inputs = MODELS[name]
    golden = tflq.record(model, "litert-xnnpack", inputs=inputs, all_tensors=True)
    (seen,) = golden.observations
    wrong = np.array(seen.tensors[3])
    wrong.flat[1] += 1
    tensors = MappingProxyType({**seen.tensors, 3: wrong})
    changed = replace(golden, observations=(replace(seen, tensors=tensors, outputs=(wrong,)),))
    report = verify(model, changed, mode="isolated")
    assert report.verdict == Verdict.DIFFERS
    assert report.first_divergent is not None
    assert report.first_divergent.index == 1
