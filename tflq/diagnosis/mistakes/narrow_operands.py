"""Float operators whose operands are rounded to a narrower float type: float16, bfloat16, and TF32 of tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken, Values
from tflq.engine.api.part import Part
from tflq.engine.numerics.narrow_floats import in_bfloat16, in_float16
from tflq.engine.profiles import Profile
from tflq.model.ir import Model, TensorType, view
from tflq.model.surgery.edit import with_constant
from tflq.typing import Array

Narrow = Callable[[Array], Array]


def in_tf32(values: Array) -> Array:
    """Round to the nearest number with a mantissa of 10 bits and float32's exponents, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
    return rounded.astype(np.uint32).view(np.float32).reshape(values.shape)


NARROW: dict[str, Narrow] = {"float16": in_float16, "bfloat16": in_bfloat16, "TF32": in_tf32}


def mistaken_operands(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield float operators on operands, and on weights only, of a narrower type."""
    floats = [p for p, x in alone.inputs.items() if x.dtype == np.float32]
    if not floats or any(y.dtype != np.float32 for y in alone.got.values()):
        return
    constants = _constants(alone)
    for name, narrowed in NARROW.items():
        model = _round(alone.model, constants, narrowed)
        yield f"operands rounded to {name}", _device(profile, model, narrowed)
        if constants:
            yield f"weights rounded to {name}", _device(profile, model, None)


def _constants(alone: Part) -> tuple[int, ...]:
    """Return the float constants that are no biases: of two axes or more."""
    graph = alone.graph
    specs = [(t, graph.tensors[t]) for t in alone.op.inputs if t >= 0 and t not in alone.inputs]
    return tuple(t for t, spec in specs if spec.type == TensorType.FLOAT32 and len(spec.shape) > 1)


def _round(model: Model, constants: tuple[int, ...], narrowed: Narrow) -> Model:
    for tensor in constants:
        value = view(model).constant(tensor)
        if value is not None:
            model = with_constant(model, tensor, narrowed(value).astype(np.float32))
    return model


def _device(profile: Profile, model: Model, narrowed: Narrow | None) -> Device:
    def device(alone: Part) -> Values:
        given = {
            p: x if narrowed is None or x.dtype != np.float32 else narrowed(x).astype(np.float32)
            for p, x in alone.inputs.items()
        }
        other = replace(alone, model=model, inputs=given)
        return other.run(other.plan(profile))

    return device
