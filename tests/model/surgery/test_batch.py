"""A shape that a RESHAPE computes from an open batch becomes constant, and LiteRT gives the same at every batch."""

from __future__ import annotations

import numpy as np
import pytest

from support.graphs import Graph, Op, build
from support.single_op import T
from tflq import load, save
from tflq.model.ir import Model, view
from tflq.model.surgery.tap import with_open_reshapes

INTS = {name: np.array([value], np.int32) for name, value in {"zero": 0, "one": 1, "eight": 8, "minus": -1}.items()}


def joined(join: str, size: int = 8, *, is_read_twice: bool = False) -> Model:
    """A model that reshapes [batch, 2, 4] to [batch, size], as exporters write it: the size is joined to the batch."""
    scalar = () if join == "PACK" else (1,)
    tensors = [
        T("float32", (1, 2, 4)),
        T("int32", (3,)),
        T("int32", (1,), value=INTS["zero"]),
        T("int32", (1,), value=INTS["one"]),
        T("int32", (1,), value=INTS["one"]),
        T("int32", scalar),
        T("int32", scalar, value=np.int32(size).reshape(scalar)),
        T("int32", (2,)),
        T("float32", (1, 8)),
        T("float32", (1, 8)),
    ]
    sliced = ("StridedSliceOptions", {"shrink_axis_mask": int(join == "PACK")})
    options = ("PackOptions", {"values_count": 2}) if join == "PACK" else ("ConcatenationOptions", {"axis": 0})
    ops = [
        Op("SHAPE", (0,), (1,), ("ShapeOptions", {"out_type": 2})),
        Op("STRIDED_SLICE", (1, 2, 3, 4), (5,), sliced),
        Op(join, (5, 6), (7,), options),
        Op("RESHAPE", (0, 7), (8,)),
        Op("ABS", (8,), (9,)),
    ]
    return load(build(Graph(tensors, (0,), (9, 7) if is_read_twice else (9,), ops)))


@pytest.mark.parametrize("size", [8, -1])
@pytest.mark.parametrize("join", ["PACK", "CONCATENATION"])
def test_the_batch_becomes_minus_one(join: str, size: int) -> None:
    runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    model = joined(join, size)
    changed = with_open_reshapes(model)
    graph = view(changed)
    assert [op.name for op in graph.ops] == ["RESHAPE", "ABS"]
    shape = graph.constant(graph.op(0).inputs[1])
    assert shape is not None
    assert shape.tolist() == [-1, 8]
    for batch in (1, 2, 5):
        given = np.random.default_rng(batch).normal(size=(batch, 2, 4)).astype(np.float32)
        results = []
        for data in (save(model), save(changed)):
            interpreter = runtime.Interpreter(model_content=data)
            index = interpreter.get_input_details()[0]["index"]
            interpreter.resize_tensor_input(index, given.shape)
            interpreter.allocate_tensors()
            interpreter.set_tensor(index, given)
            interpreter.invoke()
            results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        np.testing.assert_array_equal(*results)
        assert results[0].shape == (batch, 8)


def test_a_shape_that_something_else_reads_stays() -> None:
    model = joined("PACK", is_read_twice=True)
    assert with_open_reshapes(model) is model


def test_a_size_of_zero_stays() -> None:
    model = joined("PACK", 0)
    assert with_open_reshapes(model) is model
