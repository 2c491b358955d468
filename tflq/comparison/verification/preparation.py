"""Prepare inputs: images and other stored numbers become real values, real values become codes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tflq.comparison.verification.pictures import SUFFIXES, read_image
from tflq.comparison.verification.scaling import Scaling
from tflq.engine.interpreter.arrays import admit, open_shape
from tflq.engine.kernels.code_limits import code_limits
from tflq.engine.numerics.affine import affine_codes
from tflq.errors import InputError, InputWarning, TypeMismatchError
from tflq.model.ir import CARRIER, TensorSpec, TensorType
from tflq.statements import Statement
from tflq.typing import Array

#: One number, or one per channel.
Numbers: TypeAlias = "float | Sequence[float]"
#: Types of codes.
_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Maximum distance of a dequantized value from a whole code, in LSB: it was rounded to float32.
_NEAR = 0.01
#: How many different values may become one code, on average, before a warning.
_MERGED = 8


@dataclass(frozen=True, slots=True)
class Preparation:
    """The conversion of numbers to an input's values.

    `scaling` converts stored numbers to real values, (stored - mean) / std. Real values become codes of an integer
    input if there is a scaling, or if `quantize` declares floats to be real values. With `bgr`, channels of images
    are in the order blue, green, red.
    """

    scaling: Scaling | None = None
    quantize: bool = False
    bgr: bool = False

    def apply(self, spec: TensorSpec, value: Array) -> Array:
        """Return the numbers in the input's form, as far as this preparation converts them."""
        if value.dtype.kind not in "iufb" or (self.scaling is None and not self.quantize):
            return value
        if self.scaling is None and value.dtype.kind != "f":
            return value  # codes
        with np.errstate(over="ignore"):  # beyond float32: infinity, whose code is the last one
            real = value.astype(np.float32) if self.scaling is None else self.scaling.apply(value)
        if spec.type == TensorType.FLOAT32:
            return real
        codes = quantized(spec, real)
        _warn_of_few_codes(spec, real, codes)
        return codes

    def checked(self, spec: TensorSpec, value: Any) -> Array:
        """Return the array in the input's form.

        Raises:
            InputError: Its type or shape differs from the input's; the message names the option that converts real
                values.
        """
        array, name = np.asarray(value), spec.name or "input"
        try:
            return admit(self.apply(spec, array), spec.type, open_shape(spec), name).copy()
        except TypeMismatchError as error:
            if array.dtype.kind == "f" and spec.type in _CODES and spec.quantization is not None:
                raise error.advising("--quantize-inputs (quantize_inputs=True) turns real values into codes") from None
            raise


PLAIN = Preparation()


def preparation(mean: Numbers | None, std: Numbers | None, quantize: bool = False, bgr: bool = False) -> Preparation:
    """Return the preparation for a mean, a standard deviation, the request for codes, and the order of channels."""
    scaling = (
        None if mean is None and std is None else Scaling.of(0 if mean is None else mean, 1 if std is None else std)
    )
    return Preparation(scaling, quantize, bgr)


def quantized(spec: TensorSpec, real: Array) -> Array:
    """Return the codes of real values; see `affine_codes`."""
    name = spec.name or "input"
    q = spec.quantization
    if spec.type not in _CODES or q is None or len(q.scale) != 1:
        raise InputError("has no scale by which real values could become codes", name=name)
    if np.isnan(real).any():
        raise InputError("a real value is NaN, which has no code", name=name)
    type_ = TensorType(spec.type)
    return affine_codes(real, q.scale[0], _zero_point(spec), code_limits(type_)).astype(CARRIER[type_])


def is_whole(value: Array) -> bool:
    """Return whether every float is a whole number."""
    return bool(np.all(value == np.rint(value)))


