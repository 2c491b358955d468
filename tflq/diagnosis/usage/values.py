"""Mistakes in reading a device's tensors: the arrays of a dump, and what they hold if one was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tflq.comparison.verification.evidence.inputs import has_scale, scale_of
from tflq.engine.kernels.code_limits import code_limits
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.typing import Array

#: The arrays of one run, by tensor.
Arrays = Mapping[int, Array]
#: The rival of results that were saved one sample late.
STALE = ", or the device kept them (stale)"
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
    undone = {t: undo(view(model).tensors[t], v) for t, v in arrays.items() if t in of}
    found: dict[int, Array] = {t: v for t, v in undone.items() if v is not None}
    return {**arrays, **found} if found else None


def _other_sign(spec: TensorSpec, value: Array) -> Array | None:
    """Return bytes of the other signedness with the zero point moved by 128."""
    carrier = CARRIER[TensorType(spec.type)]
    if carrier.itemsize != 1 or value.dtype.kind not in "iu" or value.dtype.itemsize != 1:
        return None
    return (value.view(np.uint8) ^ np.uint8(128)).view(carrier)


def _other_bytes(spec: TensorSpec, value: Array) -> Array | None:
    """Return the same bytes in the tensor's type."""
    carrier = CARRIER[TensorType(spec.type)]
    is_other = value.dtype.kind in "iu" and value.dtype != carrier and value.dtype.itemsize == carrier.itemsize
    return value.view(carrier) if is_other else None


def _dequantize_once(spec: TensorSpec, value: Array) -> Array | None:
    """Return the codes of values that were dequantized twice."""
    if value.dtype.kind != "f" or not has_scale(spec):
        return None
    scale, zero = scale_of(spec)
    once = value.astype(np.float64) / scale + zero
    return _whole(spec, once / scale + zero)


def _without_zero_point(spec: TensorSpec, value: Array) -> Array | None:
    """Return the codes of values that were dequantized without the zero point."""
    if value.dtype.kind != "f" or not has_scale(spec) or not scale_of(spec)[1]:
        return None
    return _whole(spec, value.astype(np.float64) / scale_of(spec)[0])


def _whole(spec: TensorSpec, codes: Array) -> Array | None:
    whole = np.rint(codes)
    low, high = code_limits(TensorType(spec.type))
    if not codes.size or np.abs(codes - whole).max() > _NEAR or whole.min() < low or whole.max() > high:
        return None
    return whole.astype(CARRIER[TensorType(spec.type)])


def _from_nchw(spec: TensorSpec, value: Array) -> Array | None:
    """Return channels last of elements that were written channels first."""
    if len(spec.shape) != 4 or value.size != int(np.prod(spec.shape)) or min(spec.shape) < 1 or spec.shape[-1] < 2:
        return None
    n, h, w, c = spec.shape
    return np.ascontiguousarray(value.reshape(n, c, h, w).transpose(0, 2, 3, 1))


def _columns_first(spec: TensorSpec, value: Array) -> Array | None:
    """Return rows of elements that were written column by column."""
    if len(spec.shape) < 2 or value.size != int(np.prod(spec.shape)) or value.size in spec.shape:
        return None
    return np.ascontiguousarray(value.reshape(spec.shape[::-1]).transpose())


_OF_TENSORS = (
    ("uint8 codes read as int8, or int8 as uint8", _other_sign),
    ("bytes saved in a type of the other sign", _other_bytes),
    ("dequantized twice", _dequantize_once),
    ("dequantized without the zero point", _without_zero_point),
    ("transposed dump: NCHW instead of NHWC", _from_nchw),
    ("transposed dump: columns first", _columns_first),
)
