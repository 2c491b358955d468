"""RFFT2D: the two-dimensional Fourier transform of reals; half of the spectrum is given.

| operand    | shape                   | types     | quantization |
|------------|-------------------------|-----------|--------------|
| x          | ..., H, W               | float32   | none         |
| fft_length | 2                       | int32     | none         |
| y          | ..., FH, FW / 2 + 1     | complex64 | none         |

Options: none. fft_length = FH, FW: powers of two; the image is cut or padded with zeros at its far ends.
Where FW is 1, columns are not transformed, as in the source.
Exactness: exact on the same libm (cos and sin in float64).
Source: LiteRT 2.3 rfft2d.cc; fft2d 1.0 fftsg2d.c rdft2d.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces, most
from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integers, require_rank
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.fourier import transform_columns, transform_image, transform_rows
from tflq.engine.numerics.fourier_turns import Points, leaf_turns, real_turns, turns
from tflq.typing import Array

#: Work of a transform for each number.
_EACH = 80


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Sizes in elements and the factors of both directions."""

    height: int
    width: int
    shape: Shape  # of the output
    rows: Points
    reals: Points
    columns: Points
    leaf: Points


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse lengths that are no powers of two."""
    x, length = node.input(0), node.input(1)
    node.check(len(x.shape) >= 2, "number of dimensions", x, expected="at least 2", got=len(x.shape))
    require_rank(node, length, 1)
    values = integers(node, 1)
    node.check(
        len(values) == 2 and all(v > 0 and v & (v - 1) == 0 for v in values),
        "fft_length",
        length,
        expected="two powers of two",
        got=list(values),
    )
    height, width = values
    node.claim(64 * (height + width), "factors of the transform")
    shape = (*x.shape[:-2], height, width // 2 + 1)
    data = OpData(height, width, shape, turns(width // 2), real_turns(width), turns(height), leaf_turns())
    return Prepared((shape,), data, evaluate, scratch=8 * height * (width + 4))


@filling(lambda data, *_: (data.shape, np.complex64))
def evaluate(data: OpData, out: Array, x: Array, fft_length: Array) -> Call:
    """Source: Rfft2dHelper. Rounding: float64 throughout, float32 at the end."""
    images = x.reshape(prod(x.shape[:-2]), *x.shape[-2:])[:, : data.height, : data.width]
    a = np.zeros((data.height, data.width + 2))
    spectra = out.view(np.float32).reshape(len(images), data.height, 2 * (data.width // 2 + 1))
    if data.width == 1 or a.size > most(_EACH):
        return partial(_one_by_one, data, images, a, spectra)
    room = a.view(np.complex128), np.empty(data.height, np.complex128)
    return fill_spectra.bound(images, spectra, a, *room, data.rows, data.reals, data.columns, data.leaf)


def _one_by_one(data: OpData, images: Array, a: Array, out: Array) -> None:
    for image, target in zip(images, out, strict=True):
        a[...] = 0
        a[: image.shape[0], : image.shape[1]] = image
        _transform(data, a)
        _untangle(a)
        _unpack(a)
        spread = a[:, : target.shape[1]]
        target[:, ::2], target[:, 1::2] = spread[:, ::2], -spread[:, 1::2]


@in_pieces(lambda images, out, a, *_: len(images) * a.size * _EACH, images="n", out="n")
@compiled
def fill_spectra(
    images: Array,
    out: Array,
    a: Array,
    z: Points,
    column: Points,
    rows: Points,
    reals: Points,
    columns: Points,
    leaf: Points,
) -> None:
    """Fill `out` (N, FH, FW + 2) with pairs of the spectra of `images` (N, at most FH, at most FW).

    `a` (FH, FW + 2) and `z` are the same memory, as numbers and as pairs; FW is at least 2. The steps are those of
    `_one_by_one`.

    Prepare guarantees: these shapes; `column` has FH points, and the tables are those of these sizes.
    """
    height, last = a.shape[0], a.shape[1] - 2
    half = height // 2
    for n in range(images.shape[0]):
        a[:] = 0
        for i in range(images.shape[1]):
            for j in range(images.shape[2]):
                a[i, j] = images[n, i, j]
        transform_image(z, column, rows, reals, columns, leaf)
        for i in range(1, half):
            low, high = a[i], a[height - i]
            for j in range(2):
                high[j] = 0.5 * (low[j] - high[j]) if j == 0 else 0.5 * (low[j] + high[j])
                low[j] -= high[j]
            high[last], high[last + 1] = high[1], high[0]
            low[last], low[last + 1] = high[last], -high[last + 1]
            high[0], high[1] = low[0], -low[1]
        nyquist, middle = a[0, 1], a[half, 1]
        a[0, last + 1] = a[0, 1] = 0
        a[half, last] = middle
        a[half, last + 1] = a[half, 1] = 0
        a[0, last] = nyquist
        for i in range(height):
            for j in range(0, last + 2, 2):
                out[n, i, j] = a[i, j]
                out[n, i, j + 1] = -a[i, j + 1]


def _transform(data: OpData, a: Array) -> None:
    """Source: rdft2d."""
    if data.width == 1:
        a[:, 1] = a[:, 0]
        a[:, 0] += 0.0  # takes the sign off a zero
        return
    z = a.view(np.complex128)
    transform_rows(z, data.rows, data.leaf, data.reals)
    transform_columns(z, data.width // 2, data.columns, data.leaf)


def _mirror(a: Array) -> tuple[Array, Array]:
    """Return rows 1 to half, and those that hold the negative frequencies of each."""
    half = a.shape[0] // 2
    return a[1:half], a[:half:-1][: max(half - 1, 0)]


def _untangle(a: Array) -> None:
    """Separate frequencies 0 and FW/2, which went through the columns as one complex number. Source: rdft2d_sub."""
    low, high = _mirror(a)
    high[:, 0] = 0.5 * (low[:, 0] - high[:, 0])
    low[:, 0] -= high[:, 0]
    high[:, 1] = 0.5 * (low[:, 1] + high[:, 1])
    low[:, 1] -= high[:, 1]


def _unpack(a: Array) -> None:
    """Give frequency FW/2 its own column, and every row its value. Source: Rfft2dReorder, except for the last signs."""
    half, last = a.shape[0] // 2, a.shape[1] - 2
    low, high = _mirror(a)
    real, imaginary = high[:, 0].copy(), high[:, 1].copy()
    high[:, last], high[:, last + 1] = imaginary, real
    low[:, last], low[:, last + 1] = imaginary, -real
    high[:, 0], high[:, 1] = low[:, 0], -low[:, 1]
    nyquist = a[0, 1]
    a[0, last + 1] = a[0, 1] = 0
    a[half, last] = a[half, 1]
    a[half, last + 1] = a[half, 1] = 0
    a[0, last] = nyquist


KERNELS = (Kernel("RFFT2D", "float32 int32 -> complex64", prepare, (1, 1), shape_operands=(1,), exactness=SAME_LIBM),)
