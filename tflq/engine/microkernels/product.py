"""Rows of codes times one constant matrix and through an output pipeline, bound to the best micro-kernel for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.jit.addresses import Unavailable
from tflq.engine.jit.compiled import Compiled
from tflq.engine.jit.mapped import release
from tflq.engine.microkernels import packing
from tflq.engine.microkernels.driving import driver, rows_at_once
from tflq.engine.microkernels.forms import Form, Tile, available
from tflq.engine.microkernels.kernel import Kernel
from tflq.engine.microkernels.roundings import Scaling
from tflq.engine.microkernels.tiles import address_of
from tflq.engine.numerics.stages import OutputPipeline
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """The source of a product's rows: codes of a type with a zero point, and how they become rows."""

    dtype: np.dtype[Any]
    zero_point: int
    packer: Compiled[..., None]  # see driving.pack_rows

    @property
    def largest(self) -> int:
        """The largest magnitude of a code less the zero point."""
        info = np.iinfo(self.dtype)
        return max(abs(int(info.min) - self.zero_point), abs(int(info.max) - self.zero_point))


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProduct:
    """A bound product: call it with (out, first_row, codes, geometry), see driving.product_into."""

    kernel: Kernel
    run: Compiled[..., None]
    constants: tuple[Any, ...]  # of the run, from `length` on
    shape: tuple[int, int]  # (K, N)

    def __call__(self, out: Array, first_row: int, codes: Array, geometry: Any) -> None:
        """Fill the product's columns of `out` (R, C) from row `first_row` of the codes on."""
        self.run(out.view(np.uint8), first_row, self._read(codes), geometry, *self.constants)

    def into(self, out: Array, first_row: int, codes: Array, geometry: Any) -> Callable[[], None]:
        """Bind the product's arguments; return the call."""
        return self.run.bound(out.view(np.uint8), first_row, self._read(codes), geometry, *self.constants)

    def _read(self, codes: Array) -> Array:
        """Return codes as the packer reads them: modulo 2**8 if packed values have 8 bits, see `_bind`."""
        return codes if self.kernel.tile.form.is_wide else codes.view(np.uint8)


def fuse(
    codes: Codes, matrices: Sequence[Array], rows: int, bias: Array, pipeline: OutputPipeline, form: Form | None = None
) -> tuple[IntegerProduct, ...]:
    """Prepare products with centred `matrices` side by side, with all of `pipeline` done on sums in registers.

    Matrices are (K, N) of equal shapes, K and N at least 1, `bias` is as long as all columns together. `rows` is the
    number of rows, as far as it decides which kernel is best. Return no product if the result would not be exact, or if
    this processor has no form for it; `form` is the best of the processor that takes a matrix, unless it is given.
    """
    limits = (int(pipeline.zero_point), *pipeline.clamp)
    products: list[IntegerProduct] = []
    for matrix in matrices:
        at = slice(len(products) * matrix.shape[1], (len(products) + 1) * matrix.shape[1])
        largest = _largest_sum(codes, matrix) + int(np.abs(bias[at].astype(np.int64)).max())
        scaling = Scaling.of(pipeline.stage, largest)
        if scaling is None:
            return ()
        bound = _bind(codes, matrix, at, rows, bias[at], scaling, limits, pipeline.dtype.name, form)
        if bound is None:
            return ()
        products.append(bound)
    return tuple(products)


def summed(
    codes: Codes, matrices: Sequence[Array], rows: int, accumulator: np.dtype[Any], form: Form | None = None
) -> tuple[IntegerProduct, ...]:
    """Prepare products that give int32 sums; return none if a wider accumulator could hold more than int32."""
    products: list[IntegerProduct] = []
    for matrix in matrices:
        at = slice(len(products) * matrix.shape[1], (len(products) + 1) * matrix.shape[1])
        if accumulator != np.int32 and _largest_sum(codes, matrix) >= 2**31:
            return ()
        bias = np.zeros(matrix.shape[1], np.int32)
        bound = _bind(codes, matrix, at, rows, bias, Scaling((), ()), (0, -(2**31), 2**31 - 1), "int32", form)
        if bound is None:
            return ()
        products.append(bound)
    return tuple(products)


def _largest_sum(codes: Codes, matrix: Array) -> int:
    """Return the largest magnitude that a sum of products can have."""
    return packing.largest_column(matrix) * codes.largest


def _bind(
    codes: Codes,
    matrix: Array,
    columns: slice,
    rows: int,
    bias: Array,
    scaling: Scaling,
    limits: tuple[int, int, int],
    code: str,
    form: Form | None,
) -> IntegerProduct | None:
    fitting = _fitting(codes, matrix, form)
    if fitting is None:
        return None
    form, offsets = fitting
    length, width = matrix.shape
    terms = packing.column_terms(matrix, offsets)
    release(matrix)  # the panels hold the weights from here on
    tile = form.tile(width)
    kernel = Kernel(tile if rows > 1 else Tile(form, 1, tile.vectors), scaling.steps, code)
    own = tuple(values if len(values) == 1 else values[columns] for values in scaling.constants)
    try:
        at = address_of(kernel)
    except Unavailable:
        return None
    shift, packed = codes.zero_point - offsets.left, packing.panels(matrix, tile, offsets.right)
    filled = packed.shape[1] * form.group
    constants = (
        length,
        shift if form.is_wide else shift % (1 << 8),
        offsets.left if form.is_wide else offsets.left % (1 << 8),
        -offsets.right,
        at,
        kernel.tile.rows,
        tile.columns,
        np.dtype(code).itemsize,
        filled,
        rows_at_once(kernel.tile.rows, filled),
        packed,
        packing.constants(tile, bias + terms, own, width),
        *limits,
        columns.start,
        width,
    )
    return IntegerProduct(kernel, driver(codes.packer, form.left), constants, (length, width))


def _fitting(codes: Codes, matrix: Array, form: Form | None) -> tuple[Form, packing.Offsets] | None:
    """Return the best form whose operands hold `codes` and `matrix`: a wide one if weights need more than 8 bits."""
    for candidate in (form,) if form else available(codes.dtype.itemsize > 1):
        offsets = packing.offsets(candidate, matrix, codes.dtype, codes.zero_point)
        if offsets is not None:
            return candidate, offsets
    return None
