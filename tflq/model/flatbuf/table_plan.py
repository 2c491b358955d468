"""The plan of a table from its description (vtable): how to read each present field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tflq.model.flatbuf.layout import Field, Kind, Layout


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The description in a vtable: the table's size, and the place of each present field."""

    size: int
    scalars: tuple[tuple[str, Callable[[Any, int], tuple[Any, ...]], int], ...]
    references: tuple[tuple[Field, int], ...]
    unions: tuple[tuple[Field, int, int], ...]
    unknown: tuple[tuple[int, int, int], ...]

    @property
    def empty(self) -> bool:
        """True if no field is present."""
        return not (self.scalars or self.references or self.unions or self.unknown)


def arrange(table: Layout, size: int, present: dict[int, int]) -> TablePlan:
    """Return a table's present slots, sorted by the way of reading. `present`: offset in the table by slot."""
    scalars, references, unknown = [], [], []
    ends = sorted({*present.values(), size})
    following = dict(pairwise(ends))
    for slot, at in present.items():
        field = table.slots.get(slot)
        if field is None:
            if slot not in table.type_slots:
                unknown.append((slot, at, following[at] - at))
        elif field.kind is Kind.SCALAR and field.number is not None:
            scalars.append((field.name, field.number.packer.unpack_from, at))
        elif field.kind is not Kind.UNION:
            references.append((field, at))
    unions = [(f, present[slot], present.get(f.id, 0)) for slot, f in table.type_slots.items() if slot in present]
    return TablePlan(size, tuple(scalars), tuple(references), tuple(unions), tuple(unknown))