def codes_of_floats(spec: TensorSpec, value: Array, name: str, *, real: bool) -> Array:
    """Return the codes of floats in a dump: whole numbers are codes, real values are dequantized codes.

    Raises:
        InputError: They are neither, or lie beyond the type's range.
    """
    q = spec.quantization
    low, high = code_limits(TensorType(spec.type))
    codes = value.astype(np.float64)
    if not np.isfinite(codes).all():
        raise InputError("holds NaN or infinity, which are no codes", name=name)
    if real:
        if q is None or len(q.scale) != 1:
            raise InputError("holds real values, but the tensor has no scale", name=name)
        codes = codes / np.float64(q.scale[0]) + _zero_point(spec)
    whole = np.rint(codes)
    if not np.all(np.abs(codes - whole) <= _NEAR) or whole.min(initial=low) < low or whole.max(initial=high) > high:
        what = f"multiples of the scale {q.scale[0]:g}" if real and q is not None else "whole numbers"
        expected = f"{what}, codes {low} to {high}"
        raise InputError("holds floats that are not dequantized codes", name=name, expected=expected, got="others")
    return whole.astype(CARRIER[TensorType(spec.type)])


def takes_codes(spec: TensorSpec) -> bool:
    """Return whether the tensor holds 8-bit or 16-bit codes."""
    return spec.type in _CODES


def image_paths(path: Path) -> list[Path]:
    """Return the images at a path: itself, or those in a folder, by name."""
    if path.is_dir():
        return sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    return [path] if path.suffix.lower() in SUFFIXES else []


def image(path: Path, spec: TensorSpec, how: Preparation) -> Array:
    """Return an image cut and resized to an input [1, H, W, C]: its numbers 0 to 255, then prepared.

    Raises:
        InputError: The input takes no image, or is signed and no scaling is given.
    """
    shape = spec.shape_signature or spec.shape
    name = spec.name or "input"
    if len(shape) != 4 or min(shape[1:]) < 1:
        raise InputError("takes no image", name=name, expected="[1, H, W, C]", got=list(shape))
    stored = read_image(path, *shape[1:], bgr=how.bgr)[None]
    if how.scaling is None and spec.type not in (TensorType.UINT8, TensorType.FLOAT32):
        raise InputError(
            "takes codes: --mean and --std (mean=, std=) scale an image's numbers 0 to 255 to real values"
            + _spread(spec)[0],
            name=name,
        )
    return stored.astype(np.float32) if spec.type == TensorType.FLOAT32 and how.scaling is None else stored


def _warn_of_few_codes(spec: TensorSpec, real: Array, codes: Array) -> None:
    """Warn if many different values became few of the type's codes, as with a wrong mean or standard deviation."""
    low, high = code_limits(TensorType(spec.type))
    values, used = min(len(np.unique(real)), high - low + 1), len(np.unique(codes))
    if used * _MERGED <= values:
        name, all_ = spec.name or "input", high - low + 1
        text = f"{name}: uses {used} of {all_} codes for {len(np.unique(real)):,} different values; check mean and std"
        hint, spread = _spread(spec)
        stated = Statement(text + hint, "few-codes", name=name, used=used, codes=all_, values=values, **spread)
        warnings.warn(InputWarning(stated), stacklevel=2)


def spread_text(spec: TensorSpec) -> str:
    """Return the hint at options that spread an image's numbers over all codes of an input; empty without a scale."""
    return _spread(spec)[0]


def _spread(spec: TensorSpec) -> tuple[str, dict[str, float]]:
    """Return the options that spread an image's numbers over all codes, and their values; none without a scale."""
    q = spec.quantization
    if spec.type not in _CODES or q is None or len(q.scale) != 1 or not q.scale[0] > 0:
        return "", {}
    low, high = code_limits(TensorType(spec.type))
    step = 255 / (high - low)
    mean, std = (_zero_point(spec) - low) * step, step / float(q.scale[0])
    text = f"; --mean {mean:.6g} --std {std:.6g} would spread 0 to 255 over all codes"
    return text, {"mean": mean, "std": std}


def _zero_point(spec: TensorSpec) -> int:
    q = spec.quantization
    return int(q.zero_point[0]) if q is not None and len(q.zero_point) else 0
