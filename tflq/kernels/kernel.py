"""The shape that every operator's kernel has: what it accepts, how it is prepared, what it then computes.

*prepare* turns a `Node` (one operator with the shapes, types and constants of its operands) and an `Arithmetic` into a
`Prepared`: constants and a bound pure function. *eval* is that function; no decision is left in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from tflq.errors import ModelError
from tflq.ir import Quantization, Record, TensorType
from tflq.numerics.arithmetic import Arithmetic

Array = NDArray[Any]
Shape = tuple[int, ...]

#: Quantization details whose scales lie in tensors of their own: kernels find no plain scales beside them.
SCALES_ELSEWHERE = ("BlockwiseQuantization", "MultiAxisQuantization")


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One tensor as an operator sees it. `value` is there for constants, and for shape operands when the model runs.

    Such a value is revealed. `sparsity` says how the file stores a constant sparsely; its `value` is dense all the
    same. `block_scales` are the scales of blocks that lie in a tensor of their own, flat.
    """

    index: int
    name: str
    type: TensorType
    shape: Shape
    quantization: Quantization | None = None
    value: Array | None = None
    is_variable: bool = False
    sparsity: Record | None = None
    block_scales: Array | None = None
    is_revealed: bool = False

    @property
    def scale(self) -> np.float32:
        """Per-tensor scale; 0 where there is none, as TFLite's legacy parameters have it."""
        quantization = self._per_tensor()
        return np.float32(0) if quantization is None else quantization.scale[0]

    @property
    def zero_point(self) -> int:
        """Per-tensor zero point as stored (never negated); 0 where there is none."""
        quantization = self._per_tensor()
        return 0 if quantization is None else int(quantization.zero_point[0])

    @property
    def is_constant(self) -> bool:
        """Whether the model file holds its data."""
        return self.value is not None and not self.is_revealed

    @property
    def is_quantized(self) -> bool:
        """Whether the file gives it any scale."""
        return self.quantization is not None and len(self.quantization.scale) > 0

    def _per_tensor(self) -> Quantization | None:
        q = self.quantization
        return q if q is not None and len(q.scale) == 1 and len(q.zero_point) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    """A subgraph as its callers see it, for given shapes of its inputs. An output's shape is None where only the run
    can tell.
    """

    index: int
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    shapes: tuple[Shape | None, ...]


class Surroundings(Protocol):
    """What lies around an operator in its model, as prepare sees it."""

    def subgraph(self, index: int, shapes: Sequence[Shape]) -> Callee:
        """Bind a subgraph to the shapes of its inputs; whatever it cannot run is refused here."""

    def handle(self, container: str, name: str) -> int:
        """The number by which all subgraphs know the resource of that name."""

    def operators(self, index: int) -> tuple[str, ...]:
        """The names of a subgraph's operators, in order: for kernels that read a subgraph instead of calling it."""


