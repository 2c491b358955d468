"""A view resolves names, operands, makers and readers; what does not exist has a typed error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.errors import ModelError
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
    with_graph,
)


def tensor(name: str, buffer: int = 0, **fields: bool) -> TensorSpec:
    return TensorSpec(name, TensorType.INT8, (2,), buffer, **fields)


#: x, weights -> ADD -> sum; sum, (absent), memory -> custom "Keep" -> result, a second time sum
GRAPH = Subgraph(
    tensors=(tensor("x"), tensor("weights", 1), tensor("sum"), tensor("memory", is_variable=True), tensor("result")),
    inputs=(0,),
    outputs=(4,),
    operators=(
        Operator(0, (0, 1), (2,), options=Record("AddOptions")),
        Operator(1, (2, -1, 3, 2), (4, -1, 2), options_2=Record("KeepOptions")),
    ),
)
MODEL = Model(
    3,
    (OperatorCode(0, "ADD", 2), OperatorCode(32, "CUSTOM", custom_code="Keep")),
    (GRAPH,),
    (Buffer(), Buffer(np.array([5, 6], np.uint8))),
)


def test_operators_have_names_versions_and_options() -> None:
    add, keep = view(MODEL).ops
    assert (add.name, add.builtin, add.version, keep.name, keep.builtin) == ("ADD", "ADD", 2, "Keep", "CUSTOM")
    assert add.options == Record("AddOptions")
    assert keep.options == Record("KeepOptions")


def test_operands_are_indices_or_tensors() -> None:
    keep = view(MODEL).op(1)
    assert keep.inputs == (2, -1, 3, 2)
    assert [None if spec is None else spec.name for spec in keep.input_specs] == ["sum", None, "memory", "sum"]
    assert [None if spec is None else spec.name for spec in keep.output_specs] == ["result", None, "sum"]
    assert keep.output().name == "result"
    assert keep.writes == (4, 2, 3)


def test_makers_and_readers() -> None:
    graph = view(MODEL)
    assert graph.maker(0) is None
    maker = graph.maker(2)
    assert maker is not None
    assert maker.index == 1
    assert graph.maker(-1) is None
    assert graph.maker(3) is None
    assert graph.last_writers == {2: 1, 3: 1, 4: 1}
    assert [op.index for op in graph.readers(2)] == [1]
    assert graph.readers(-1) == graph.readers(4) == ()
    assert graph.computed == (2, 4)
    assert graph.uses() == {0: 1, 1: 1, 2: 2, 3: 1}


def test_constants() -> None:
    graph = view(MODEL)
    value = graph.constant(1)
    assert value is not None
    assert value.tolist() == [5, 6]
    assert graph.data(0) is None
    assert graph.data(1) is MODEL.buffers[1].data
    assert graph.constant(0) is None
    assert graph.constant(-1) is None
    assert [tensor for tensor, _ in graph.constants()] == [1]


def test_zero_points() -> None:
    spec = replace(tensor("q"), quantization=Quantization(np.ones(1, np.float32), np.array([7])))
    graph = view(with_graph(MODEL, replace(GRAPH, tensors=(spec, *GRAPH.tensors[1:]))))
    assert (graph.zero_point(0), graph.zero_point(1)) == (7, 0)


def test_a_changed_model_has_a_view_of_its_own() -> None:
    changed = with_graph(MODEL, replace(GRAPH, operators=GRAPH.operators[:1]))
    assert len(view(changed).ops) == 1
    assert len(view(MODEL).ops) == 2


@pytest.mark.parametrize("index", [-1, 5])
def test_what_does_not_exist_is_refused(index: int) -> None:
    graph = view(with_graph(MODEL, replace(GRAPH, operators=(Operator(index, (0,), ()),))))
    for refused in (
        lambda: view(MODEL, index),
        lambda: graph.op(index),
        lambda: graph.tensor(index),
        lambda: graph.op(0).name,
        lambda: graph.op(0).output(),
    ):
        with pytest.raises(ModelError):
            refused()
