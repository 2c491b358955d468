"""How processors form sums of products of small integers, as data; a processor's features decide which is best."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache

from tflq.engine.jit.compiled import compiling_is_off
from tflq.engine.jit.targets import features, machine


@dataclass(frozen=True, slots=True)
class Form:
    """One way to add products to registers of int32 sums.

    Each lane of `dot` takes `group` consecutive values of a row and of a column, multiplies them pairwise and adds all
    products to its sum, modulo 2**32. A tile is `rows` rows of sums by `vectors` registers of `lanes` columns. Machine
    code on disk is found by the repr of a form. The repr leaves out the features, because their order changes.
    """

    name: str
    machine: str  # as platform.machine reports it
    features: frozenset[str] = field(repr=False)  # LLVM's names; the processor must have them all
    dot: str  # see emission.DOTS
    left: str  # type of a row's values: "int16", "int8" or "uint8"
    right: str  # type of the weights: "int16" or "int8"
    group: int
    lanes: int
    tiles: tuple[tuple[int, int], ...]  # (rows, vectors) of the tiles that fill the registers, best first

    @property
    def is_wide(self) -> bool:
        """True if rows hold 16-bit values: these are centred, and 16-bit codes fit."""
        return self.left == "int16"

    @property
    def saturates(self) -> bool:
        """True if instructions of the processor narrow two registers to one, with saturation."""
        return self.machine == "x86_64" and not self.dot.startswith("plain")

    def tile(self, columns: int) -> Tile:
        """Return the tile that wastes the fewest columns of a matrix with `columns` columns.

        Ties go to the first that is not wider than the matrix, if any.
        """

        def waste(tile: tuple[int, int]) -> tuple[int, bool]:
            width = tile[1] * self.lanes
            return -(-columns // width) * width, width > columns

        return Tile(self, *min(self.tiles, key=waste))


@dataclass(frozen=True, slots=True)
class Tile:
    """The sums that one pass over k computes: `rows` rows by `vectors` registers."""

    form: Form
    rows: int
    vectors: int

    @property
    def columns(self) -> int:
        """The number of columns of a tile; a panel of weights has as many."""
        return self.vectors * self.form.lanes


def _x86(name: str, features: str, dot: str, kind: tuple[str, str, int], lanes: int, *tiles: tuple[int, int]) -> Form:
    left, right, group = kind
    return Form(name, "x86_64", frozenset(features.split()), dot, left, right, group, lanes, tiles)


def _arm(name: str, features: str, dot: str, kind: tuple[str, str, int], lanes: int, *tiles: tuple[int, int]) -> Form:
    left, right, group = kind
    return Form(name, "aarch64", frozenset(features.split()), dot, left, right, group, lanes, tiles)


_BYTES_X86 = ("uint8", "int8", 4)
_BYTES_ARM = ("int8", "int8", 4)
_PAIRS = ("int16", "int16", 2)
_SINGLE = ("int16", "int16", 1)
#: More rows take longer: 12 addresses do not stay in registers.
_TILES_512 = ((6, 4), (8, 3), (8, 2), (8, 1))

#: Best first for each machine. Every x86-64 processor has one of these: SSE2 is part of it, as NEON is of AArch64.
FORMS = (
    _x86("avx512-vnni", "avx512vnni avx512bw", "vpdpbusd-512", _BYTES_X86, 16, *_TILES_512),
    _x86("avx-vnni", "avxvnni avx2", "vpdpbusd-256", _BYTES_X86, 8, (6, 2), (12, 1)),
    _x86("avx512-vnni-pairs", "avx512vnni avx512bw", "vpdpwssd-512", _PAIRS, 16, *_TILES_512),
    _x86("avx-vnni-pairs", "avxvnni avx2", "vpdpwssd-256", _PAIRS, 8, (6, 2)),
    _x86("avx512-bw", "avx512bw", "pmaddwd-512", _PAIRS, 16, *_TILES_512),
    _x86("avx2", "avx2", "pmaddwd-256", _PAIRS, 8, (6, 2)),
    _x86("sse2", "sse2", "pmaddwd-128", _PAIRS, 4, (3, 4)),
    _arm("neon-dotprod", "neon dotprod", "sdot", _BYTES_ARM, 4, (6, 4)),
    _arm("neon", "neon", "plain-int16", _SINGLE, 4, (6, 4)),
)


@cache
def available(is_wide: bool) -> tuple[Form, ...]:
    """Return this machine's forms for 8-bit codes, or for 16-bit ones if `is_wide`, best first."""
    if compiling_is_off() or sys.byteorder != "little":
        return ()
    return ranked(machine(), features(), is_wide)


def choose(is_wide: bool) -> Form | None:
    """Return the best of `available`, or None if there is none."""
    return next(iter(available(is_wide)), None)


def ranked(machine: str, features: Collection[str], is_wide: bool) -> tuple[Form, ...]:
    """Return the forms of `machine` whose features are all among `features`, best first."""
    own = frozenset(features)
    return tuple(
        form for form in FORMS if form.machine == machine and form.features <= own and (form.is_wide or not is_wide)
    )
