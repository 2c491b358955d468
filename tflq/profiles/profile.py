"""What a profile is: a name, where it comes from, its arithmetic and its kernel table."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.kernels.kernel import KernelTable
from tflq.numerics.arithmetic import Arithmetic


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
