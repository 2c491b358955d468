"""The one rule of which tensors of a file are constants, as LiteRT 2.3 and tflite-micro read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import graphs
from support.single_op import Array, T
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import PROFILES
from tflq.errors import FormatError, ModelError, UnsupportedError
from tflq.model.flatbuf import write
from tflq.model.ir import Buffer, Model, Record, view
from tflq.model.ir.constants import strings_from, with_external_buffers
from tflq.model.surgery.cut import extract
from tflq.quantization.draft import ModelDraft
from tflq.quantization.weights.forms import compact

EMPTY = np.zeros(0, np.uint8)
FULL = np.zeros(8, np.uint8)


def relus(held: Array | None, number: int, size: int = 2) -> Model:
    """Two RELU whose result between them has buffer `number`, which holds those bytes."""
    ops = (graphs.Op("RELU", (0,), (1,)), graphs.Op("RELU", (1,), (2,)))
    model = load(graphs.build(graphs.Graph([T("float32", (size,))] * 3, (0,), (2,), ops)))
    (graph,) = model.subgraphs
    x, between, y = graph.tensors
    graph = replace(graph, tensors=(x, replace(between, buffer=number), y))
    return replace(model, subgraphs=(graph,), buffers=(*(Buffer() for _ in range(number)), Buffer(held)))


@pytest.mark.parametrize(
    ("number", "held", "size", "is_constant"),
    [
        (0, EMPTY, 2, False),
        (0, FULL, 2, False),
        (0, EMPTY, 0, False),
        (1, None, 2, False),
        (1, EMPTY, 2, False),
        (1, EMPTY, 0, True),
        (1, FULL, 2, True),
    ],
)
def test_a_constant_is_what_another_buffer_than_the_first_holds(
    number: int, held: Any, size: int, is_constant: bool
) -> None:
    graph = view(load(write(relus(held, number, size))))
    assert (graph.data(1) is not None) is (graph.constant(1) is not None) is is_constant


@pytest.mark.parametrize("held", [EMPTY, FULL], ids=["empty", "full"])
def test_the_first_buffer_never_becomes_a_constant(held: Array) -> None:
    model = relus(held, 0)
    assert [view(model).ops[i].index for i in extract(model, ["1"])[1]] == [1]
    part, _ = extract(model, ["1"])
    assert len(part.subgraphs[0].inputs) == 1
    assert ModelDraft(model).copied(0) == 0
    assert {t.buffer for t in compact(model).subgraphs[0].tensors} == {0}


def test_litert_refuses_an_empty_buffer_of_its_own_and_tflite_micro_takes_it() -> None:
    """LiteRT 1.0 to 2.3: required_bytes <= bytes was not true."""
    model = relus(EMPTY, 1)
    with pytest.raises(UnsupportedError, match="0 bytes"):
        make_plan(model, PROFILES["litert-ref"])
    make_plan(model, PROFILES["tflm"])
    make_plan(extract(model, ["0..1"])[0], PROFILES["litert-ref"])


def test_offsets_of_strings_that_wrap_are_refused() -> None:
    """Differences of these offsets wrap int32, so that strings of nearly the whole buffer would repeat."""
    offsets = [0, 2**31 - 1, -(2**31), -1] * 8 + [0]
    data = np.array([len(offsets) - 1, *offsets], np.int32).view(np.uint8)
    with pytest.raises(ModelError, match="offsets out of range"):
        strings_from(data)


@pytest.mark.parametrize(("second", "reason"), [({"group": 2}, "2 groups"), ({"packing": "int4"}, "packed")])
def test_external_buffers_of_other_files_are_not_read_from_this_one(second: dict[str, Any], reason: str) -> None:
    record = {"group": 1, "offset": 0, "length": 8, "packing": ""}
    records = (Record("ExternalBuffer", record | {"id": 1}), Record("ExternalBuffer", record | {"id": 2} | second))
    model = relus(None, 0)
    (graph,) = model.subgraphs
    x, between, y = graph.tensors
    tensors = (replace(x, external_buffer=1), replace(between, external_buffer=2), y)
    model = replace(model, subgraphs=(replace(graph, tensors=tensors),), external_buffers=records)
    with pytest.raises(FormatError, match=reason):
        with_external_buffers(model, bytes(8))
