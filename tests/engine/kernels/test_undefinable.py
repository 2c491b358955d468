"""Operators that XNNPACK's delegate takes and cannot define are refused, as LiteRT's default resolver refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.single_op import T, build, litert
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.kernels.delegation import MOVES
from tflq.errors import UnsupportedError

SCALE, POINT = 0.1, 3
POOL = {"padding": 1, "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}


def ints(*values: int) -> T:
    return T("int32", (len(values),), value=np.array(values, np.int32))


def paddings(*pairs: Sequence[int]) -> T:
    return T("int32", (len(pairs), 2), value=np.array(pairs, np.int32))


def model(op: str, type_: str, scale: float, point: int) -> bytes:
    """The operator between codes of SCALE and POINT and codes of another scale and zero point."""

    def x(*shape: int) -> T:
        return T(type_, shape, SCALE, POINT)

    def y(*shape: int) -> T:
        return T(type_, shape, scale, point)

    forms: dict[str, tuple[list[T], list[T], Any]] = {
        "CONCATENATION": ([x(2, 3), x(2, 1)], [y(2, 4)], ("ConcatenationOptions", {"axis": 1})),
        "DEPTH_TO_SPACE": ([x(1, 2, 2, 4)], [y(1, 4, 4, 1)], ("DepthToSpaceOptions", {"block_size": 2})),
        "MAX_POOL_2D": ([x(1, 3, 3, 2)], [y(1, 2, 2, 2)], ("Pool2DOptions", POOL)),
        "PAD": ([x(2, 3), paddings((1, 0), (0, 1))], [y(3, 4)], ("PadOptions", {})),
        "RESIZE_BILINEAR": ([x(1, 2, 2, 1), ints(3, 3)], [y(1, 3, 3, 1)], ("ResizeBilinearOptions", {})),
        "SLICE": ([x(3, 3), ints(1, 0), ints(2, 2)], [y(2, 2)], ("SliceOptions", {})),
        "SPACE_TO_DEPTH": ([x(1, 4, 4, 1)], [y(1, 2, 2, 4)], ("SpaceToDepthOptions", {"block_size": 2})),
        "SPLIT": ([T("int32", (), value=1), x(2, 4)], [y(2, 2), y(2, 2)], ("SplitOptions", {"num_splits": 2})),
        "STRIDED_SLICE": (
            [x(3, 3), ints(0, 0), ints(2, 2), ints(1, 1)],
            [y(2, 2)],
            ("StridedSliceOptions", {"begin_mask": 0, "end_mask": 0}),
        ),
        "TRANSPOSE": ([x(2, 3), ints(1, 0)], [y(3, 2)], ("TransposeOptions", {})),
    }
    inputs, outputs, options = forms[op]
    return build(op, inputs, outputs, options, version=2)


def allocated(content: bytes, profile: str) -> Interpreter:
    interpreter = Interpreter(model_content=content, profile=profile)
    interpreter.allocate_tensors()
    return interpreter


def given(content: bytes) -> list[np.ndarray[Any, Any]]:
    details = allocated(content, "litert-ref").get_input_details()
    return [np.arange(np.prod(d["shape"]), dtype=d["dtype"]).reshape(d["shape"]) for d in details]


@each("op", sorted(MOVES))
@each(("scale", "point"), [(SCALE * 2, POINT), (SCALE, POINT + 1)])
def test_other_scales_or_zero_points_are_refused(op: str, scale: float, point: int) -> None:
    content = model(op, "int8", scale, point)
    with pytest.raises(UnsupportedError, match=r"XNNPACK asks for the input's scale and zero point"):
        allocated(content, "litert-xnnpack")
    values = given(model(op, "int8", SCALE, POINT))
    with pytest.raises(RuntimeError, match="failed to prepare"):
        litert(content, values, "BUILTIN")


@pytest.mark.parametrize("op", sorted(MOVES))
def test_equal_ones_run(op: str) -> None:
    content = model(op, "int8", SCALE, POINT)
    allocated(content, "litert-xnnpack")
    assert litert(content, given(content), "BUILTIN")


@pytest.mark.parametrize("op", sorted(MOVES.keys() - {"CONCATENATION", "RESIZE_BILINEAR"}))
def test_other_resolvers_take_them(op: str) -> None:
    content = model(op, "int8", SCALE * 2, POINT)
    allocated(content, "litert-opt")


def test_the_delegate_leaves_a_joined_uint8_to_other_kernels() -> None:
    content = model("CONCATENATION", "uint8", SCALE * 2, POINT)
    allocated(content, "litert-xnnpack")
    assert litert(content, given(content), "BUILTIN")


def test_a_scale_that_is_not_normal_is_refused() -> None:
    x = T("int8", (2, 3), 1e-40, 0)
    content = build("TRANSPOSE", [x, ints(1, 0)], [T("int8", (3, 2), 1e-40, 0)], ("TransposeOptions", {}), version=2)
    allocated(content, "litert-opt")
    with pytest.raises(UnsupportedError, match="XNNPACK asks for a normal scale"):
        allocated(content, "litert-xnnpack")
    with pytest.raises(RuntimeError, match="failed to prepare"):
        litert(content, given(content), "BUILTIN")
