"""Squares of codes under XNNPACK: by a table, and products where the table is one of several operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from support.each import each
from support.graphs import Graph, Op, build
from support.running import assert_same, run
from support.single_op import T, litert
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.fusions import fusions
from tflq.engine.profiles import by_name
from tflq.model.ir import view
from tflq.proof import Word, prove

Array = np.ndarray[Any, Any]
XNNPACK = by_name("litert-xnnpack")
SHAPE = (1, 256)


def every_code(kind: str) -> Array:
    return np.arange(256, dtype=np.uint8).view(kind).reshape(SHAPE)


def squaring_scale(rng: np.random.Generator, scale: float) -> float:
    """A scale whose quotient with the square of another is a short binary fraction, so that products are ties."""
    ratio = 2.0 ** rng.integers(3, 9) / (2 * rng.integers(0, 8) + 1)
    return float(np.float32(np.float32(scale) * np.float32(scale) * np.float32(ratio)))


def codes(kind: str, scale: float, rng: np.random.Generator) -> T:
    low = -128 if kind == "int8" else 0
    return T(kind, SHAPE, scale=[scale], zero_point=[int(rng.integers(low, low + 256))])


def square(kind: str, seed: int, function: int = 0) -> bytes:
    """MUL of a tensor by itself."""
    rng = np.random.default_rng([3, seed])
    scale = float(np.float32(10 ** rng.uniform(-3, 0.5)))
    tensors = [codes(kind, scale, rng), codes(kind, squaring_scale(rng, scale), rng)]
    return build(
        Graph(tensors, [0], [1], [Op("MUL", [0, 0], [1], ("MulOptions", {"fused_activation_function": function}))])
    )


def chained(kind: str, seed: int, outputs: list[int]) -> bytes:
    """LEAKY_RELU, then MUL of its result by itself."""
    rng = np.random.default_rng([4, seed])
    scale = float(np.float32(10 ** rng.uniform(-2, -0.5)))
    inner = scale * float(2 ** rng.uniform(-1, 1))
    tensors = [codes(kind, scale, rng), codes(kind, inner, rng), codes(kind, squaring_scale(rng, inner), rng)]
    ops = [
        Op("LEAKY_RELU", [0], [1], ("LeakyReluOptions", {"alpha": 0.5})),
        Op("MUL", [1, 1], [2], ("MulOptions", {"fused_activation_function": 0})),
    ]
    return build(Graph(tensors, [0], outputs, ops))


@each("seed", range(12))
@each("kind", ["int8", "uint8"])
def test_squares_are_the_runtimes(kind: str, seed: int) -> None:
    model, x = square(kind, seed, (0, 1, 3)[seed % 3]), every_code(kind)
    assert_same(run(model, [x], "litert-xnnpack"), litert(model, [x], "BUILTIN"), "square")


def test_squares_promise_no_more_than_was_compared() -> None:
    model = tflq.load(square("int8", 1))
    words = {name: make_plan(model, by_name(name)).steps[0].promise.word for name in ("litert-xnnpack", "litert-js")}
    assert words == {"litert-xnnpack": "exact", "litert-js": "close"}
    arm = [make_plan(tflq.load(square("int8", n)), by_name("litert-xnnpack-arm64")).steps[0] for n in range(12)]
    assert {step.promise.word for step in arm} == {"exact", "close"}  # fused or not: some tables are the same


def test_squares_are_not_products() -> None:
    model, x = [square("uint8", seed) for seed in range(12)], every_code("uint8")
    apart = [run(m, [x], "litert-xnnpack")[0] != run(m, [x], "litert-2.0-xnnpack")[0] for m in model]
    assert sum(found.sum() for found in apart) > 10


@each("seed", range(8))
@each("outputs", [[2], [2, 1]])
@each("kind", ["int8", "uint8"])
def test_a_chain_multiplies(kind: str, outputs: list[int], seed: int) -> None:
    model, x = chained(kind, seed, outputs), every_code(kind)
    assert_same(run(model, [x], "litert-xnnpack"), litert(model, [x], "BUILTIN"), "chain")
    graph = view(tflq.load(model))
    assert fusions(graph, XNNPACK).chains.keys() == ({1} if outputs == [2] else set())
    assert fusions(graph, XNNPACK).together.get(1, ()) == ((0,) if outputs == [2] else ())


def test_an_activation_begins_a_chain_and_another_operand_ends_it() -> None:
    x, y = T("int8", SHAPE, scale=[0.5], zero_point=[0]), T("int8", SHAPE, scale=[1.0], zero_point=[0])
    for function, expected in ((1, {1}), (0, set())):
        ops = [
            Op("ADD", [0, 1], [2], ("AddOptions", {"fused_activation_function": function})),
            Op("MUL", [2, 2], [3], ("MulOptions", {"fused_activation_function": 0})),
        ]
        graph = view(tflq.load(build(Graph([x, x, y, y], [0, 1], [3], ops))))
        assert fusions(graph, XNNPACK).chains.keys() == expected
        assert fusions(graph, by_name("litert-2.0-xnnpack")).chains.keys() == set()


def test_proofs_know_squares_and_leave_chains_open() -> None:
    model = next(m for seed in range(12) if not _equal(m := square("uint8", seed)))
    assert prove(model, ["litert-ref", "litert-xnnpack"]).operators[0].word == Word.DIFFERS
    chain = prove(chained("int8", 0, [2]), ["litert-ref", "litert-xnnpack"]).operators[1]
    assert chain.word == Word.UNDECIDED
    assert chain.methods == ("litert-xnnpack computes it in one go with operator 0",)


def _equal(model: bytes) -> bool:
    x = every_code("uint8")
    return bool((run(model, [x], "litert-xnnpack")[0] == run(model, [x], "litert-ref")[0]).all())


@pytest.mark.parametrize("activation", [3, 4])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_an_activation_that_xnnpack_lacks_ends_a_chain(kind: str, activation: int) -> None:
    """ADD of a constant with TANH or SIGN_BIT is left to the interpreter, so that the square behind it is one."""
    for seed in range(12):
        rng = np.random.default_rng([4, seed])
        scale = float(np.float32(10 ** rng.uniform(-2, -0.5)))
        inner = scale * float(2 ** rng.uniform(-1, 1))
        x = codes(kind, scale, rng)
        constant = T(kind, (1, 1), x.scale, x.zero_point, value=np.full((1, 1), 3, kind))
        tensors = [x, constant, codes(kind, inner, rng), codes(kind, squaring_scale(rng, inner), rng)]
        ops = [
            Op("ADD", [0, 1], [2], ("AddOptions", {"fused_activation_function": activation})),
            Op("MUL", [2, 2], [3], ("MulOptions", {"fused_activation_function": 0})),
        ]
        model, values = build(Graph(tensors, [0], [3], ops)), every_code(kind)
        assert_same(run(model, [values], "litert-xnnpack"), litert(model, [values], "BUILTIN"), "square")
