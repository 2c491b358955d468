"""Prepare inputs: images and other stored numbers become real values, real values become codes.

Scaling of stored numbers to the model's inputs.

Images as arrays, read by Pillow (extra `images`).

Real values beyond what a quantized input can represent: usually, mean and standard deviation were forgotten.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tflq.engine.interpreter.evaluation import admit, open_shape
from tflq.engine.kernels.checks import code_limits
from tflq.engine.numerics.codes import affine_codes
from tflq.errors import InputError, InputWarning, OptionError, TypeMismatchError
from tflq.model.ir import CARRIER, GraphView, TensorSpec, TensorType
from tflq.model.ir.constants import CODES, Codec, codec_of
from tflq.model.storage.kinds import open_file
from tflq.texts import Statement
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Scaling:
    """value = (stored - mean) / std in float32; one number each, or one per channel (last axis)."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    @staticmethod
    def of(mean: float | Sequence[float], std: float | Sequence[float]) -> Scaling:
        """Return the scaling from numbers or sequences of numbers; std must not hold 0."""
        scaling = Scaling(*(tuple(float(v) for v in np.atleast_1d(numbers)) for numbers in (mean, std)))
        if not np.all(np.isfinite(scaling.mean)) or not np.all(np.isfinite(scaling.std)) or 0.0 in scaling.std:
            raise OptionError("mean and std must be finite, and std not 0", expected="numbers", got=(mean, std))
        return scaling

    @property
    def identity(self) -> bool:
        """True if nothing would change."""
        return set(self.mean) == {0.0} and set(self.std) == {1.0}

    def apply(self, stored: Array) -> Array:
        """Return the scaled values, float32."""
        if self.identity:
            return stored.astype(np.float32)
        channels = stored.shape[-1] if stored.ndim else 1
        for numbers in (self.mean, self.std):
            if len(numbers) not in (1, channels):
                raise OptionError(
                    "mean and std have one number, or one per channel", expected=channels, got=len(numbers)
                )
        mean, std = (np.array(numbers, np.float32) for numbers in (self.mean, self.std))
        scaled: Array = (stored.astype(np.float32) - mean) / std
        return scaled


#: Suffixes of image files.
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})

#: Pillow's mode for a number of channels.
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def read_image(path: Path, height: int, width: int, channels: int, *, bgr: bool = False) -> Array:
    """Return an image as uint8 [height, width, channels]: its first frame, converted to grey, RGB or RGBA.

    The largest centred part of these proportions is cut out and resized bilinearly, with averaging if it shrinks.
    With `bgr` the first channel is blue and the third red; alpha stays the fourth.

    Raises:
        InputError: It is not readable, or an input of that many channels takes no image, or no colours.
        OptionError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise OptionError("images need Pillow: pip install 'tflq[images]'", name=str(path)) from error
    if channels not in _MODES:
        raise InputError("images have 1, 3 or 4 channels", name=str(path), expected=channels)
    if bgr and channels == 1:
        raise InputError("has one channel: --bgr (bgr=True) orders three", name=str(path))
    try:
        with open_file(path) as file, Image.open(file) as image:
            upright = ImageOps.exif_transpose(image).convert(_MODES[channels])
            cut = upright.crop(centred(*upright.size, width, height))
            fitted = cut.resize((width, height), Image.Resampling.BILINEAR)
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise InputError(f"is not a readable image ({error})", name=str(path)) from error
    array = np.asarray(fitted, np.uint8).reshape(height, width, channels)
    return np.ascontiguousarray(array[..., [2, 1, 0, 3][:channels]]) if bgr else array


def picture_size(path: Path) -> tuple[int, int]:
    """Return the width and height of an image as it is seen, upright.

    Raises:
        InputError: It is not readable.
        OptionError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise OptionError("images need Pillow: pip install 'tflq[images]'", name=str(path)) from error
    try:
        with open_file(path) as file, Image.open(file) as image:
            width, height = ImageOps.exif_transpose(image).size
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise InputError(f"is not a readable image ({error})", name=str(path)) from error
    return width, height


