"""Small devices, written in the scalar arithmetic of their runtimes, that tests of the diagnosis explain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.single_op import T, build
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.findings import Findings, investigate
from tflq.engine.api.files import load
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, view

Array = NDArray[Any]
REF = by_name("litert-ref")


def codes_of(reals: Array, scale: np.float32, zero: int, dtype: Any, quotient: Callable[[Array], Array]) -> Array:
    """Quantize float32 reals: the quotient, half to even, the zero point, the type's limits."""
    limits = np.iinfo(dtype)
    return np.clip(np.rint(quotient(reals)) + zero, limits.min, limits.max).astype(dtype)


def dump(model: Model, inputs: Sequence[Array], outputs: Sequence[Array]) -> Dump:
    """Return what the device was fed and what it gave, of a model of one operator."""
    graph = view(model)
    return Dump("", {**dict(zip(graph.inputs, inputs, strict=True)), **dict(zip(graph.outputs, outputs, strict=True))})


def explained(model: Model, *dumps: Dump) -> Findings:
    """Return what is found of the device's dumps."""
    return investigate(model, dumps, REF)


def names_of(found: Findings) -> list[str]:
    """All names of the causes that reproduce every bit."""
    assert found.explanation is not None
    return [name for cause in found.explanation.fitting for name in (cause.name, *cause.also)]


def one(op: str, inputs: Sequence[T], output: T, options: tuple[str, Mapping[str, Any]] | None = None) -> Model:
    """A model of one operator."""
    return load(build(op, inputs, [output], options))


def twice_rounded(code: int, real: float) -> int:
    """code * real as LiteRT's reference computes it: Q31 mantissa, half up, then the shift, half away from zero."""
    fraction, shift = math.frexp(real)
    mantissa = math.floor(fraction * 2**31 + 0.5)
    product = (code << max(shift, 0)) * mantissa
    high = (product + (1 << 30)) >> 31
    right = max(-shift, 0)
    rounded = math.floor(abs(high) / 2**right + 0.5)
    return rounded if high >= 0 else -rounded
