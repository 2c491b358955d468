"""The operand types that a row of a kernel table takes, read from text such as "int8 int8 int32? -> int8".

A word represents an operand: alternatives joined by `|`, or `any` for every type; `?` marks an operand that may be
absent, `*` any number of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tflq.model.ir import TensorType

ANY = "any"
#: Signed and unsigned integers of all widths.
INTEGERS = (
    TensorType.INT2,
    TensorType.INT4,
    TensorType.UINT4,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
    TensorType.INT64,
    TensorType.UINT64,
)


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One operand: `types` are its alternatives in the order in which they are written, None if it takes any.

    Slots that take the same types in another order are equal.
    """

    types: tuple[TensorType, ...] | None
    optional: bool = False
    repeated: bool = False

    @classmethod
    def parse(cls, word: str) -> Slot:
        """Read one word of a signature."""
        names = word.rstrip("?*")
        types = None if names == ANY else tuple(TensorType[name.upper()] for name in names.split("|"))
        return cls(types, word.endswith("?"), word.endswith("*"))

    def __str__(self) -> str:
        return self.label + ("?" if self.optional else "*" if self.repeated else "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slot) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[frozenset[TensorType] | None, bool, bool]:
        return None if self.types is None else frozenset(self.types), self.optional, self.repeated

    @property
    def label(self) -> str:
        """The alternatives without the mark."""
        return ANY if self.types is None else "|".join(type_.label for type_ in self.types)

    def takes(self, type_: TensorType) -> bool:
        """Return whether an operand of that type fits."""
        return self.types is None or type_ in self.types

    def names(self, type_: TensorType) -> bool:
        """Return whether that type is among the alternatives; `any` names none."""
        return self.types is not None and type_ in self.types

    def is_only(self, *types: TensorType) -> bool:
        """Return whether all alternatives are among `types`."""
        return self.types is not None and set(self.types) <= set(types)

    @property
    def choices(self) -> tuple[Slot, ...]:
        """A slot for each alternative by itself, which has to be there."""
        return (Slot(None),) if self.types is None else tuple(Slot((type_,)) for type_ in self.types)

    def without(self, types: Collection[TensorType]) -> Slot | None:
        """Return the slot without some alternatives; None if no other is left. `any` stays as it is."""
        if self.types is None:
            return self
        left = tuple(type_ for type_ in self.types if type_ not in types)
        return replace(self, types=left) if left else None


@dataclass(frozen=True, slots=True)
class Signature:
    """The operand types of one row."""

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    @staticmethod
    @cache
    def parse(text: str) -> Signature:
        """Read a signature. A KeyError names a type that does not exist."""
        left, _, right = text.partition("->")
        return Signature(tuple(map(Slot.parse, left.split())), tuple(map(Slot.parse, right.split())))

    def __str__(self) -> str:
        return " ".join((*map(str, self.inputs), "->", *map(str, self.outputs)))

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def is_float(self) -> bool:
        """True if the last result is float32 only."""
        return self.outputs[-1:] == _FLOAT32

    @property
    def has_integers(self) -> bool:
        """True if an operand may hold integers of any width: codes, sizes or axes."""
        return self.reads(*INTEGERS) or self.makes(*INTEGERS)

    def reads(self, *types: TensorType) -> bool:
        """Return whether an input names one of these types."""
        return any(slot.names(type_) for slot in self.inputs for type_ in types)

    def makes(self, *types: TensorType) -> bool:
        """Return whether an output names one of these types."""
        return any(slot.names(type_) for slot in self.outputs for type_ in types)

    def starts_with(self, *types: TensorType) -> bool:
        """Return whether the first inputs are of exactly these types, each without an alternative."""
        return self.inputs[: len(types)] == tuple(Slot((type_,)) for type_ in types)

    def narrowed(self, narrow: Callable[[Slot], Slot | None]) -> Signature | None:
        """Return the signature with every slot narrowed; None if nothing is left of a slot."""
        inputs = tuple(slot for slot in map(narrow, self.inputs) if slot is not None)
        outputs = tuple(slot for slot in map(narrow, self.outputs) if slot is not None)
        complete = (len(inputs), len(outputs)) == (len(self.inputs), len(self.outputs))
        return Signature(inputs, outputs) if complete else None

    def without(self, *types: TensorType) -> Signature | None:
        """Return the signature without some types; None if an operand has no other."""
        return self.narrowed(lambda slot: slot.without(types))

    def mismatches(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> int:
        """Return how many operands have a type that does not fit, are missing or are too many; 0 means it fits."""
        return _mismatches(self.inputs, inputs) + _mismatches(self.outputs, outputs)


_FLOAT32 = (Slot((TensorType.FLOAT32,)),)


def _mismatches(slots: tuple[Slot, ...], types: Sequence[TensorType | None]) -> int:
    count = 0
    for position in range(max(len(slots), len(types))):
        if position < len(slots):
            slot = slots[position]
        elif slots and slots[-1].repeated:
            slot = slots[-1]
        else:
            count += 1  # an operand that the signature does not know
            continue
        operand = types[position] if position < len(types) else None
        if operand is None:
            count += not (slot.optional or slot.repeated)
        else:
            count += not slot.takes(operand)
    return count
