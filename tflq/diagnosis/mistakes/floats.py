"""Operators without weights that a device computes in float32, and brings back to codes with a rounding of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.mistakes.device import Device, Mistaken
from tflq.diagnosis.mistakes.division import ROUNDINGS
from tflq.ir import CARRIER, Model, Quantization, TensorType
from tflq.numerics.stages import type_range
from tflq.profiles import Profile
from tflq.surgery.edit import with_tensor
from tflq.surgery.part import Part

Array = NDArray[Any]

_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_CARRIERS = tuple(CARRIER[kind] for kind in _CODES)
#: Operators whose results lie between codes of the input, which devices interpolate as they are.
_BETWEEN_CODES = ("RESIZE_BILINEAR",)


def mistaken_floats(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Every way to round what the operator's float form makes of the reals that the codes stand for."""
    graph = alone.model.subgraphs[0]
    operator = graph.operators[0]
    tensors = {t for t in (*operator.inputs, *operator.outputs) if t >= 0 and graph.tensors[t].type in _CODES}
    constants = {t for t in operator.inputs if t >= 0 and t not in alone.inputs}
    scaled = all(_one_scale(graph.tensors[t].quantization) for t in tensors)
    if not tensors or not scaled or constants & tensors or not {*operator.outputs} <= tensors:
        return
    in_floats = _in_floats(alone.model, tensors)
    if alone.model.operator_codes[operator.opcode_index].name in _BETWEEN_CODES:
        for name in ROUNDINGS:
            yield f"computed on codes in float32, rounded {name}", _on_codes(profile, in_floats, name)
    for name in ROUNDINGS:
        yield f"computed in float32, rounded {name}", _device(profile, in_floats, tensors, name, reciprocal=False)
        yield (
            f"computed in float32, times the output scale's reciprocal, rounded {name}",
            _device(profile, in_floats, tensors, name, reciprocal=True),
        )


def _one_scale(quantization: Quantization | None) -> bool:
    return quantization is not None and quantization.scale.size == quantization.zero_point.size == 1


def _in_floats(model: Model, tensors: set[int]) -> Model:
    for tensor in tensors:
        spec = model.subgraphs[0].tensors[tensor]
        model = with_tensor(model, tensor, replace(spec, type=TensorType.FLOAT32, quantization=None))
    return model


def _device(profile: Profile, in_floats: Model, tensors: set[int], rounding: str, *, reciprocal: bool) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        specs = alone.model.subgraphs[0].tensors
        inputs = {t: _reals(v, specs[t].quantization) if t in tensors else v for t, v in alone.inputs.items()}
        values = replace(alone, model=in_floats, inputs=inputs).run(alone.plan(profile, in_floats))
        codes_of = {}
        for tensor in alone.model.subgraphs[0].operators[0].outputs:
            spec, original = specs[tensor], alone.tensors[tensor]
            assert isinstance(spec.type, TensorType)
            codes = _codes(values[original], spec.quantization, rounding, reciprocal)
            codes_of[original] = np.clip(codes, *type_range(CARRIER[spec.type])).astype(CARRIER[spec.type])
        return codes_of

    return device


def _on_codes(profile: Profile, in_floats: Model, rounding: str) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        inputs = {t: v.astype(np.float32) if v.dtype in _CARRIERS else v for t, v in alone.inputs.items()}
        values = replace(alone, model=in_floats, inputs=inputs).run(alone.plan(profile, in_floats))
        ((tensor, dumped),) = alone.got.items()
        rounded = np.clip(ROUNDINGS[rounding](values[tensor]), *type_range(dumped.dtype))
        return {tensor: rounded.astype(dumped.dtype)}

    return device


def _reals(codes: Array, quantization: Quantization | None) -> Array:
    """scale * (code - zero point) in float32."""
    assert quantization is not None
    centred = codes.astype(np.int32) - quantization.zero_point.astype(np.int32)
    return np.asarray(quantization.scale[0] * centred.astype(np.float32))


def _codes(reals: Array, quantization: Quantization | None, rounding: str, reciprocal: bool) -> Array:
    """Codes before the clamp, float32."""
    assert quantization is not None
    scale = quantization.scale[0]
    quotient = reals * (np.float32(1) / scale) if reciprocal else reals / scale
    rounded = np.nan_to_num(ROUNDINGS[rounding](quotient), nan=0.0, posinf=2.0**30, neginf=-(2.0**30))
    return np.asarray(rounded + np.float32(quantization.zero_point[0]))
