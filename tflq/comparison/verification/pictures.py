"""Images as arrays, read by Pillow (extra `images`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tflq.errors import InputError, OptionError
from tflq.model.storage.reading import open_file
from tflq.typing import Array

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