def centred(width: int, height: int, wide: int, high: int) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the largest centred part with proportions `wide` to `high`."""
    part_width, part_height = min(width, max(1, height * wide // high)), min(height, max(1, width * high // wide))
    left, top = (width - part_width) // 2, (height - part_height) // 2
    return left, top, left + part_width, top + part_height


#: One number, or one per channel.
Numbers: TypeAlias = "float | Sequence[float]"
#: Maximum distance of a dequantized value from a whole code, in LSB: it was rounded to float32.
_NEAR = 0.01
#: How many different values may become one code, on average, before a warning.
_MERGED = 8


@dataclass(frozen=True, slots=True)
class InputPreparation:
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
            if array.dtype.kind == "f" and spec.type in CODES and spec.quantization is not None:
                raise error.advising("--quantize-inputs (quantize_inputs=True) turns real values into codes") from None
            raise


PLAIN = InputPreparation()


def preparation(
    mean: Numbers | None, std: Numbers | None, quantize: bool = False, bgr: bool = False
) -> InputPreparation:
    """Return the preparation for a mean, a standard deviation, the request for codes, and the order of channels."""
    scaling = (
        None if mean is None and std is None else Scaling.of(0 if mean is None else mean, 1 if std is None else std)
    )
    return InputPreparation(scaling, quantize, bgr)


def quantized(spec: TensorSpec, real: Array) -> Array:
    """Return the codes of real values."""
    name, codec = spec.name or "input", codec_of(spec)
    if codec is None:
        raise InputError("has no scale by which real values could become codes", name=name)
    if np.isnan(real).any():
        raise InputError("a real value is NaN, which has no code", name=name)
    return encode(codec, real)


def encode(codec: Codec, real: Array) -> Array:
    """Return the codes of real values; see `affine_codes`."""
    limits = code_limits(codec.type)
    return affine_codes(real, np.float32(codec.scale), codec.zero, limits).astype(CARRIER[codec.type])


def is_whole(value: Array) -> bool:
    """Return whether every float is a whole number."""
    return bool(np.all(value == np.rint(value)))


def codes_of_floats(spec: TensorSpec, value: Array, name: str, *, real: bool) -> Array:
    """Return the codes of floats in a dump: whole numbers are codes, real values are dequantized codes.

    Raises:
        InputError: They are neither, or lie beyond the type's range.
    """
    codec = codec_of(spec)
    low, high = code_limits(TensorType(spec.type))
    codes = value.astype(np.float64)
    if not np.isfinite(codes).all():
        raise InputError("holds NaN or infinity, which are no codes", name=name)
    if real:
        if codec is None:
            raise InputError("holds real values, but the tensor has no scale", name=name)
        codes = codes / codec.scale + codec.zero
    whole = np.rint(codes)
    if not np.all(np.abs(codes - whole) <= _NEAR) or whole.min(initial=low) < low or whole.max(initial=high) > high:
        what = f"multiples of the scale {codec.scale:g}" if real and codec is not None else "whole numbers"
        expected = f"{what}, codes {low} to {high}"
        raise InputError("holds floats that are not dequantized codes", name=name, expected=expected, got="others")
    return whole.astype(CARRIER[TensorType(spec.type)])


def takes_codes(spec: TensorSpec) -> bool:
    """Return whether the tensor holds 8-bit or 16-bit codes."""
    return spec.type in CODES


def image_paths(path: Path) -> list[Path]:
    """Return the images at a path: itself, or those in a folder, by name."""
    if path.is_dir():
        return sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    return [path] if path.suffix.lower() in SUFFIXES else []


def image(path: Path, spec: TensorSpec, how: InputPreparation) -> Array:
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
    codec = codec_of(spec)
    if codec is None or not codec.scale > 0:
        return "", {}
    step = 255 / (codec.high - codec.low)
    mean, std = (codec.zero - codec.low) * step, step / codec.scale
    text = f"; --mean {mean:.6g} --std {std:.6g} would spread 0 to 255 over all codes"
    return text, {"mean": mean, "std": std}


S = TypeVar("S", bound=Mapping[int, Array])

#: The share of values outside that is reported; clamping of fewer outliers is usual.
_SHARE = 0.01
#: Values count as outside if they exceed the range by more than this share of it: its ends are rounded.
_MARGIN = 0.05
#: Images reach at least this number of 0 to 255.
_BRIGHT = 128


@dataclass(slots=True)
class Outside:
    """The values of an input that lie outside of [low, high], counted over samples.

    Attributes:
        spec: The quantized tensor that the values are for.
        low: The real value of the lowest code.
        high: The real value of the highest code.
        values: The number of values.
        outside: How many of them lie outside, by more than the margin.
        whole: True as long as all values are whole numbers, as stored ones are.
        pixels: True as long as they are also from 0 to 255.
        top: The largest value; at least 0.
    """

    spec: TensorSpec
    low: float
    high: float
    values: int = 0
    outside: int = 0
    whole: bool = True
    pixels: bool = True
    top: float = 0.0

    @staticmethod
    def of(spec: TensorSpec) -> Outside | None:
        """Return the counter of a tensor; None if it has no codes of one scale."""
        codec = codec_of(spec)
        return None if codec is None or not codec.scale > 0 else Outside(spec, *codec.ends)

    def add(self, real: Array) -> None:
        """Count the values of a sample."""
        margin = (self.high - self.low) * _MARGIN
        self.values += real.size
        self.outside += int(np.count_nonzero((real < self.low - margin) | (real > self.high + margin)))
        self.whole = self.whole and bool(np.all(real == np.rint(real)))
        self.pixels = self.pixels and self.whole and bool(np.all((real >= 0) & (real <= 255)))
        self.top = max(self.top, float(real.max(initial=0.0)))

    def warn(self, *, has_scaling: bool) -> None:
        """Warn if more than a few values are outside."""
        if self.outside <= _SHARE * self.values:
            return
        name, share = self.spec.name or "input", 100 * self.outside / self.values
        limits = f"[{self.low:.4g}, {self.high:.4g}]"
        question = "were mean and std forgotten (--mean, --std)?"
        if has_scaling:
            question = "are mean and std right?"
        elif not self.whole:
            question = "they saturate: the model was calibrated on other samples, or these need --mean and --std"
        hint = spread_text(self.spec) if self.pixels and self.top >= _BRIGHT and not has_scaling else ""
        text = f"{name}: {share:.0f} % of its values are far outside {limits}, the range of the quantized input: "
        facts = {"outside": self.outside, "elements": self.values, "low": self.low, "high": self.high}
        warnings.warn(
            InputWarning(Statement(text + question + hint, "outside-range", name=name, **facts)), stacklevel=3
        )


def watch(samples: Iterable[S], codes: Mapping[int, TensorSpec], *, has_scaling: bool) -> Iterator[S]:
    """Yield the samples; after the last, warn of inputs that exceed what their codes can represent.

    Args:
        samples: Arrays by tensor index.
        codes: The quantized tensors that the values of float inputs are for, by tensor index.
        has_scaling: Whether the values were scaled by a mean and a standard deviation.
    """
    counters = {tensor: counter for tensor, spec in codes.items() if (counter := Outside.of(spec)) is not None}
    for sample in samples:
        for tensor, counter in counters.items():
            counter.add(sample[tensor])
        yield sample
    for counter in counters.values():
        counter.warn(has_scaling=has_scaling)


def codes_of_inputs(given: GraphView, quantized: GraphView) -> dict[int, TensorSpec]:
    """Return what holds the codes of each float input in a quantized model with the same inputs.

    That is its own input, or the result of QUANTIZE where no other operator reads the input.
    """
    found = {}
    for ours, theirs in zip(given.inputs, quantized.inputs, strict=False):
        if given.tensors[ours].type == TensorType.FLOAT32:
            readers = quantized.readers(theirs)
            is_converted = [o.builtin for o in readers] == ["QUANTIZE"]
            found[ours] = readers[0].output() if is_converted else quantized.tensors[theirs]
    return found
