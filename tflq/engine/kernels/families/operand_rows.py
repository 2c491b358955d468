"""Rows that are multiplied by a matrix, and how they come out of an operand: as they lie there, or as patches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from tflq.engine.jit.compiled import Compiled
from tflq.engine.kernels.geometry.patches import pack_patches, packed_geometry, patches_into
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.microkernels.driving import pack_rows
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.contract import centre_into
from tflq.typing import Array


class Rows(Protocol):
    """How the rows of a product come out of an operand's codes."""

    packer: ClassVar[Compiled[..., None]]  # see microkernels.driving.product_into

    @property
    def zero_point(self) -> ZeroPoint:
        """Zero point of the codes."""
        ...

    def codes(self, x: Array) -> Array:
        """Return the operand as the packer and `fill` read it."""
        ...

    def geometry(self, group: int) -> Any:
        """Return the packer's other argument, for one group."""
        ...

    def fill(self, codes: Array, first_row: int, group: int, out: Array) -> None:
        """Write rows from `first_row` on, centred, in the type of `out` (R, K)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """Rows that lie one behind the other: `count` rows of `length` values. What comes behind them is not read."""

    zero_point: ZeroPoint
    count: int
    length: int

    packer: ClassVar[Compiled[..., None]] = pack_rows

    def codes(self, x: Array) -> Array:
        """Return the codes as (count, length)."""
        return np.ascontiguousarray(x).reshape(-1)[: self.count * self.length].reshape(self.count, self.length)

    def geometry(self, group: int) -> int:
        """Return 0: the packer needs no geometry."""
        return 0

    def fill(self, codes: Array, first_row: int, group: int, out: Array) -> None:
        """Write the rows; see Rows.fill."""
        centre_into(codes[first_row : first_row + len(out)].reshape(-1), int(self.zero_point), out.reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """Patches of an image N, H, W, C: each group sees `depth` channels of its own."""

    zero_point: ZeroPoint
    window: Window  # pixels
    depth: int

    packer: ClassVar[Compiled[..., None]] = pack_patches

    def codes(self, x: Array) -> Array:
        """Return the image."""
        return np.ascontiguousarray(x)

    def geometry(self, group: int) -> Array:
        """Return the geometry of the packed rows; see packed_geometry."""
        return packed_geometry(self.window, group * self.depth, self.depth)

    def fill(self, codes: Array, first_row: int, group: int, out: Array) -> None:
        """Write the rows; see Rows.fill."""
        patches_into(codes, int(self.zero_point), self.window, first_row, group * self.depth, out)
