"""A row whose device does not look at an option, a scale or a zero point: it computes as if that had its default.

Source of fields: tosa-converter-for-tflite 2026.2.0 (drops the fused activation of pools), OpenVINO 2026.4
(half_pixel_centers of RESIZE_NEAREST_NEIGHBOR), ESP-NN d45b843 called directly (dilation), OpenCV 5.0 dnn (beta; zero
point of PAD; scales of uint8 ADD, SUB, MUL, MEAN), accelerators whose activation is max(code, 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Values that options of the schema get, by the name of what is ignored.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "activation": {"fused_activation_function": 0},
    "dilation": {"dilation_h_factor": 1, "dilation_w_factor": 1},
    "align_corners": {"align_corners": False},
    "half_pixel_centers": {"half_pixel_centers": False},
    "align_corners and half_pixel_centers": {"align_corners": False, "half_pixel_centers": False},
    "beta": {"beta": 1.0},
}
_FUSED = "fused_activation_function"
#: The activation's lower bound alone: RELU for all that have one at 0.
UPPER, AT_CODE_0, AT_CODE_0_ALONE = BOUNDS = (
    "upper bound of the activation",
    "zero point of the activation",
    "zero point and upper bound of the activation",
)
#: Names of what is ignored of operands, with whether this means scales, and zero points.
OPERANDS: Mapping[str, tuple[bool, bool]] = {"zero points": (False, True), "scales and zero points": (True, True)}
#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {"option": (*DEFAULTS, *BOUNDS, *OPERANDS)}
#: Numbers of activations in files.
_RELU, _RELU6 = 1, 3
_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


@dataclass(frozen=True, slots=True)
class Ignored:
    """The option that is not looked at. The field is spelled as files of profiles spell it."""

    option: str = "activation"


#: The reader of what a file states.
ignored_of = reader(Ignored, FIELDS, "an ignored option")


def ignoring(row: Kernel, point: Ignored) -> Kernel:
    """Return the row that computes as if an option had its default."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        if point.option in OPERANDS:
            operands = (
                tuple(None if o is None else _plain(o, *OPERANDS[point.option]) for o in some)
                for some in (node.inputs, node.outputs)
            )
            inputs, outputs = operands
            return row.prepare(replace(node, inputs=inputs, outputs=outputs), arithmetic)  # type: ignore[arg-type]
        changed = {_FUSED: 0} if point.option in BOUNDS else DEFAULTS[point.option]
        for name in changed:
            node.check(name in tuple(node.options.fields), f"has no option {name} to ignore")
        prepared = row.prepare(_with(node, changed), arithmetic)
        return _bounded(prepared, node, point.option) if point.option in BOUNDS else prepared

    return replace(row, prepare=prepare, takes=None)


def _with(node: Node, changed: Mapping[str, Any]) -> Node:
    return replace(node, options=replace(node.options, fields={**node.options.fields, **changed}))


def _plain(operand: Operand, scales: bool, zeros: bool) -> Operand:
    """Return an operand of codes without scales or zero points."""
    q = operand.quantization
    if q is None or operand.type not in _CODES:
        return operand
    scale = np.ones_like(q.scale) if scales else q.scale
    zero = np.zeros_like(q.zero_point) if zeros else q.zero_point
    return replace(operand, quantization=replace(q, scale=scale, zero_point=zero))


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """Constants: the row's own without an activation, and the bounds of codes."""

    inner: Prepared
    clamp: Clamp


def _bounded(prepared: Prepared, node: Node, option: str) -> Prepared:
    """Return the row with the activation's bounds applied to codes."""
    y, activation = node.outputs[0], int(node.options[_FUSED])
    if activation == _RELU6 and option != AT_CODE_0:
        activation = _RELU
    if option != UPPER:
        y = _plain(y, scales=False, zeros=True)
    clamp = code_range(_with(node, {_FUSED: activation}), y, CARRIER[y.type])
    return replace(prepared, data=Bounded(prepared, clamp), eval=eval_bounded)


def eval_bounded(data: Bounded, *inputs: Array | None) -> Array:
    """Evaluate the row and limit its codes."""
    codes = np.asarray(data.inner.eval(data.inner.data, *inputs))
    return np.asarray(np.clip(codes, *map(codes.dtype.type, data.clamp)))
