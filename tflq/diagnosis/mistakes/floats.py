"""Dequantize, float operator, quantize: the arithmetic of runtimes without integer kernels.

A hypothesis has three fields: the precision of the float operator, the quotient by the output's scale, and the
rounding. Sources of fields: TVM (relax/transform/legalize_ops/qdq.py: float32, division, half to even), OpenVINO's CPU
plugin (FakeQuantize; bfloat16 if the processor has it), ONNX QuantizeLinear (division, half to even).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken, Values
from tflq.engine.api.part import Part
from tflq.engine.kernels.families.through_floats import PRECISIONS, QUOTIENTS, Precision, Quotient, dequantized
from tflq.engine.numerics.divisions import ROUNDINGS
from tflq.engine.numerics.narrow_floats import in_float32
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import Profile
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.model.surgery.edit import with_constant, with_tensor
from tflq.typing import Array

_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_BIASES = (TensorType.INT32, TensorType.INT64)
_CARRIERS = tuple(CARRIER[kind] for kind in _CODES)
#: Operators whose results lie between input codes, which devices interpolate directly.
_BETWEEN_CODES = ("RESIZE_BILINEAR",)
#: Operators that change codes but not their real values.
_SAME_REALS = ("QUANTIZE",)
#: Number of parts whose float results are kept: samples alternate.
_KEPT = 4


#: Texts that quotients add to a name.
_ADDED = {
    "divided": "",
    "times reciprocal": ", times the output scale's reciprocal",
    "divided, zero point before rounding": ", the zero point added before the rounding",
    "times reciprocal, zero point before rounding": (
        ", times the output scale's reciprocal, the zero point added before the rounding"
    ),
}
#: Roundings that are combined with narrower floats.
_USUAL = ("half to even", "half away from zero")


def mistaken_floats(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every way to compute the operator in floats, with every rounding."""
    quantized = _quantize(alone)
    if quantized is None:
        return
    name = alone.op.builtin
    if name in _BETWEEN_CODES:
        in_floats = quantized.in_floats(alone.model, in_float32)
        for rounding in ROUNDINGS:
            yield f"computed on codes in float32, rounded {rounding}", _on_codes(profile, in_floats, rounding)
    for precision, how in PRECISIONS.items():
        operator = _FloatOperator(profile, quantized, quantized.in_floats(alone.model, how.operands), how)
        for rounding in ROUNDINGS if precision == "float32" else _USUAL:
            for kind, quotient in QUOTIENTS.items():
                yield (
                    f"computed in {precision}{_ADDED[kind]}, rounded {rounding}",
                    _device(operator, quotient, rounding),
                )


@dataclass(frozen=True, slots=True)
class _Quantized:
    """The operator's tensors of codes, and its constant biases."""

    codes: frozenset[int]
    biases: frozenset[int]

    def in_floats(self, model: Model, rounded: Callable[[Array], Array]) -> Model:
        """Return the model of the float operator; constants are dequantized, those of codes `rounded`."""
        for tensor in (*self.codes, *self.biases):
            graph = view(model)
            spec, value = graph.tensors[tensor], graph.constant(tensor)
            model = with_tensor(model, tensor, replace(spec, type=TensorType.FLOAT32, quantization=None))
            if value is not None:
                reals = _reals(value, spec)
                model = with_constant(model, tensor, reals if tensor in self.biases else rounded(reals))
        return model


def _quantize(alone: Part) -> _Quantized | None:
    """Return None if results are not codes, or the real values of some tensor are unknown."""
    graph, operator = alone.graph, alone.op
    tensors = [t for t in (*operator.inputs, *operator.outputs) if t >= 0]
    codes = frozenset(t for t in tensors if graph.tensors[t].type in _CODES)
    given = codes & set(operator.inputs)
    biases = frozenset(
        t for t in operator.inputs if t >= 0 and graph.tensors[t].type in _BIASES and _has_scales(graph.tensors[t])
    )
    known = all(_has_scales(graph.tensors[t]) for t in codes)
    one_scale = all(_has_one_scale(graph.tensors[t]) for t in operator.outputs if t >= 0)
    is_pure = not any(graph.tensors[t].is_variable for t in tensors)
    if not given or not known or not one_scale or not is_pure or not codes.issuperset(operator.outputs):
        return None
    return _Quantized(codes, biases)


def _has_scales(spec: TensorSpec) -> bool:
    q = spec.quantization
    return q is not None and q.scale.size >= 1 and q.zero_point.size in (1, q.scale.size)


def _has_one_scale(spec: TensorSpec) -> bool:
    q = spec.quantization
    return q is not None and q.scale.size == q.zero_point.size == 1


def _reals(codes: Array, spec: TensorSpec) -> Array:
    assert spec.quantization is not None  # guaranteed by _quantized
    return dequantized(spec.quantization, codes)


@dataclass(frozen=True, slots=True, eq=False)
class _FloatOperator:
    """The float form of an operator. It keeps results of the last few inputs, which quotients and roundings share."""

    profile: Profile
    quantized: _Quantized
    in_floats: Model
    precision: Precision
    kept: list[tuple[Part, dict[int, Array]]] = field(default_factory=list)

    def reals(self, alone: Part) -> dict[int, Array]:
        """Return the results, by the index in the operator's own model."""
        known = next((values for part, values in self.kept if part is alone), None)
        if known is None:
            known = self._computed(alone)
            self.kept[:] = [*self.kept[1 - _KEPT :], (alone, known)]
        return known

    def _computed(self, alone: Part) -> dict[int, Array]:
        graph, operator, codes = alone.graph, alone.op, self.quantized.codes
        inputs = {
            t: self.precision.operands(_reals(v, graph.tensors[t])) if t in codes else v
            for t, v in alone.inputs.items()
        }
        if operator.builtin in _SAME_REALS:
            return {operator.outputs[0]: self.precision.results(inputs[operator.inputs[0]])}
        values = replace(alone, model=self.in_floats, inputs=inputs).run(alone.plan(self.profile, self.in_floats))
        return {t: self.precision.results(values[alone.tensors[t]]) for t in operator.outputs}


def _device(operator: _FloatOperator, quotient: Quotient, rounding: str) -> Device:
    def device(alone: Part) -> Values:
        specs, codes_of = alone.graph.tensors, {}
        for tensor, reals in operator.reals(alone).items():
            spec = specs[tensor]
            assert isinstance(spec.type, TensorType)  # both guaranteed by _quantized
            assert spec.quantization is not None
            scale, zero_point = spec.quantization.scale[0], int(spec.quantization.zero_point[0])
            codes = quotient.codes(reals, scale, zero_point, rounding)
            codes_of[alone.tensors[tensor]] = np.clip(codes, *type_range(CARRIER[spec.type])).astype(CARRIER[spec.type])
        return codes_of

    return device


def _on_codes(profile: Profile, in_floats: Model, rounding: str) -> Device:
    def device(alone: Part) -> Values:
        inputs = {t: v.astype(np.float32) if v.dtype in _CARRIERS else v for t, v in alone.inputs.items()}
        values = replace(alone, model=in_floats, inputs=inputs).run(alone.plan(profile, in_floats))
        ((tensor, dumped),) = alone.got.items()
        rounded = np.clip(ROUNDINGS[rounding](values[tensor]), *type_range(dumped.dtype))
        return {tensor: rounded.astype(dumped.dtype)}

    return device
