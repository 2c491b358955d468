"""Causes behind constants that XNNPACK never writes: they are computed, not read from the dump."""

from __future__ import annotations

from typing import Any

import numpy as np

import tflq
from support.graphs import Graph, Op, build
from support.running import run
from support.single_op import T
from tflq.comparison.evidence.dumps import dump_of
from tflq.diagnosis.localization import operator_alone
from tflq.engine.profiles import by_name

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(51)
GARBAGE = np.frombuffer(b"\x5a\x01\x00\x80" * 320, np.float32).reshape(8, 40)


def model() -> bytes:
    """FULLY_CONNECTED with float16 weights."""
    tensors = [
        T("float32", (3, 40)),
        T("float16", (8, 40), value=RNG.standard_normal((8, 40)).astype(np.float16)),
        T("float32", (8, 40)),
        T("float32", (3, 8)),
    ]
    options = ("FullyConnectedOptions", {"fused_activation_function": 0})
    ops = [Op("DEQUANTIZE", [1], [2], version=3), Op("FULLY_CONNECTED", [0, 2, -1], [3], options)]
    return build(Graph(tensors, [0], [3], ops))


def test_an_operator_alone_has_the_computed_constant() -> None:
    file = model()
    x = RNG.standard_normal((3, 40)).astype(np.float32)
    for profile in ("litert-xnnpack", "litert-1.4-xnnpack"):
        (want,) = run(file, [x], profile)
        of = tflq.load(file)
        part = operator_alone(of, dump_of(of, {0: x, 2: GARBAGE, 3: want}), 1, by_name(profile))
        assert [part.tensors[i] for i in part.inputs] == [0]
        assert np.array_equal(part.run(part.plan(by_name(profile)))[3], want)


def test_the_cause_is_found_beside_memory() -> None:
    file = model()
    x = RNG.standard_normal((3, 40)).astype(np.float32)
    (other,) = run(file, [x], "litert-opt")
    assert not np.array_equal(other, run(file, [x], "litert-xnnpack")[0])
    found = tflq.explain(file, {0: x, 2: GARBAGE, 3: other}, "litert-xnnpack")
    assert found.first is not None
    assert found.first.index == 1
    assert found.explanation is not None
    assert any("litert-opt" in (cause.name, *cause.also) for cause in found.explanation.exact)
