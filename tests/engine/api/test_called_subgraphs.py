"""Values inside subgraphs that operators call, held against LiteRT's under experimental_preserve_all_tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from support.graphs import Graph, Op, build
from support.single_op import T

X = T("float32", (2, 3))
FLAG = T("bool", ())
I = T("int32", ())  # noqa: E741
ADD: Any = ("AddOptions", {})
EMPTY_MAP = b"\x00\x00\x01\x00\x00$\x01"  # a flexbuffer
#: x, x + x, -(x + x)
STEPS = Graph([X, X, X], (0,), (2,), [Op("ADD", (0, 0), (1,), ADD), Op("NEG", (1,), (2,))])


def composite() -> bytes:
    options = (
        "StableHLOCompositeOptions",
        {"name": "f", "decomposition_subgraph_index": 1, "composite_attributes": EMPTY_MAP},
    )
    return build(Graph([X, X], (0,), (1,), [Op("STABLEHLO_COMPOSITE", (0,), (1,), options)]), STEPS)


def branches() -> bytes:
    options = ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2})
    return build(Graph([X, X, FLAG], (0, 2), (1,), [Op("IF", (2, 0), (1,), options)]), STEPS, STEPS)


def loop() -> bytes:
    """Five rounds of y = -(y + y)."""
    options = ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    main = Graph([X, X, T("int32", (), value=0), I], (0,), (1,), [Op("WHILE", (0, 2), (1, 3), options)])
    cond = Graph([X, I, T("int32", (), value=5), FLAG], (0, 1), (3,), [Op("LESS", (1, 2), (3,), ("LessOptions", {}))])
    body = Graph(
        [X, X, X, I, T("int32", (), value=1), I],
        (0, 3),
        (2, 5),
        [Op("ADD", (0, 0), (1,), ADD), Op("NEG", (1,), (2,)), Op("ADD", (3, 4), (5,), ADD)],
    )
    return build(main, cond, body)


def pair(model: bytes) -> tuple[Any, Any]:
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    options = {"experimental_preserve_all_tensors": True}
    theirs = litert.Interpreter(
        model_content=model, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF, **options
    )
    both = tflq.Interpreter(model_content=model, **options), theirs
    for interpreter in both:
        interpreter.allocate_tensors()
    return both


@pytest.mark.parametrize(
    ("model", "extra", "entered"),
    [
        (composite(), [], {1: [0, 1, 2]}),
        (branches(), [True], {1: [0, 1, 2]}),
        (branches(), [False], {2: [0, 1, 2]}),
        (loop(), [], {1: [2, 3], 2: [1, 2, 4, 5]}),  # inputs of the last round have been overwritten in LiteRT's memory
    ],
    ids=["composite", "then", "else", "while"],
)
def test_values_are_litert_s(model: bytes, extra: list[bool], entered: dict[int, list[int]]) -> None:
    ours, theirs = pair(model)
    for number in range(3):
        for interpreter in (ours, theirs):
            details = interpreter.get_input_details()
            interpreter.set_tensor(details[0]["index"], np.arange(6, dtype=np.float32).reshape(2, 3) + number)
            for detail, value in zip(details[1:], extra, strict=True):
                interpreter.set_tensor(detail["index"], np.array(value))
            interpreter.invoke()
        for subgraph, tensors in entered.items():
            for tensor in tensors:
                got, expected = (i.get_tensor(tensor, subgraph) for i in (ours, theirs))
                assert np.asarray(got).tolist() == np.asarray(expected).tolist(), (subgraph, tensor)


def test_they_are_not_kept_without_being_asked_for() -> None:
    interpreter = tflq.Interpreter(model_content=composite())
    interpreter.allocate_tensors()
    interpreter.invoke()
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(1, 1)


def test_they_count_as_memory() -> None:
    shape = (1000, 1000)
    big = T("float32", shape)
    steps = Graph([big] * 3, (0,), (2,), STEPS.ops)
    options = (
        "StableHLOCompositeOptions",
        {"name": "f", "decomposition_subgraph_index": 1, "composite_attributes": EMPTY_MAP},
    )
    twice = [Op("STABLEHLO_COMPOSITE", (0,), (1,), options), Op("STABLEHLO_COMPOSITE", (1,), (2,), options)]
    model = build(Graph([big] * 3, (0,), (2,), twice), steps)
    for limit, fits in ((18_000_000, False), (40_000_000, True)):
        interpreter = tflq.Interpreter(model_content=model, memory_limit=limit, experimental_preserve_all_tensors=True)
        interpreter.allocate_tensors()
        if fits:
            interpreter.invoke()
        else:
            with pytest.raises(tflq.TflqError, match="memory of 20000000 bytes"):
                interpreter.invoke()