class Session(Protocol):
    """What a kernel of a `session` row reaches beyond its operands while it runs."""

    @property
    def resources(self) -> dict[Hashable, Any]:
        """What all subgraphs of an interpreter share, and what outlives an allocation."""

    @property
    def memory(self) -> dict[object, Any]:
        """What operators remember from run to run until they are prepared again, by their own data."""

    def enter(self, subgraph: int) -> Callable[[Sequence[Array]], tuple[Array, ...]]:
        """A subgraph, to be called with its inputs. It remembers from call to call as long as their shapes are equal;
        entered anew, it begins anew.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operator, ready to be prepared. `inputs` holds None for an absent optional operand."""

    op: str
    version: int
    index: int
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    options: Record
    intermediates: tuple[Operand, ...] = ()
    custom_options: bytes = b""
    surroundings: Surroundings | None = None

    def around(self) -> Surroundings:
        """The rest of the model; a ModelError where the operator stands alone."""
        if self.surroundings is None:
            self.refuse("reaches beyond its operands, but stands alone")
        return self.surroundings

    def input(self, position: int) -> Operand:
        """The operand at `position`; a ModelError where it is absent."""
        operand = self.optional(position)
        if operand is None:
            self.refuse(f"input {position} is missing")
        return operand

    def optional(self, position: int) -> Operand | None:
        """The operand at `position`, or None where it is absent or beyond the end."""
        return self.inputs[position] if position < len(self.inputs) else None

    def constant(self, position: int) -> Array:
        """The value of the operand at `position`; a ModelError where it is not known."""
        operand = self.input(position)
        if operand.value is None:
            self.refuse("must be constant", operand)
        return operand.value

    def refuse(
        self, reason: str, operand: Operand | None = None, *, expected: object = None, got: object = None
    ) -> NoReturn:  # fmt: skip
        """Raise a ModelError that names this operator, and `operand` where given."""
        tensor = "" if operand is None else operand.name or f"#{operand.index}"
        raise ModelError(reason, op=self.op, index=self.index, tensor=tensor, expected=expected, got=got)

    def check(
        self, holds: bool, reason: str, operand: Operand | None = None, *, expected: object = None, got: object = None
    ) -> None:  # fmt: skip
        """Refuse the node unless `holds`."""
        if not holds:
            self.refuse(reason, operand, expected=expected, got=got)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A node bound to its constants.

    `eval(data, *inputs)` gives the output arrays, one array or a tuple in output order; inputs come in operand order,
    None where absent; rows with `session` get the Session before them. Inputs must not be written to; an output may
    share memory with an input. `shapes` are those of the outputs, None where only the run can tell. `updates` lists the
    input positions of variable tensors whose new values eval gives after the outputs.
    """

    shapes: tuple[Shape | None, ...]
    data: Any
    eval: Callable[..., Array | tuple[Array, ...]]
    updates: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Exactness:
    """How far a row's results can be promised to be the runtime's own, bit by bit.

    `ulp` is the largest difference measured, where the results are only close, in units in the last place of the
    largest magnitude in its tensor: sums that cancel lose any number of their own. None where nothing is claimed.
    """

    word: str  # "exact", "exact on the same libm", "close"
    reason: str = ""
    ulp: int | None = 0

    def __str__(self) -> str:
        if self.word != "close":
            return self.word
        return "close, not measured" if self.ulp is None else f"close, {self.ulp:,} ULP measured"

    @property
    def strength(self) -> tuple[int, float]:
        """What promises are ordered by: the less, the more is promised."""
        return _WORDS.index(self.word), float("inf") if self.ulp is None else self.ulp

    def after(self, sources: Iterable[Exactness]) -> Exactness:
        """What this promise of an operator is worth where its inputs are results with those promises.

        How a difference grows in the next operator was never measured.
        """
        weakest = max(sources, key=lambda promise: promise.strength, default=EXACT)
        if weakest.word == "close":
            return Exactness("close", weakest.reason, None)
        return max(self, weakest, key=lambda promise: promise.strength)


_WORDS = ("exact", "exact on the same libm", "close")
EXACT = Exactness("exact")
SAME_LIBM = Exactness("exact on the same libm", "libm's results are its version's own")


def close(reason: str, ulp: int | None = None) -> Exactness:
    """Results that are near, but not claimed to be equal, and why."""
    return Exactness("close", reason, ulp)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of a kernel table.

    `types` says which operand types it takes, as "int8 int8 int32? -> int8": alternatives joined by `|`, `?` for an
    operand that may be absent, `*` for any number of the last one, `any` for every type. `versions` is inclusive.
    `shape_operands` are the input positions whose values prepare needs: where one is not constant, the node is
    prepared when the model runs. `session` rows are handed the Session at run time; `calls` names the options that hold
    the subgraphs they call, so that these are checked before the model runs. `exactness` says what is promised.
    `sparse` are the input positions whose constants the file stores sparsely: a row takes exactly those.
    """

    op: str
    types: str
    prepare: Callable[[Node, Arithmetic], Prepared]
    versions: tuple[int, int] = (1, 99)
    shape_operands: tuple[int, ...] = ()
    session: bool = False
    calls: tuple[str, ...] = ()
    exactness: Exactness = EXACT
    sparse: tuple[int, ...] = ()

    def accepts(self, version: int, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> bool:
        """Whether this row takes an operator of that version with operands of those types."""
        return self.versions[0] <= version <= self.versions[1] and self.mismatches(inputs, outputs) == 0

    def mismatches(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> int:
        """How many operands have a type that this row does not take: 0 means it fits."""
        want_in, want_out = _signature(self.types)
        return _misfits(want_in, inputs) + _misfits(want_out, outputs)


@dataclass(frozen=True, slots=True)
class _Slot:
    """One operand of a signature: the types it may have (None: any)."""

    types: frozenset[TensorType] | None
    optional: bool
    repeated: bool


@cache
def _signature(text: str) -> tuple[tuple[_Slot, ...], tuple[_Slot, ...]]:
    left, _, right = text.partition("->")
    return tuple(map(_slot, left.split())), tuple(map(_slot, right.split()))


def _slot(word: str) -> _Slot:
    names = word.rstrip("?*")
    types = None if names == "any" else frozenset(TensorType[n.upper()] for n in names.split("|"))
    return _Slot(types, word.endswith("?"), word.endswith("*"))


def _misfits(slots: tuple[_Slot, ...], types: Sequence[TensorType | None]) -> int:
    count = 0
    for position in range(max(len(slots), len(types))):
        if position < len(slots):
            slot = slots[position]
        elif slots and slots[-1].repeated:
            slot = slots[-1]
        else:
            count += 1  # an operand that the signature does not know
            continue
        given = types[position] if position < len(types) else None
        if given is None:
            count += not (slot.optional or slot.repeated)
        else:
            count += slot.types is not None and given not in slot.types
    return count


KernelTable = Mapping[str, tuple[Kernel, ...]]


def table(*groups: Iterable[Kernel]) -> KernelTable:
    """One table out of the kernel files' tuples. Two rows with the same operator, types and versions are refused."""
    rows: dict[str, list[Kernel]] = {}
    for kernel in (k for group in groups for k in group):
        known = rows.setdefault(kernel.op, [])
        if any((k.types, k.versions, k.sparse) == (kernel.types, kernel.versions, kernel.sparse) for k in known):
            raise ValueError(f"two kernels for {kernel.op} {kernel.types}")
        known.append(kernel)
    return MappingProxyType({op: tuple(kernels) for op, kernels in rows.items()})


class Catalogue(Mapping[str, tuple[Kernel, ...]]):
    """A table of kernel files that are imported when one of their operators is first asked for.

    `files` says for each operator which modules of `package` hold its rows in their KERNELS, in order of preference.
    """

    def __init__(self, package: str, files: Mapping[str, str]) -> None:
        self._package, self._files = package, files
        self._loaded: dict[str, tuple[Kernel, ...]] = {}

    def __getitem__(self, op: str) -> tuple[Kernel, ...]:
        if op not in self._loaded:
            modules = [import_module(f"{self._package}.{name}") for name in self._files[op].split()]
            rows = table(*([kernel for kernel in module.KERNELS if kernel.op == op] for module in modules))
            self._loaded[op] = rows[op]
        return self._loaded[op]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


class Overlay(Mapping[str, tuple[Kernel, ...]]):
    """`base` with some operators' rows put before its own, and some operators left out.

    A row of `ours` replaces those rows of `base` that have the same types.
    """

    def __init__(self, base: KernelTable, ours: KernelTable, without: Collection[str] = ()) -> None:
        self._base, self._ours, self._without = base, ours, frozenset(without)

    def __getitem__(self, op: str) -> tuple[Kernel, ...]:
        if op in self._without:
            raise KeyError(op)
        ours = self._ours.get(op, ())
        kept = self._base.get(op, ())
        replaced = {kernel.types for kernel in ours}
        rows = (*ours, *(kernel for kernel in kept if kernel.types not in replaced))
        if not rows:
            raise KeyError(op)
        return rows

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys((*self._base, *self._ours))
        return (name for name in names if name not in self._without)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def find(
    kernels: KernelTable, op: str, version: int, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType],
    sparse: tuple[int, ...] = (),
) -> Kernel | None:  # fmt: skip
    """The first row that accepts the operator, or None."""
    rows = kernels.get(op, ())
    return next((k for k in rows if k.sparse == sparse and k.accepts(version, inputs, outputs)), None)


def nearest(
    kernels: KernelTable, op: str, version: int, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]
) -> str:  # fmt: skip
    """The supported form that is closest to the one asked for, in words; empty where the operator is unknown."""
    rows = kernels.get(op, ())
    if not rows:
        return ""
    best = min(rows, key=lambda k: (k.mismatches(inputs, outputs), not k.versions[0] <= version <= k.versions[1]))
    low, high = best.versions
    return f"{op} {best.types}" + (f", versions {low} to {high}" if high < 99 else "")
