"""Float operators with narrow weights: a device quantizes images by other groups, one scale per pixel or image.

A CONV_2D of one tap, without strides, is a FULLY_CONNECTED of pixels. Runtimes that run it as one quantize each pixel
(XNNPACK's qd8-f32-qc8w gemm in place of its igemm).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken, Values
from tflq.diagnosis.rows import computation
from tflq.engine.api.part import Part
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.model.ir import Model, OperatorCode, Record, TensorType, view
from tflq.model.surgery.edit import with_constant, with_operator, with_tensor

_NARROW = (TensorType.INT8, TensorType.UINT8, TensorType.INT4)
_DENSE = OperatorCode(9, "FULLY_CONNECTED")


def mistaken_hybrids(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield the convolution as a FULLY_CONNECTED of its pixels, under each profile."""
    graph, operator = alone.graph, alone.op
    name, options = operator.builtin, operator.options
    if name != "CONV_2D" or options is None or operator.inputs[0] not in alone.inputs:
        return
    x, w = alone.inputs[operator.inputs[0]], graph.tensors[operator.inputs[1]]
    is_one_tap = len(w.shape) == 4 and tuple(w.shape[1:3]) == (1, 1) and w.shape[3] == x.shape[-1]
    strides = options.get("stride_h", 1), options.get("stride_w", 1)
    if x.dtype != np.float32 or w.type not in _NARROW or not is_one_tap or strides != (1, 1):
        return
    dense = _as_dense(alone.model)
    if dense is None:
        return
    kinds: set[Hashable] = set()
    for one in (profile, *(by_name(other) for other in PROFILES)):
        kind = computation(replace(alone, model=dense), one)
        if kind not in kinds:
            kinds.add(kind)
            yield f"quantized per pixel, as FULLY_CONNECTED of {one.name}", _device(one, dense)


def _as_dense(model: Model) -> Model | None:
    """Return the single operator's model as a FULLY_CONNECTED of pixels; None if the weights are not in the file."""
    graph = view(model)
    operator = graph.op(0)
    tensor = operator.inputs[1]
    weights = graph.constant(tensor)
    if weights is None or operator.options is None:
        return None
    if graph.tensors[tensor].type == TensorType.INT4:
        spec = graph.tensors[tensor]
        model = with_tensor(model, tensor, replace(spec, shape=(spec.shape[0], spec.shape[3]), shape_signature=None))
    else:
        model = with_constant(model, tensor, weights.reshape(weights.shape[0], -1))
    activation = operator.options.get("fused_activation_function", 0)
    fields = {"fused_activation_function": activation, "weights_format": 0, "keep_num_dims": True}
    changed = replace(
        operator.record, opcode_index=len(model.operator_codes), options=Record("FullyConnectedOptions", fields)
    )
    return with_operator(replace(model, operator_codes=(*model.operator_codes, _DENSE)), changed)


def _device(profile: Profile, dense: Model) -> Device:
    def device(alone: Part) -> Values:
        return replace(alone, model=dense).run(alone.plan(profile, dense))

    return device
