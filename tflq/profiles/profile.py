"""What a profile is: a name, where it comes from, its arithmetic and its kernel table."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from tflq.kernels.kernel import KernelTable, Overlay
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import DoubleRounding, HalfUpTwice, SingleRounding
from tflq.profiles.measured import Measured

_NONE: KernelTable = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Source:
    """The runtime that a profile stands for."""

    package: str
    version: str
    resolver: str
    cpu: str


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One runtime's exact semantics."""

    name: str
    source: Source
    arithmetic: Arithmetic
    kernels: KernelTable

    def derive(
        self, name: str, source: Source | None = None, arithmetic: Arithmetic | None = None,
        kernels: KernelTable = _NONE, without: Collection[str] = (),
    ) -> Profile:  # fmt: skip
        """A profile like this one but for what is given: rows of `kernels` come before its own and replace those of
        the same types; the operators in `without` are left out.
        """
        return Profile(
            name=name,
            source=source or self.source,
            arithmetic=arithmetic or self.arithmetic,
            kernels=Overlay(self.kernels, kernels, without) if kernels or without else self.kernels,
        )

    def within(self, limits: Callable[[KernelTable], KernelTable]) -> Profile:
        """The same with what `limits` leaves of its kernels."""
        return replace(self, kernels=limits(self.kernels))

    def measured(self) -> Profile:
        """The same with what was measured of the results that it promises to be close only."""
        return replace(self, kernels=Measured(self.name, self.kernels))

    def with_single_rounding(self) -> Profile:
        """The same with every requantizer that rounds twice rounding once.

        Source: TFLITE_SINGLE_ROUNDING, which CMSIS-NN's option, TOSA and many NPUs share.
        """
        axes = {field.name: getattr(self.arithmetic, field.name) for field in fields(self.arithmetic)}
        twice = (DoubleRounding.of, HalfUpTwice.of)
        once: dict[str, Any] = {name: SingleRounding.of for name, stage in axes.items() if stage in twice}
        return self.derive(f"{self.name}+single-rounding", arithmetic=replace(self.arithmetic, **once))
