"""RESIZE_NEAREST_NEIGHBOR: every output pixel is a copy of one input pixel.

| operand | shape              | types                        | quantization |
|---------|--------------------|------------------------------|--------------|
| x       | (N, H, W, C)       | every 8, 16 and 32 bit type  | passed by    |
| size    | (2): height, width | int32                        |              |
| y       | (N, height, width, | as x                         | passed by    |
|         | C)                 |                              |              |

Options: align_corners, half_pixel_centers.
Source: LiteRT 2.3, resize_nearest_neighbor.cc; reference/resize_nearest_neighbor.h GetNearestNeighbor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.families.element_types import BITS_8, BITS_16, BITS_32
from tflq.engine.kernels.families.nearest_positions import eval_nearest
from tflq.engine.kernels.families.resizing import ratio, resized_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare input rows and columns, one for every output row and column."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    shape = resized_shape(node, smallest=0)
    align, half = bool(node.options["align_corners"]), bool(node.options["half_pixel_centers"])
    rows, columns = (nearest(x.shape[d], shape[d], align, half) for d in (1, 2))
    for chosen, d in ((rows, 1), (columns, 2)):
        node.check(not chosen.size or chosen.min() >= 0, f"dimension {d}", x, expected="at least 1", got=x.shape[d])
    return Prepared((shape,), (rows, columns), eval_nearest)


def nearest(size: int, new_size: int, align: bool, half: bool) -> Array:
    """Compute the input position of every output position, in float32.

    Rounding: half away from zero with align_corners, else down.
    """
    real = (np.arange(new_size, dtype=np.float32) + np.float32(0.5 if half else 0)) * ratio(size, new_size, align)
    rounded = np.floor(real.astype(np.float64) + 0.5 if align else real)  # positions are not negative
    positions = np.minimum(rounded.astype(np.int64), size - 1)
    return np.maximum(positions, 0) if half and size else positions


def prepare_at_corners(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without the option half_pixel_centers. Source: tflite-micro (2025) resize_nearest_neighbor.cc."""
    fields = {**node.options.fields, "half_pixel_centers": False}
    return prepare(replace(node, options=replace(node.options, fields=fields)), arithmetic)


_X = f"{BITS_8}|{BITS_16}|{BITS_32}"

_ROW = Kernel("RESIZE_NEAREST_NEIGHBOR", f"{_X} int32 -> {_X}", prepare, (1, 4), shape_operands=(1,))
_AT_CORNERS = Kernel("RESIZE_NEAREST_NEIGHBOR", _ROW.types, prepare_at_corners, (1, 4), shape_operands=(1,))

KERNELS = (_ROW, *valid(micro(until="litert-2.1"), _AT_CORNERS))
