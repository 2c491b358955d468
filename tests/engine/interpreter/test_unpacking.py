"""Tests for the constants that XNNPACK unpacks, as its rules on operators see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.graphs import Graph, Op, build
from support.single_op import Array, T
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.fusions import readers_left, unpack_tensors
from tflq.engine.profiles import by_name
from tflq.errors import UnsupportedError
from tflq.model.flatbuf import read
from tflq.model.ir import view

WINDOW = {"padding": 1, "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
KINDS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[str, dict[str, Any]]]] = {
    "FULLY_CONNECTED": ((1, 16), (8, 16), (1, 8), ("FullyConnectedOptions", {})),
    "CONV_2D": ((1, 5, 5, 2), (8, 3, 3, 2), (1, 3, 3, 8), ("Conv2DOptions", WINDOW)),
    "DEPTHWISE_CONV_2D": (
        (1, 5, 5, 8),
        (1, 3, 3, 8),
        (1, 3, 3, 8),
        ("DepthwiseConv2DOptions", {**WINDOW, "depth_multiplier": 1}),
    ),
}


def halves(op: str, *, bias: str, read_twice: bool = False) -> bytes:
    """A contraction with a float16 filter, and a bias of float16 or float32, which MUL may read as well."""
    rng = np.random.default_rng(5)
    x, w, y, options = KINDS[op]
    kernel, sums = rng.normal(size=w).astype(np.float16), rng.normal(size=8).astype(np.float16)
    tensors = [T("float32", x), T("float16", w, value=kernel), T("float32", w), T("float32", y)]
    ops = [Op("DEQUANTIZE", [1], [2])]
    if bias == "float32":
        tensors.append(T("float32", (8,), value=sums.astype(np.float32)))
    else:
        tensors += [T("float16", (8,), value=sums), T("float32", (8,))]
        ops.append(Op("DEQUANTIZE", [4], [5]))
    ops.append(Op(op, [0, 2, len(tensors) - 1], [3], options))
    outputs = [3]
    if read_twice:
        tensors.append(T("float32", y))
        ops.append(Op("MUL", [3, len(tensors) - 2], [len(tensors) - 1], ("MulOptions", {})))
        outputs.append(len(tensors) - 1)
    return build(Graph(tensors, [0], outputs, ops))


def first_output(model: bytes, profile: str) -> Array:
    interpreter = Interpreter(model_content=model, profile=profile)
    interpreter.allocate_tensors()
    detail = interpreter.get_input_details()[0]
    value = np.random.default_rng(7).normal(size=detail["shape"]).astype(np.float32)
    interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def written(model: bytes, profile: str) -> bool:
    """True if a run writes the unpacked filter, because the interpreter runs its reader."""
    return 2 not in unpack_tensors(view(read(model)), by_name(profile))


@pytest.mark.parametrize("op", KINDS)
@pytest.mark.parametrize(
    ("bias", "read_twice", "is_left"),
    [("float16", False, False), ("float32", False, True), ("float16", True, True)],
    ids=["both float16", "float32 bias", "bias read by MUL, too"],
)
def test_litert_2_1_leaves_filters_and_biases_of_two_widths(
    op: str, bias: str, read_twice: bool, is_left: bool
) -> None:
    """LiteRT 2.1.0, 2.1.5 and 2.1.6 gave these results; LiteRT 2.2 and 2.3 take all of these operators."""
    model = halves(op, bias=bias, read_twice=read_twice)
    old, new = (first_output(model, f"litert-{release}-xnnpack") for release in ("2.1", "2.2"))
    builtin = first_output(model, "litert-2.1-opt")
    assert not np.array_equal(new, builtin)
    assert np.array_equal(old, builtin if is_left else new)
    assert written(model, "litert-2.1-xnnpack") is is_left
    assert not written(model, "litert-2.2-xnnpack")


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_litert_1_4_leaves_them_alike(op: str) -> None:
    model = halves(op, bias="float32")
    assert written(model, "litert-1.4-xnnpack")
    assert not written(model, "litert-1.0-xnnpack")


def test_readers_left_are_those_of_two_widths() -> None:
    graph = view(read(halves("CONV_2D", bias="float16", read_twice=True)))
    assert readers_left(graph, by_name("litert-2.1-xnnpack")) == {2}
    assert not readers_left(graph, by_name("litert-2.2-xnnpack"))
    assert not readers_left(graph, by_name("litert-ref"))


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_an_output_that_nothing_reads_cannot_be_set_up(kind: str) -> None:
    """LiteRT 1.0 to 2.3: failed to setup XNNPACK runtime; from 2.2 on, an int8 output is just not written."""
    scale = 0.5 if kind == "int8" else None
    tensors = [T(kind, (2,), scale, value=np.ones(2, kind)), T("float32", (2,)), T("float32", (2,))]
    ops = [Op("DEQUANTIZE", [0], [1], version=3), Op("RELU", [2], [2 + 1])]
    model = read(build(Graph([*tensors, T("float32", (2,))], [2], [3, 1], ops)))
    plan = make_plan(model, by_name("litert-opt"))
    assert plan.promises[1].word == "exact"
    with pytest.raises(UnsupportedError, match="no operator reads"):
        make_plan(model, by_name("litert-2.1-xnnpack"))
    if kind == "int8":
        assert "never writes" in make_plan(model, by_name("litert-xnnpack")).promises[1].reason
    else:
        with pytest.raises(UnsupportedError, match="no operator reads"):
            make_plan(model, by_name("litert-xnnpack"))
