"""Indices lead somewhere and shapes can be those of arrays, whoever reads the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from tflq.engine.api.files import load, subject
from tflq.errors import LimitError, ModelError
from tflq.model.flatbuf import write
from tflq.model.ir import Model, SignatureDef
from tflq.model.ir.graph import check_structure

MODEL = load(suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite")
GRAPH = MODEL.subgraphs[0]


def with_graph(**changes: Any) -> Model:
    return replace(MODEL, subgraphs=(replace(GRAPH, **changes),))


def with_tensor(**changes: Any) -> Model:
    return with_graph(tensors=(replace(GRAPH.tensors[0], **changes), *GRAPH.tensors[1:]))


def with_zero_point(zero_point: int) -> Model:
    quantization = GRAPH.tensors[0].quantization
    assert quantization is not None
    return with_tensor(quantization=replace(quantization, zero_point=np.array([zero_point], np.int64)))


def with_operator(**changes: Any) -> Model:
    return with_graph(operators=(replace(GRAPH.operators[0], **changes),))


def with_signature(inputs: int, subgraph: int = 0) -> Model:
    return replace(MODEL, signature_defs=(SignatureDef("s", (("x", inputs),), (("y", 3),), subgraph),))


BROKEN = {
    "no subgraph": replace(MODEL, subgraphs=()),
    "input": with_graph(inputs=(99,)),
    "absent input": with_graph(inputs=(-1,)),
    "output": with_graph(outputs=(4,)),
    "operand": with_operator(inputs=(0, 1, 4)),
    "below": with_operator(inputs=(0, 1, -2)),
    "result": with_operator(outputs=(4,)),
    "intermediate": with_operator(intermediates=(7,)),
    "code": with_operator(opcode_index=1),
    "no codes": replace(MODEL, operator_codes=()),
    "buffer": with_tensor(buffer=1000),
    "no buffers": replace(MODEL, buffers=()),
    "dimension": with_tensor(shape=(1, -8, 8, 8)),
    "dimensions": with_tensor(shape=(1,) * 65),
    "no elements of too many": with_tensor(shape=(2**31 - 1, 2**31 - 1, 2**31 - 1, 0)),
    "too many elements": with_tensor(shape=(2**31 - 1, 2**31 - 1, 4)),
    "zero point above": with_zero_point(2**31),
    "zero point below": with_zero_point(-(2**31) - 1),
    "signature": with_signature(4),
    "signature's subgraph": with_signature(0, 1),
    "second subgraph": replace(MODEL, subgraphs=(GRAPH, replace(GRAPH, inputs=(4,)))),
}


@each("name", BROKEN)
def test_what_leads_nowhere_is_refused_by_everyone(name: str) -> None:
    model = BROKEN[name]
    for use in (check_structure, lambda m: tflq.Interpreter(model_content=m), lambda m: subject(write(m))):
        with pytest.raises((ModelError, LimitError)):
            use(model)


def test_what_leads_somewhere_is_accepted() -> None:
    for model in (
        MODEL,
        with_zero_point(2**31 - 1),
        with_signature(0),
        with_operator(inputs=(0, 1, -1)),
        with_operator(intermediates=(3, -1)),
    ):
        check_structure(model)
