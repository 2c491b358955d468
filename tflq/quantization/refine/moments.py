"""Sums over samples of what operators multiply, in both models.

Operators with weights as matrix products: y[o] = bias[o] + sum over k of weights[o, k] * row[k], row by row.

The row of CONV_2D and DEPTHWISE_CONV_2D is the image patch of an output pixel; that of FULLY_CONNECTED is the last
dimension. Output channels with different inputs (depthwise, groups) belong to different groups.

Sums of products of rows, in float32 within blocks of rows and in float64 over blocks.

A block has ROWS rows. If rows are codes minus their zero point (8 bits: magnitudes up to 255), a block's sums are
integers up to 256 * 255^2 < 2^24: exact in any order of addition. Otherwise a block's sum is off by at most ROWS *
2^-24 (1.6e-5) of the sum of the magnitudes of its terms, to first order (Higham 2002, "Accuracy and stability of
numerical algorithms", section 3.1). Adding blocks in float64 adds no further error.

Sums over calibration samples of an operator's inputs, in the float model and in the integer one.

Inputs that the float model feeds to each operator with weights: the sum of its rows, sample by sample.

Restore means and variances of output channels to the float model's, before the activation function.

An operator's rows f (float model) and q (integer model) have means and second moments. Those of its outputs W f and V
q, with V the values of the codes, follow by linearity. Only rows of the integer executor are sampled.

- Analytic bias correction adds (W - V) E[f]; empirical bias correction adds W E[f] - V E[q].
- Variance matching multiplies the scale of channel o by sqrt(var(W f)[o] / var(V q)[o]).

Sources: Nagel et al. 2019, "Data-free quantization through weight equalization and bias correction"; Finkelstein et al.
2019, "Fighting quantization bias with bias"; He and Cheng 2018, "Learning compression from limited unlabeled data"
(re-normalization, for variances).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.kernels.geometry.windows import Axis, Window, axis, patches_into
from tflq.quantization.params import Range, extent
from tflq.quantization.recipe import BiasCorrection
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.operands import Multiplied
from tflq.typing import Array, Floats, Reals

#: Bytes of patches that are held at a time.
_PATCHES = 4 << 20


@dataclass(frozen=True, slots=True, eq=False)
class MatrixProduct:
    """One operator of a float model: G groups of O output channels, each of which sees K inputs.

    K counts kernel rows, columns and channels of the group, in that order.
    """

    multiplied: Multiplied
    groups: int
    shape: tuple[int, ...]  # of the weights
    depthwise: bool  # weights are 1, KH, KW, G * O instead of G * O, KH, KW, C / G
    steps: tuple[int, ...] | None  # padding, stride_h, stride_w, dilation_h, dilation_w; None: rows lie side by side

    @property
    def taps(self) -> int:
        """Pixels that a row sees."""
        return 1 if self.steps is None else self.shape[1] * self.shape[2]

    @property
    def inputs(self) -> int:
        """K."""
        return self.taps if self.depthwise else self.taps * int(self.shape[-1])

    def matrix(self, weights: Array) -> Array:
        """Return the weights, or anything of their shape, as [G, O, K]."""
        if not self.depthwise:
            return weights.reshape(self.groups, self.shape[0] // self.groups, -1)
        taps = weights.reshape(-1, self.groups, self.shape[3] // self.groups)
        return np.ascontiguousarray(taps.transpose(1, 2, 0))

    def weights(self, matrix: Array) -> Array:
        """Return the inverse of `matrix`."""
        if not self.depthwise:
            return matrix.reshape(self.shape)
        return np.ascontiguousarray(matrix.transpose(2, 0, 1)).reshape(self.shape)

    def row_count(self, x: Array) -> int:
        """Return how many rows the input `x` has."""
        if self.steps is None:
            return int(x.size) // self.shape[1]
        vertical, horizontal = self._axes(x.shape)
        return int(x.shape[0]) * vertical.out * horizontal.out

    def blocks(self, x: Floats) -> Iterator[Floats]:
        """Yield the rows of the input `x`, some at a time, [N, taps * C]; padding is 0. All but the last N are equal.

        N is a multiple of 256 if there is more than one block.
        """
        if self.steps is None:
            yield x.reshape(-1, self.shape[1])
            return
        vertical, horizontal = self._axes(x.shape)
        window = Window.over(vertical, horizontal)
        if window.is_pointwise:
            yield x.reshape(-1, x.shape[3])
            return
        width, count = window.taps * x.shape[3], self.row_count(x)
        size = min(count, max(256, _PATCHES // (4 * width) // 256 * 256))
        image = np.ascontiguousarray(x)
        for first in range(0, count, max(1, size)):
            patches = np.empty((min(size, count - first), width), np.float32)
            patches_into(image, 0, window, first, 0, patches)
            yield patches

    def row_sum(self, x: Floats) -> Reals:
        """Return the sum over all rows of the input `x`, [G, K]; padding is 0.

        Every tap of a window sees whole rows and columns of the image. The sums therefore come from two small matrices:
        which image rows each kernel row sees, and likewise for columns.
        """
        if self.steps is None:
            rows: Reals = x.reshape(-1, self.shape[1]).sum(axis=0, dtype=np.float64)
            return rows[None]
        vertical, horizontal = self._axes(x.shape)
        n, height, width, channels = x.shape
        kernel_rows = np.matmul(_seen(vertical), np.ascontiguousarray(x).reshape(n, height, width * channels))
        columns = np.matmul(_seen(horizontal), kernel_rows.reshape(n, vertical.kernel, width, channels))
        return self.by_group(columns.sum(axis=0, dtype=np.float64).reshape(-1))

    def by_group(self, row: Reals) -> Reals:
        """Return a row [taps * C] as [G, K]."""
        grouped = row.reshape(self.taps, self.groups, -1).transpose(1, 0, 2)
        return np.ascontiguousarray(grouped).reshape(self.groups, -1)

    def _axes(self, image: tuple[int, ...]) -> tuple[Axis, Axis]:
        assert self.steps is not None
        padding, *steps = self.steps
        vertical = axis(padding, image[1], self.shape[1], steps[0], steps[2])
        horizontal = axis(padding, image[2], self.shape[2], steps[1], steps[3])
        assert vertical is not None, "the model has been run"
        assert horizontal is not None, "the model has been run"
        return vertical, horizontal


def _seen(along: Axis) -> Floats:
    """Return [kernel, size]: for each tap, the number of window positions at which it sees each pixel (0 or 1)."""
    visible = np.zeros((along.kernel, along.size), np.float32)
    for tap in range(along.kernel):
        pixels = np.arange(along.out) * along.stride - along.before + tap * along.dilation
        visible[tap, pixels[(pixels >= 0) & (pixels < along.size)]] = 1
    return visible


def matrix_product(model: FloatModel, m: Multiplied) -> MatrixProduct | None:
    """Return an operator's weights as matrices; None if it is of another kind."""
    op, options, shape = (
        model.graph.op(m.operator).name,
        model.graph.op(m.operator).options,
        model.constants[m.tensor].shape,
    )
    if op == "FULLY_CONNECTED":
        return MatrixProduct(m, 1, shape, depthwise=False, steps=None)
    if op not in ("CONV_2D", "DEPTHWISE_CONV_2D") or options is None:
        return None
    names = ("padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    steps = tuple(int(options[name]) for name in names)
    channels = model.graph.tensors[m.data].shape[3]
    depthwise = op == "DEPTHWISE_CONV_2D"
    return MatrixProduct(m, channels if depthwise else channels // shape[3], shape, depthwise, steps)


#: Rows whose products are added in float32.
ROWS = 256
#: Channels of a depthwise operator that are processed together: their sums stay in the first-level cache.
_LANES = 64


def row_products(product: MatrixProduct, left: Floats, right: Floats) -> Reals:
    """Return the sum over rows of left_row right_row^T, [G, K, K], of two inputs of an operator."""
    total = np.zeros((product.groups, product.inputs, product.inputs))
    same = left is right
    for a, b in zip(product.blocks(left), product.blocks(right), strict=True):
        if product.groups == 1:
            _dense(a, a if same else b, total[0])
        elif product.depthwise:
            _depthwise(a, a if same else b, product.taps, same, total)
        else:
            _group(product, a, a if same else b, total)
    return total


def _dense(a: Floats, b: Floats, total: Reals) -> None:
    """Add to `total` [K, K], block by block."""
    for first in range(0, len(a), ROWS):
        total += a[first : first + ROWS].T @ b[first : first + ROWS]


def _group(product: MatrixProduct, a: Floats, b: Floats, total: Reals) -> None:
    """Add to `total` [G, K, K]; rows [N, taps, G, C / G] are sorted by group first."""
    shape = (ROWS, product.taps, product.groups, -1)
    for first in range(0, len(a), ROWS):
        parts = [x[first : first + ROWS] for x in (a, b)]
        left, right = (
            x.reshape(len(x), *shape[1:]).transpose(2, 0, 1, 3).reshape(product.groups, len(x), -1) for x in parts
        )
        total += left.transpose(0, 2, 1) @ right


def _depthwise(a: Floats, b: Floats, taps: int, same: bool, total: Reals) -> None:
    """Add to `total` [G, taps, taps]; rows are [N, taps * G]."""
    sums = np.zeros((taps, taps, total.shape[0]))
    _tap_products_into(a, b, taps, same, sums)
    if same:
        lower = np.tril(np.ones((taps, taps)), -1)[:, :, None] * sums
        sums += lower.transpose(1, 0, 2)
    total += sums.transpose(2, 0, 1)


@compiled
def _tap_products_into(left: Array, right: Array, taps: Int, lower: bool, total: Array) -> None:
    """Compute total[i, j, c] += sum over rows r of left[r, i, c] * right[r, j, c]; with `lower` only for j <= i.

    The caller guarantees: `left` and `right` are (rows, taps * channels) and `total` is (taps, taps, channels).
    """
    rows, channels = left.shape[0], left.shape[1] // taps
    part = np.zeros((taps, taps, _LANES), np.float32)
    for start in range(0, channels, _LANES):
        lanes = min(_LANES, channels - start)
        for first in range(0, rows, ROWS):
            part[:] = 0
            for r in range(first, min(first + ROWS, rows)):
                for i in range(taps):
                    a = left[r, i * channels + start : i * channels + start + lanes]
                    for j in range(i + 1 if lower else taps):
                        b = right[r, j * channels + start : j * channels + start + lanes]
                        sums = part[i, j]
                        for c in range(lanes):
                            sums[c] += a[c] * b[c]
            for i in range(taps):
                for j in range(taps):
                    for c in range(lanes):
                        total[i, j, start + c] += part[i, j, c]


#: Diagonal added before solving, relative to the mean diagonal.
DAMPING = 0.01
#: Diagonal for weights that are matched to their inputs: with less, few samples are fitted too closely.
MATCHING = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over N rows f (float model) and q (the values of the integer model's codes).

    First moments are [G, K], second ones [G, K, K] or None unless they are requested. `refine.squares` describes their
    precision.
    """

    count: int
    first_float: Reals
    first_integer: Reals
    float_float: Reals | None = None  # sum of f f^T
    float_integer: Reals | None = None  # sum of f q^T
    integer_integer: Reals | None = None  # sum of q q^T

    def means(self) -> tuple[Reals, Reals]:
        """Return the mean rows of the float and of the integer model, [G, K]."""
        count = max(1, self.count)
        return self.first_float / count, self.first_integer / count

    def centred(self) -> Moments:
        """Return the moments about the means: the remainder if a bias compensates for means."""
        f, q = self.first_float, self.first_integer

        def about(second: Reals | None, left: Reals, right: Reals) -> Reals | None:
            return None if second is None else second - left[:, :, None] * right[:, None, :] / max(1, self.count)

        return Moments(
            self.count,
            np.zeros_like(f),
            np.zeros_like(q),
            about(self.float_float, f, f),
            about(self.float_integer, f, q),
            about(self.integer_integer, q, q),
        )


@dataclass(frozen=True, slots=True)
class Needed:
    """The second moments that are needed."""

    float_float: bool = False  # sum of f f^T
    float_integer: bool = False  # sum of f q^T
    squares: bool = False  # sum of q q^T

    @property
    def floats(self) -> bool:
        """True if rows of the float model are needed, not their mean alone."""
        return self.float_float or self.float_integer


def moments(
    product: MatrixProduct,
    inputs: Iterable[tuple[Floats, Floats | None]],
    unit: float,
    first_float: Reals,
    needed: Needed,
) -> Moments:
    """Return the moments of an operator's rows over all samples, some of them at a time.

    `inputs` are its inputs in the integer model, in steps of size `unit`, and in the float model, if needed;
    `first_float` is the sum of the float model's rows.
    """
    count, first = 0, np.zeros_like(first_float)
    shape = (product.groups, product.inputs, product.inputs)
    ff, fq, qq = (np.zeros(shape) if n else None for n in (needed.float_float, needed.float_integer, needed.squares))
    for q, f in inputs:
        count += product.row_count(q)
        first += product.row_sum(q)
        if qq is not None:
            qq += row_products(product, q, q)
        if ff is not None and f is not None:
            ff += row_products(product, f, f)
        if fq is not None and f is not None:
            fq += row_products(product, f, q)
    return Moments(
        count, first_float, first * unit, ff, None if fq is None else fq * unit, None if qq is None else qq * unit**2
    )


def damp(square: Reals, damping: float = DAMPING) -> Reals:
    """Return second moments [G, K, K] made positive definite: inputs that are always 0 get almost no weight."""
    size = square.shape[1]
    weight = np.trace(square, axis1=1, axis2=2) / max(1, size)
    return square + np.eye(size) * np.where(weight > 0, damping * weight, 1.0)[:, None, None]


def match(targets: Reals, cross: Reals, square: Reals) -> Reals:
    """Return real weights [G, O, K] that give on the integer model's rows what `targets` give on the float model's.

    They minimize the sum of |targets f - w q|^2 + damping |w - targets|^2 over w. With C the sum of f q^T and S that of
    q q^T, they are targets + targets (C - S) S_damped^-1.
    """
    missing = (targets @ (cross - square)).transpose(0, 2, 1)
    return targets + np.linalg.solve(damp(square, MATCHING), missing).transpose(0, 2, 1)


@dataclass(frozen=True, slots=True, eq=False)
class RowSums:
    """The sum of the rows that an operator sees, [N, G, K]: an observer of its data."""

    product: MatrixProduct
    sums: Reals = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def update(self, samples: Array) -> RowSums:
        """Return these sums and those of `samples`."""
        shape = samples.shape[1:] if self.product.steps is None else (-1, *samples.shape[-3:])
        sums = np.array([self.product.row_sum(sample.reshape(shape)) for sample in samples])
        return self.merge(replace(self, sums=sums))

    def merge(self, other: RowSums) -> RowSums:
        """Return the sums of both, this one's samples first."""
        return replace(self, sums=np.concatenate([self.sums, other.sums])) if self.sums.size else other

    def total(self, numbers: Sequence[int]) -> Reals:
        """Return the sum over these samples, numbered as they were seen, [G, K]."""
        total: Reals = self.sums[list(numbers)].sum(axis=0)
        return total

    @property
    def range(self) -> Range:
        """The extremes of the sums."""
        return extent(self.sums)


#: A channel's scale changes by at most this factor.
REACH = 1.25


def bias_correction(kind: BiasCorrection, floats: Reals, stored: Reals, moments: Moments) -> Reals:
    """Return the correction of the bias, [G, O], for float weights and values of stored ones, [G, O, K]."""
    mean_float, mean_integer = moments.means()
    means = mean_integer if kind == BiasCorrection.EMPIRICAL else mean_float
    return _products(floats, mean_float) - _products(stored, means)


def variance_ratio(floats: Reals, stored: Reals, moments: Moments) -> Reals:
    """Return the factor for the scale of each output channel, [G, O]; 1 for channels that do not vary."""
    centred = moments.centred()
    assert centred.float_float is not None  # they were requested
    assert centred.integer_integer is not None
    float_variance = np.einsum("gok,gok->go", floats @ centred.float_float, floats)
    integer_variance = np.einsum("gok,gok->go", stored @ centred.integer_integer, stored)
    varies = (float_variance > 0) & (integer_variance > 0)
    ratio: Reals = np.sqrt(
        np.divide(float_variance, integer_variance, where=varies, out=np.ones_like(integer_variance))
    )
    return np.clip(ratio, 1 / REACH, REACH)


def _products(weights: Reals, row: Reals) -> Reals:
    products: Reals = np.einsum("gok,gk->go", weights, row)
    return products
