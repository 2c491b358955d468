"""The variants of a seed: a drawn or recorded model, a list of changes to it, and a list of changes to its bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from modelfuzz.changes import changed
from opfuzz.draw import Draw
from opfuzz.families import BESIDES, SPECS
from tflq.errors import FormatError
from tflq.model.flatbuf import read, write

RECORDED = sorted((Path(__file__).parents[2] / "golden").glob("**/*.tflite"))
#: Maximum bytes of a recorded model: larger ones are mostly weights.
_LARGEST = 1 << 17
_DRAWN = {**SPECS, **BESIDES}
_WORDS = (0, 1, -1, 4, 255, 0x7FFFFFFF, -(1 << 31), 0xFFFF)


@dataclass(frozen=True, slots=True)
class Variant:
    """One hostile file. `base` is a recorded file's path or "OPERATOR/number" of a drawn one; the rest are seeds."""

    number: int
    base: str
    changes: tuple[int, ...]
    edits: tuple[int, ...]

    def data(self) -> bytes:
        """Return the file, without changes that no file can hold."""
        data = _base(self.base)
        for change in self.changes:
            try:
                data = write(changed(read(data), change))
            except (FormatError, ValueError, TypeError, OverflowError):  # the file format cannot represent that
                continue
        for edit in self.edits:
            data = _edited(data, random.Random(edit))
        return data

    def simpler(self) -> Sequence[Variant]:
        """Return variants with one change or edit less."""
        changes, edits = self.changes, self.edits
        return [
            *(replace(self, edits=edits[:i] + edits[i + 1 :]) for i in range(len(edits))),
            *(replace(self, changes=changes[:i] + changes[i + 1 :]) for i in range(len(changes))),
        ]

    def __str__(self) -> str:
        return f"{self.base} changes {list(self.changes)} edits {list(self.edits)}"


def variant(seed: int, number: int, models: Sequence[Path] = ()) -> Variant:
    """Return the variant of that number: seven in ten have changes to the model, four in ten to its bytes.

    It is one of `models`, if there are any.
    """
    chance = random.Random(f"{seed}/{number}")
    if models:
        base = str(chance.choice(models))
    elif chance.random() < 0.75:
        base = f"{chance.choice(list(_DRAWN))}/{chance.randrange(1 << 20)}"
    else:
        base = str(chance.choice(_recorded()))
    count = chance.choice((1, 1, 2, 2, 3, 4)) if chance.random() < 0.8 else 0
    edits = chance.choice((1, 1, 2, 4, 12)) if count == 0 or chance.random() < 0.2 else 0
    return Variant(
        number,
        base,
        tuple(chance.randrange(1 << 30) for _ in range(count)),
        tuple(chance.randrange(1 << 30) for _ in range(edits)),
    )


def _recorded() -> list[Path]:
    return [path for path in RECORDED if path.stat().st_size <= _LARGEST]


def _base(name: str) -> bytes:
    operator, _, number = name.partition("/")
    if operator not in _DRAWN:
        return Path(name).read_bytes()
    return _DRAWN[operator](Draw(np.random.default_rng(int(number))), operator).model()


def _edited(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some overwritten, cut off, doubled or removed."""
    if len(data) < 8:
        return data
    other, at = bytearray(data), chance.randrange(len(data))
    kind = chance.random()
    if kind < 0.4:
        other[at] = chance.randrange(256)
    elif kind < 0.75:  # offsets and counts are words
        at = at // 4 * 4
        other[at : at + 4] = (chance.choice(_WORDS) & 0xFFFFFFFF).to_bytes(4, "little")
    elif kind < 0.85:
        source = chance.randrange(len(data))
        size = chance.choice((1, 4, 16, 64))
        other[at : at + size] = data[source : source + size]
    elif kind < 0.93:
        del other[at : at + chance.choice((1, 4, 16))]
    else:
        del other[at:]
    return bytes(other)
