"""What a micro-kernel does, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tflq.numerics.microkernels.forms import Tile
from tflq.numerics.microkernels.roundings import Step

#: Bytes of an element.
SIZES: Mapping[str, int] = MappingProxyType({"int8": 1, "uint8": 1, "int16": 2, "int32": 4, "float32": 4, "float64": 8})


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a micro-kernel does: the sums of a tile, the steps that scale them, and the type of the codes."""

    tile: Tile
    steps: tuple[Step, ...]
    code: str  # type of the codes: "int8", "uint8", "int16" or "int32"

    @property
    def constants(self) -> tuple[str, ...]:
        """Types of what a panel has one of for each column: the bias, then each step's constants."""
        return ("int32", *(kind for step in self.steps for kind in step.types))
