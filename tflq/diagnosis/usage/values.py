"""Mistakes in reading a device's tensors: the arrays of a dump, and what they hold if one was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tflq.comparison.verification.evidence.inputs import has_scale, scale_of
from tflq.diagnosis.usage.inputs import STALE
from tflq.engine.kernels.code_limits import code_limits
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.typing import Array

#: The arrays of one run, by tensor.
Arrays = Mapping[int, Array]
#: Codes, from floats and the scales and zero points of the tensor and of the input.
Formula = Callable[[Array, float, int, float, int], Array]
#: Formulas of programs in place of scale * (code - zero point), undone.
_FORMULAS: dict[str, Formula] = {
    "dequantized twice": lambda v, s, z, _s, _z: (v / s + z) / s + z,
    "dequantized without the zero point": lambda v, s, z, _s, _z: v / s,
    "dequantized with the wrong sign of the zero point": lambda v, s, z, _s, _z: v / s - z,
    "dequantized with the input's scale and zero point": lambda v, s, z, si, zi: v / si + zi,
    "dequantized with the input's scale": lambda v, s, z, si, _z: v / si + z,
    "dequantized with the input's zero point": lambda v, s, z, _s, zi: v / s + zi,
    "divided by the scale instead of multiplied": lambda v, s, z, _s, _z: v * s + z,
    "the zero point subtracted after the multiplication by the scale": lambda v, s, z, _s, _z: (v + z) / s,
    "codes in floats, not dequantized": lambda v, s, z, _s, _z: v,
    "codes less the zero point, not multiplied by the scale": lambda v, s, z, _s, _z: v + z,
    "dequantized with a scale of 1/255": lambda v, s, z, _s, _z: v * 255 + z,
    "dequantized with a scale of 1/256": lambda v, s, z, _s, _z: v * 256 + z,
    "dequantized with a scale of 1/128": lambda v, s, z, _s, _z: v * 128 + z,
    "codes divided by 255": lambda v, s, z, _s, _z: v * 255,
    "codes divided by 128": lambda v, s, z, _s, _z: v * 128,
}
#: Maximum distance of a value from a whole code, in LSB.
_NEAR = 0.02


def correct(model: Model, samples: Sequence[Arrays]) -> Iterator[tuple[str, list[dict[int, Array]]]]:
    """Yield mistakes and the arrays without them, if the arrays can hold that mistake."""
    computed = set(view(model).last_writers)
    for name, undo in _OF_TENSORS:
        for of in (set(samples[0]), set(samples[0]) & computed):
            fixed = [_undone(model, arrays, undo, of) for arrays in samples]
            if any(one is not None for one in fixed):
                yield name, [dict(arrays) if one is None else one for arrays, one in zip(samples, fixed, strict=True)]
    if len(samples) > 1:
        for word, step in (("next", -1), ("one before", 1)):
            name = f"off by one sample: results of the {word} were saved{STALE if step == 1 else ''}"
            for of in (computed, set(view(model).outputs)):
                moved = samples[step:], samples[:step]
                others = [*moved[0], *moved[1]]
                yield name, [_results_of(arrays, other, of) for arrays, other in zip(samples, others, strict=True)]


def _results_of(arrays: Arrays, other: Arrays, computed: set[int]) -> dict[int, Array]:
    return {t: other[t] if t in computed and t in other else value for t, value in arrays.items()}


def _undone(model: Model, arrays: Arrays, undo: Any, of: set[int]) -> dict[int, Array] | None:
    """Return the arrays with the mistake undone wherever it applies; None if it applies nowhere."""
    graph = view(model)
    source = graph.tensors[graph.inputs[0]] if graph.inputs else None
    undone = {t: undo(graph.tensors[t], v, source) for t, v in arrays.items() if t in of}
    found: dict[int, Array] = {t: v for t, v in undone.items() if v is not None}
    return {**arrays, **found} if found else None


def _other_sign(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return bytes of the other signedness with the zero point moved by 128."""
    carrier = CARRIER[TensorType(spec.type)]
    if carrier.itemsize != 1 or value.dtype.kind not in "iu" or value.dtype.itemsize != 1:
        return None
    return (value.view(np.uint8) ^ np.uint8(128)).view(carrier)


def _other_bytes(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return the same bytes in the tensor's type."""
    carrier = CARRIER[TensorType(spec.type)]
    is_other = value.dtype.kind in "iu" and value.dtype != carrier and value.dtype.itemsize == carrier.itemsize
    return value.view(carrier) if is_other else None


def _by_formula(formula: Formula, spec: TensorSpec, value: Array, source: TensorSpec | None) -> Array | None:
    """Return the codes from which a formula made floats; None if they are no whole codes."""
    if value.dtype.kind != "f" or not has_scale(spec):
        return None
    scale, zero = scale_of(spec)
    other = scale_of(source) if source is not None and has_scale(source) else (scale, zero)
    with np.errstate(all="ignore"):
        return _whole(spec, formula(value.astype(np.float64), scale, zero, *other))


def _whole(spec: TensorSpec, codes: Array) -> Array | None:
    whole = np.rint(codes)
    low, high = code_limits(TensorType(spec.type))
    is_whole = codes.size and np.isfinite(codes).all() and np.abs(codes - whole).max() <= _NEAR
    if not is_whole or whole.min() < low or whole.max() > high:
        return None
    return whole.astype(CARRIER[TensorType(spec.type)])


def _from_nchw(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return channels last of elements that were written channels first."""
    if len(spec.shape) != 4 or value.size != int(np.prod(spec.shape)) or min(spec.shape) < 1 or spec.shape[-1] < 2:
        return None
    n, h, w, c = spec.shape
    return np.ascontiguousarray(value.reshape(n, c, h, w).transpose(0, 2, 3, 1))


def _columns_first(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return rows of elements that were written column by column."""
    if len(spec.shape) < 2 or value.size != int(np.prod(spec.shape)) or value.size in spec.shape:
        return None
    return np.ascontiguousarray(value.reshape(spec.shape[::-1]).transpose())


_OF_TENSORS = (
    ("uint8 codes read as int8, or int8 as uint8", _other_sign),
    ("bytes saved in a type of the other sign", _other_bytes),
    *((name, partial(_by_formula, formula)) for name, formula in _FORMULAS.items()),
    ("transposed dump: NCHW instead of NHWC", _from_nchw),
    ("transposed dump: columns first", _columns_first),
)
