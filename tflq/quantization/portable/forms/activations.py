"""Activations that some runtimes do not fuse, written as operators of their own."""

from __future__ import annotations

from tflq.model.ir import OperatorView, TensorType
from tflq.model.ir.schema import enum_names
from tflq.quantization.portable.forms.editing import Editing
from tflq.quantization.portable.forms.rewrite import Rewrite, rewrite_of

WHY = "some runtimes ignore the activation that it fuses"
_RECTIFIERS = ("RELU", "RELU_N1_TO_1", "RELU6")


def transpose_conv_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a TRANSPOSE_CONV with a fused activation as two operators."""
    options, made = operator.options, operator.output()
    number = 0 if options is None else int(options.get("fused_activation_function", 0))
    name = enum_names("ActivationFunctionType").get(number, "")
    if options is None or name not in _RECTIFIERS or made.type != TensorType.FLOAT32:
        return None
    inputs, sums = [editing.new(t) for t in operator.inputs], editing.tensor(made, "/sums")
    kept = {field: options[field] for field in ("padding", "stride_w", "stride_h")}
    version = 3 if len(inputs) > 3 and inputs[3] >= 0 else 1
    editing.operator("TRANSPOSE_CONV", inputs, [sums], operator.index, "TransposeConvOptions", version, **kept)
    editing.operator(name, [sums], [editing.new(operator.outputs[0])], operator.index)
    return rewrite_of(operator, ["TRANSPOSE_CONV", name], WHY, 0)
