"""Mistakes in preparing an input: from the numbers that the user has to the codes that a device was fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tflq.comparison.verification.evidence.inputs import codes, has_scale, prepare, real_values, saturate, scale_of
from tflq.comparison.verification.scaling import Scaling
from tflq.engine.kernels.code_limits import code_limits
from tflq.model.ir import CARRIER, TensorSpec, TensorType
from tflq.typing import Array

#: Samples of an input, one array each.
Samples = Sequence[Array]
#: Means and standard deviations of stored numbers 0 to 255 that are in common use.
_IMAGENET = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))
_PLAIN: tuple[tuple[Any, Any], ...] = ((0, 1), (0, 255), (127.5, 127.5), (128, 128), (127, 128), (0, 127.5))
_SCALINGS = (*_PLAIN, _IMAGENET)
#: From the real value, the scale and the zero point: numbers that are rounded otherwise, or not scaled.
_ROUNDED: tuple[tuple[str, Callable[[Array, Any, int], Array]], ...] = (
    ("truncated instead of rounded in host code", lambda r, s, z: np.trunc(r / s) + z),
    ("truncated instead of rounded in host code", lambda r, s, z: np.trunc(r / s + z)),
    ("rounded down instead of to the nearest in host code", lambda r, s, z: np.floor(r / s) + z),
    ("float values fed as codes", lambda r, _s, _z: np.trunc(r)),
    ("float values fed as codes", lambda r, _s, _z: np.rint(r)),
)
#: Formulas of host code in place of real / scale + zero point, from the real value, the scale and the zero point.
_FORMULAS: dict[str, Callable[[Array, Any, int], Array]] = {
    "the zero point was left out": lambda r, s, z: r / s,
    "the zero point was subtracted in place of added": lambda r, s, z: r / s - z,
    "the zero point was added a second time": lambda r, s, z: r / s + 2 * z,
    "multiplied by the scale instead of divided": lambda r, s, z: r * s + z,
    "multiplied by the scale instead of divided, without the zero point": lambda r, s, z: r * s,
    "quantized twice": lambda r, s, z: (r / s + z) / s + z,
    "the zero point was added before the division by the scale": lambda r, s, z: (r + z) / s,
    "the zero point was subtracted, as if codes were dequantized": lambda r, s, z: s * (r - z),
    "not scaled: the zero point was added to real values": lambda r, s, z: r + z,
}
#: Formulas of code that takes codes, which are right already, for real values.
_OF_CODES: dict[str, Callable[[Array, Any, int], Array]] = {
    "the zero point was added a second time": lambda c, s, z: c + z,
    "the zero point was subtracted from codes": lambda c, s, z: c - z,
    "quantized twice": lambda c, s, z: c / s + z,
    "codes were dequantized before they were fed": lambda c, s, z: s * (c - z),
}
#: The rival of results that were saved one sample late, or are always the same.
STALE = ", or the device kept them (stale)"
#: The name of inputs that nothing filled.
UNFILLED = "the input buffer was never filled, or holds one constant"


def mistaken(
    spec: TensorSpec, samples: Samples, scaling: Scaling | None, other: TensorSpec | None = None
) -> Iterator[tuple[str, list[Array]]]:
    """Yield mistakes and what a device is fed by them. The first that reproduces a device's input is its cause.

    `other` is the first output, whose scale and zero point may have been taken.
    """
    if has_scale(spec):
        yield from _of_other_sign(spec, samples, scaling)
        yield from _rounded(spec, samples, scaling)
    for even in (False, True) if has_scale(spec) else (False,):
        for name, moved in _move(samples):
            expected = prepare(spec, moved, scaling, even=even)
            if expected is not None:
                yield name, expected
        yield from _scale(spec, samples, even=even)
    yield from _unfilled(spec, samples, scaling)
    if has_scale(spec):
        yield from _by_formulas(spec, samples, scaling, other)


def _by_formulas(
    spec: TensorSpec, samples: Samples, scaling: Scaling | None, other: TensorSpec | None
) -> Iterator[tuple[str, list[Array]]]:
    """Yield other formulas of host code, codes that wrap, parameters of the output, and other scalings with them."""
    scale, zero = np.float32(scale_of(spec)[0]), scale_of(spec)[1]
    real = real_values(spec, samples, scaling)
    if real is None:
        real = [scale * (v.astype(np.float32) - zero) for v in samples]
    parameters = {"": (scale, zero)}
    if other is not None and has_scale(other):
        taken = np.float32(scale_of(other)[0]), scale_of(other)[1]
        parameters["the output's scale and zero point were taken"] = taken
        parameters["the output's scale was taken"] = taken[0], zero
        parameters["the output's zero point was taken"] = scale, taken[1]
    for rounding in (_half_away, np.rint, np.trunc):
        for text, (s, z) in parameters.items():
            numbers = [rounding(v.astype(np.float32) / s) + z for v in real]
            if text:
                yield text, [saturate(spec, v) for v in numbers]
            yield from _wrapping(spec, text, numbers)
        codes_of = [saturate(spec, rounding(v.astype(np.float32) / scale) + zero) for v in real]
        both = [(*pair, real) for pair in _FORMULAS.items()] + [(*pair, codes_of) for pair in _OF_CODES.items()]
        for text, formula, source in both:
            numbers = [rounding(formula(v.astype(np.float32), scale, zero)) for v in source]
            yield text, [saturate(spec, v) for v in numbers]
            yield from _wrapping(spec, text, numbers)
    for mean, std in _SCALINGS:
        if not isinstance(mean, tuple):
            scaled = [Scaling.of(mean, std).apply(v).astype(np.float32) for v in samples]
            for text, formula in _FORMULAS.items():
                numbers = [_half_away(formula(v, scale, zero)) for v in scaled]
                yield (
                    f"wrong mean or std: {scaling_text(mean, std)} was fed, and {text}",
                    [saturate(spec, v) for v in numbers],
                )


def _half_away(values: Array) -> Array:
    rounded: Array = np.trunc(values + np.copysign(0.5, values))
    return rounded


def _wrapping(spec: TensorSpec, text: str, numbers: Samples) -> Iterator[tuple[str, list[Array]]]:
    """Yield codes that wrap where they are not clamped, if some are beyond the type's range."""
    made = [_wrapped(spec, v) for v in numbers]
    if any(np.any(saturate(spec, v) != w) for v, w in zip(numbers, made, strict=True)):
        wraps = "values beyond the range were not clamped: codes wrap"
        yield f"{text}, and {wraps}" if text else wraps, made


