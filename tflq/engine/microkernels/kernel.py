"""Descriptions of micro-kernels, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tflq.engine.microkernels.forms import Form, Tile
from tflq.engine.microkernels.roundings import Step

#: Bytes of an element.
SIZES: Mapping[str, int] = MappingProxyType({"int8": 1, "uint8": 1, "int16": 2, "int32": 4, "float32": 4, "float64": 8})


@dataclass(frozen=True, slots=True)
class Kernel:
    """A micro-kernel: the sums of a tile, the steps that scale them, and the type of the codes."""

    tile: Tile
    steps: tuple[Step, ...]
    code: str  # type of the codes: "int8", "uint8", "int16" or "int32"

    @property
    def constants(self) -> tuple[str, ...]:
        """Types of the constants that a panel has for each column: the bias, then each step's constants."""
        return ("int32", *(kind for step in self.steps for kind in step.types))


@dataclass(frozen=True, slots=True)
class FloatTile:
    """Sums of `rows` rows by `vectors` registers of `lanes` columns.

    If `fused`, a sum begins with the bias, takes each product by one fused multiply-add, and flushes subnormal numbers.
    """

    rows: int
    vectors: int
    lanes: int
    fused: bool = False

    @property
    def columns(self) -> int:
        """The number of columns of a tile; a panel of weights has as many."""
        return self.vectors * self.lanes


#: Number of int16 values in 128 bits, the unit in which interleaving instructions work.
_PART = 8


@dataclass(frozen=True, slots=True)
class TapKernel:
    """A kernel for `width` elements of a line at a time: sums over taps, and the steps that scale them."""

    form: Form  # of int16 pairs
    left: str  # type of the codes that taps see: "int8", "uint8" or "int16"
    steps: tuple[Step, ...]
    code: str  # type of the codes that are written

    @property
    def width(self) -> int:
        """The number of elements computed at a time: two registers of sums."""
        return 2 * self.form.lanes

    @property
    def order(self) -> tuple[int, ...]:
        """The element that each lane of two registers holds: interleaving takes lower and upper halves of 128 bits."""
        parts = range(0, self.width, _PART)
        halves = [[part + half + i for part in parts for i in range(_PART // 2)] for half in (0, _PART // 2)]
        return (*halves[0], *halves[1])

    @property
    def constants(self) -> tuple[str, ...]:
        """Types of the constants of each lane: the bias, then each step's constants."""
        return ("int32", *(kind for step in self.steps for kind in step.types))


@dataclass(frozen=True, slots=True)
class SumKernel:
    """A kernel for sums of two codes: the steps that scale each of them, the sign of the second, those of the sum."""

    lanes: int
    left: str  # type of both operands' codes: "int8", "uint8" or "int16"
    first: tuple[Step, ...]
    second: tuple[Step, ...]
    sign: int  # 1 or -1
    steps: tuple[Step, ...]
    code: str  # type of the codes that are written