def _wrapped(spec: TensorSpec, values: Array) -> Array:
    """Return values as codes of the tensor's type, modulo the size of the type."""
    carrier = CARRIER[TensorType(spec.type)]
    finite = np.nan_to_num(values, posinf=0.0, neginf=0.0).clip(-(2.0**62), 2.0**62)
    return finite.astype(np.int64).astype(carrier)


def constants(spec: TensorSpec, expected: Samples) -> Iterator[tuple[str, list[Array]]]:
    """Yield inputs of one constant, as a buffer holds that nothing fills."""
    values: dict[float, str] = {0: "zeros"}
    if has_scale(spec):
        low, high = code_limits(TensorType(spec.type))
        values = {high: "the highest code", low: "the lowest code", scale_of(spec)[1]: "the zero point", **values}
    for value, name in reversed(values.items()):
        yield f"{UNFILLED}: its input was {name} in every run", [np.full_like(v, value) for v in expected]


def _unfilled(spec: TensorSpec, samples: Samples, scaling: Scaling | None) -> Iterator[tuple[str, list[Array]]]:
    """Yield inputs of one constant, and the first sample's input in every run."""
    expected = prepare(spec, samples, scaling)
    if expected is None:
        return
    yield from constants(spec, expected)
    if len(expected) > 1:
        name = f"the input buffer was written once only: every run gives the results of sample 0{STALE}"
        yield name, [expected[0]] * len(expected)


def _of_other_sign(spec: TensorSpec, samples: Samples, scaling: Scaling | None) -> Iterator[tuple[str, list[Array]]]:
    """Yield bytes of the other sign, whose zero point lies 128 higher or lower."""
    name, flip = "uint8 fed where int8 is expected", np.uint8(128)
    carrier = CARRIER[TensorType(spec.type)]
    if carrier.itemsize != 1:
        return
    if carrier == np.uint8:
        name = "int8 fed where uint8 is expected"
    for even in (False, True):
        right = prepare(spec, samples, scaling, even=even)
        if right is not None:
            yield name, [(v.view(np.uint8) ^ flip).view(carrier) for v in right]
    if samples[0].dtype == np.uint8 and carrier == np.int8:
        yield name, [v.view(np.int8) for v in samples]
        yield name, [saturate(spec, v.astype(np.int16)) for v in samples]


def _move(samples: Samples) -> Iterator[tuple[str, list[Array]]]:
    """Yield orders of elements and of samples."""
    shape = samples[0].shape
    if len(shape) == 4 and shape[-1] == 3:
        yield "RGB and BGR exchanged", [v[..., ::-1] for v in samples]
    if len(shape) == 4 and shape[-1] > 1:
        yield "NCHW fed where NHWC is expected", [v.transpose(0, 3, 1, 2).reshape(v.shape) for v in samples]
    if len(shape) == 4 and shape[1] == shape[2]:
        yield "rows and columns exchanged", [v.transpose(0, 2, 1, 3) for v in samples]
    if len(samples) > 1:
        yield "off by one sample: the next one was fed", [*samples[1:], samples[0]]
        yield "off by one sample: the one before was fed", [samples[-1], *samples[:-1]]


def _rounded(spec: TensorSpec, samples: Samples, scaling: Scaling | None) -> Iterator[tuple[str, list[Array]]]:
    """Yield other roundings of the division by the scale, and real values that were taken for codes."""
    real = real_values(spec, samples, scaling)
    scale, zero = scale_of(spec)
    for name, form in _ROUNDED if real is not None else ():
        yield name, [saturate(spec, form(v.astype(np.float32), np.float32(scale), zero)) for v in real or ()]


def _scale(spec: TensorSpec, samples: Samples, *, even: bool) -> Iterator[tuple[str, list[Array]]]:
    """Yield other means and standard deviations."""
    channels = samples[0].shape[-1] if samples[0].ndim else 1
    for mean, std in _SCALINGS:
        if isinstance(mean, tuple) and channels != len(mean):
            continue
        scaling = Scaling.of(mean, std)
        values = [scaling.apply(v) for v in samples]
        fed = [codes(spec, v, even=even) for v in values] if has_scale(spec) else [v.astype(np.float32) for v in values]
        yield f"wrong mean or std: {scaling_text(mean, std)} was fed", fed


def scaling_text(mean: Any, std: Any) -> str:
    """Return mean and standard deviation, a number each or one for each channel."""
    return f"mean {_text(mean)}, std {_text(std)}"


def _text(number: Any) -> str:
    return ",".join(f"{n:g}" for n in number) if isinstance(number, tuple) else f"{number:g}"
