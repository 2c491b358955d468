"""The shape that every operator's kernel has, and what its results promise.

How far a kernel's results can be promised to be the runtime's own.

The operand types that a row of a kernel table takes, read from text such as "int8 int8 int32? -> int8".

A word represents an operand: alternatives joined by `|`, or `any` for every type; `?` marks an operand that may be
absent, `*` any number of the last one.

The shape that every operator's kernel has: what it accepts, how it is prepared, what it then computes.

*prepare* turns a `Node` (one operator with the shapes, types and constants of its operands) and an `Arithmetic` into a
`Prepared`: constants and a bound pure function. *eval* is that function; no decision is left in it.

Evals that fill arrays made for them, and so can be bound to arrays once and called many times.

Most kernels make one array of a shape and type known from prepare. Written as a `filling`, such an eval does not
compute: it gives a call that does, with every view of its operands already taken. Run once, that is an eval like any
other; a plan that runs often binds the call to arrays that stay where they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NoReturn, Protocol

import numpy as np

from tflq.engine.kernels.validity import ALWAYS, When
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.errors import LimitError, ModelError, UndefinedResultError, UnsupportedError
from tflq.model.ir import Quantization, Record, TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Exactness:
    """How far a row's results can be promised to be the runtime's own, bit by bit.

    `ulp` is the largest difference measured, where the results are only close, in units in the last place of the
    largest magnitude in its tensor: sums that cancel lose any number of their own. None if nothing is claimed.
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
        """Key that orders promises: the less, the more is promised."""
        return _WORDS.index(self.word), float("inf") if self.ulp is None else self.ulp

    def after(self, sources: Iterable[Exactness]) -> Exactness:
        """Return this promise of an operator, weakened by the promises of its inputs.

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
    """Return the promise of results that are near, but not claimed to be equal, and why."""
    return Exactness("close", reason, ulp)


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


Shape = tuple[int, ...]

#: Quantization details whose scales lie in tensors of their own: kernels find no plain scales beside them.
SCALES_ELSEWHERE = ("BlockwiseQuantization", "MultiAxisQuantization")


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One tensor as an operator sees it. `value` is there for constants, and for shape operands when the model runs.

    Such a value is revealed. `sparsity` describes how the file stores a constant sparsely; its `value` is dense
    even then. `block_scales` are the scales of blocks that lie in a tensor of their own, flat. If `is_unpacked`, an
    operator unpacks it from a constant; if also `is_half`, from a float16 one that only filters and biases read.
    `recorded` is the shape before any operator is prepared, by which delegates decide: the file's, except of a graph's
    inputs that were resized; None: `shape`. `is_open`: the file leaves a dimension open.
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
    is_unpacked: bool = False
    is_half: bool = False
    recorded: Shape | None = None
    is_open: bool = False

    @property
    def scale(self) -> np.float32:
        """Per-tensor scale; 0 if there is none, as TFLite's legacy parameters have it."""
        quantization = self._per_tensor()
        return np.float32(0) if quantization is None else quantization.scale[0]

    @property
    def zero_point(self) -> ZeroPoint:
        """Per-tensor zero point as stored (never negated); 0 if there is none."""
        quantization = self._per_tensor()
        return ZeroPoint(0 if quantization is None else int(quantization.zero_point[0]))

    @property
    def is_constant(self) -> bool:
        """True if the model file holds its data."""
        return self.value is not None and not self.is_revealed

    @property
    def is_quantized(self) -> bool:
        """True if the file gives it any scale."""
        return self.quantization is not None and len(self.quantization.scale) > 0

    def _per_tensor(self) -> Quantization | None:
        q = self.quantization
        return q if q is not None and len(q.scale) == 1 and len(q.zero_point) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    """A subgraph as its callers see it, for given shapes of its inputs.

    An output's shape is None if only the run determines it.
    """

    index: int
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    shapes: tuple[Shape | None, ...]


class Surroundings(Protocol):
    """The model around an operator, as prepare sees it."""

    def subgraph(self, index: int, shapes: Sequence[Shape]) -> Callee:
        """Bind a subgraph to the shapes of its inputs; refuse one that cannot run."""

    def handle(self, container: str, name: str) -> int:
        """Return the number by which all subgraphs know the resource of that name."""

    def operators(self, index: int) -> tuple[str, ...]:
        """Return the names of a subgraph's operators, in order: for kernels that read it instead of calling it."""


class CalledSubgraphs(Protocol):
    """State beyond the operands that a kernel of a `session` row reaches while it runs."""

    @property
    def resources(self) -> dict[Hashable, Any]:
        """Resources that all subgraphs of an interpreter share, and that outlive an allocation."""

    @property
    def memory(self) -> dict[object, Any]:
        """Values that operators keep from run to run until they are prepared again, by their own data."""

    def enter(self, subgraph: int) -> Callable[[Sequence[Array]], tuple[Array, ...]]:
        """Return a subgraph, to be called with its inputs.

        It keeps its state from call to call as long as their shapes are equal; another `enter` starts afresh.
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
    room: int | None = None  # bytes that prepare may take; None: any number
    is_of_squares: bool = False  # the first input is what is squared, not the squares
    is_of_codes: bool = False  # the second input holds codes of the matrix that the file dequantizes
    is_in_chain: bool = False  # XNNPACK computes it in one table with the operators before it

    def with_options(self, **fields: Any) -> Node:
        """Return the node with other values of some options."""
        return replace(self, options=replace(self.options, fields={**self.options.fields, **fields}))

    def with_input(self, position: int, operand: Operand) -> Node:
        """Return the node with another operand at `position`, which may be the first beyond the end."""
        return replace(self, inputs=(*self.inputs[:position], operand, *self.inputs[position + 1 :]))

    def with_inputs(self, change: Callable[[Operand], Operand]) -> Node:
        """Return the node with every input changed that is there."""
        return replace(self, inputs=tuple(None if one is None else change(one) for one in self.inputs))

    def with_outputs(self, change: Callable[[Operand], Operand]) -> Node:
        """Return the node with every output changed."""
        return replace(self, outputs=tuple(map(change, self.outputs)))

    def around(self) -> Surroundings:
        """Return the rest of the model; raise ModelError for an operator outside a model."""
        if self.surroundings is None:
            self.refuse("reaches beyond its operands, but is not in a model")
        return self.surroundings

    def input(self, position: int) -> Operand:
        """Return the operand at `position`; raise ModelError if it is absent."""
        operand = self.optional(position)
        if operand is None:
            self.refuse(f"input {position} is missing")
        return operand

    def optional(self, position: int) -> Operand | None:
        """Return the operand at `position`, or None if it is absent or beyond the end."""
        return self.inputs[position] if position < len(self.inputs) else None

    def constant(self, position: int) -> Array:
        """Return the value of the operand at `position`; raise ModelError if it is not known."""
        operand = self.input(position)
        if operand.value is None:
            self.refuse("must be constant", operand)
        return operand.value

    def refuse(
        self, reason: str, operand: Operand | None = None, *, expected: object = None, got: object = None
    ) -> NoReturn:
        """Raise a ModelError that names this operator, and `operand` if given."""
        tensor = "" if operand is None else operand.name or f"#{operand.index}"
        raise ModelError(reason, op=self.op, index=self.index, tensor=tensor, expected=expected, got=got)

    def reject(self, reason: str, operand: Operand, *, expected: object, got: object) -> NoReturn:
        """Raise an UnsupportedError: the file is sound, and the profile's runtime fails to prepare the operator."""
        text = f"{reason} (tensor {operand.name or f'#{operand.index}'!r}): expected {expected}, got {got}"
        raise UnsupportedError(self.op, version=self.version, index=self.index, reason=text)

    def claim(self, size: int, what: str) -> None:
        """Refuse the node with a LimitError unless prepare may take that many bytes."""
        if self.room is not None and size > self.room:
            raise LimitError(
                f"operator {self.index} {self.op}: {what} would take {size} bytes, where the memory limit leaves "
                f"{max(self.room, 0)}; raise memory_limit (--memory-limit) if that is meant"
            )

    def check(
        self, holds: bool, reason: str, operand: Operand | None = None, *, expected: object = None, got: object = None
    ) -> None:
        """Refuse the node unless `holds`."""
        if not holds:
            self.refuse(reason, operand, expected=expected, got=got)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A node bound to its constants.

    `eval(data, *inputs)` gives the output arrays, one array or a tuple in output order; inputs come in operand order,
    None if absent; rows with `session` get the Session before them. Inputs must not be written to; an output may
    share memory with an input. `shapes` are those of the outputs, None if only the run determines them. `updates`
    lists the input positions of variable tensors whose new values eval gives after the outputs. `scratch` are bytes
    that eval takes besides inputs and outputs; if they depend on values, a function of eval's arguments, which then
    include outputs of unknown shape. `work` are passes of eval's innermost loop if the table in
    tflq/engine/kernels/work.py does not count them. If `alone`, eval takes no Session, although its row has `session`.
    `exactness` is the promise if it is not the row's, because another row prepared the node.
    """

    shapes: tuple[Shape | None, ...]
    data: Any
    eval: Callable[..., Array | tuple[Array, ...]]
    updates: tuple[int, ...] = ()
    scratch: int | Callable[..., int] = 0
    work: int | None = None
    alone: bool = False
    exactness: Exactness | None = None


Prepare = Callable[[Node, Arithmetic], Prepared]


def undefined(reason: str, function: str = "") -> Prepare:
    """Return the prepare of rows that runtimes accept without a defined result; `function`: by default the operator."""

    def refuse(node: Node, arithmetic: Arithmetic) -> NoReturn:
        raise UndefinedResultError(function or node.op, reason)

    return refuse


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of a kernel table.

    `types` are the operand types it takes, as "int8 int8 int32? -> int8" (kernels/kernel.py); `signature` is
    parsed from it. `versions` is inclusive.
    `shape_operands` are the input positions whose values prepare needs: where one is not constant, the node is
    prepared when the model runs. `session` rows are handed the Session at run time; `calls` names the options that hold
    the subgraphs they call, so that these are checked before the model runs. `exactness` is its promise.
    `sparse` are the input positions whose constants the file stores sparsely: a row takes exactly those. `makes` is the
    type that all outputs have from prepare on, regardless of the declared type; None if the declared type counts.
    `takes` is the rule by which XNNPACK takes a node: another row prepares what it leaves. `when` is the condition on
    runtimes that have the row. If `sums_squares`, it takes what is squared instead of squares: `Node.is_of_squares`.
    If it `reads_codes`, it takes codes instead of what is dequantized: `Node.is_of_codes`.
    `left` is the promise for nodes whose shape operands are computed, if XNNPACK leaves these.
    """

    op: str
    types: str = field(compare=False)
    prepare: Prepare
    versions: tuple[int, int] = (1, 99)
    shape_operands: tuple[int, ...] = ()
    session: bool = False
    calls: tuple[str, ...] = ()
    exactness: Exactness = EXACT
    sparse: tuple[int, ...] = ()
    makes: TensorType | None = None
    takes: Callable[[Node], bool] | None = field(default=None, compare=False)
    sums_squares: bool = False
    reads_codes: bool = False
    left: Exactness | None = field(default=None, compare=False)
    when: When = field(default=ALWAYS, compare=False)
    signature: Signature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "signature", Signature.parse(self.types))

    def taking(self, signature: Signature) -> Kernel:
        """Return this row for operands of other types."""
        return replace(self, types=str(signature))

    def accepts(self, version: int, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> bool:
        """Return whether this row takes an operator of that version with operands of those types."""
        fits = self.signature.mismatches(inputs, outputs) == 0
        return fits and self.versions[0] <= version <= self.versions[1]


def valid(when: When, *rows: Kernel) -> tuple[Kernel, ...]:
    """Return the rows, valid where `when` holds and nowhere else."""
    return tuple(replace(row, when=when) for row in rows)


def of_types(rows: Iterable[Kernel], types: str) -> Kernel:
    """Return the row of these operand types, as its table states them."""
    (row,) = (row for row in rows if row.types == types)
    return row


def by_form(
    op: str, last_version: int, forms: Mapping[str, Mapping[When, Prepare]], shape_operands: tuple[int, ...] = ()
) -> tuple[Kernel, ...]:
    """Return the rows of an operator by their operand types: where which prepare is valid.

    Of those that hold for a runtime, the one with the narrowest condition wins (`When.precedence`).
    """
    return tuple(
        Kernel(op, types, prepare, (1, last_version), shape_operands, when=when)
        for types, places in forms.items()
        for when, prepare in places.items()
    )


def promising(exactness: Exactness, *groups: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return the rows of all groups with another promise."""
    return tuple(replace(row, exactness=exactness) for group in groups for row in group)


#: Reads its inputs and fills its output whenever it is called. In a functools.partial NumPy has nothing to warn of,
#: in anything else it may have.
Call = Callable[[], object]
#: Shape and type of an output.
Form = tuple[Shape, Any]


class Filling:
    """An eval of one output. `bind(data, out, *inputs)` gives the call that fills `out`, `of(data, *inputs)` the shape
    and the type of `out`.

    `once(data, *inputs)` gives the output of a single run, where that is done sooner than a call is made.

    The owner of the call keeps inputs and output C-contiguous and their shapes unchanged: all arrays that bind derives
    from them must be views, so that the call sees their contents when it runs.
    """

    def __init__(
        self, bind: Callable[..., Call], of: Callable[..., Form], once: Callable[..., Array] | None = None
    ) -> None:
        self.bind, self._of, self._once = bind, of, once
        functools.update_wrapper(self, bind)

    def __call__(self, data: Any, *inputs: Array | None) -> Array:
        """Return the output, a fresh array."""
        if self._once is not None:
            return np.asarray(self._once(data, *inputs))
        out = np.empty(*self._of(data, *inputs))
        self.bind(data, out, *inputs)()
        return out

    def bound(self, data: Any, places: Sequence[Array], *inputs: Array | None) -> Call | None:
        """Return the call that fills the one array in `places`; None if the output has another shape or type."""
        (place,) = places
        fits = self._of(data, *inputs) == (place.shape, place.dtype)
        return self.bind(data, place, *inputs) if fits else None


class Fillings:
    """An eval of several outputs: as Filling, with a sequence of arrays as `out`, and the `Form` of each from `of`."""

    def __init__(self, bind: Callable[..., Call], of: Callable[..., list[Form]]) -> None:
        self._bind, self._of = bind, of
        functools.update_wrapper(self, bind)

    def __call__(self, data: Any, *inputs: Array | None) -> tuple[Array, ...]:
        """Return the outputs, fresh arrays."""
        outs = tuple(np.empty(*form) for form in self._of(data, *inputs))
        self._bind(data, outs, *inputs)()
        return outs

    def bound(self, data: Any, places: Sequence[Array], *inputs: Array | None) -> Call | None:
        """Return the call that fills these arrays, one for each output; None if they have other shapes or types."""
        fits = self._of(data, *inputs) == [(place.shape, place.dtype) for place in places]
        return self._bind(data, places, *inputs) if fits else None


class Updating(Fillings):
    """An eval of several outputs that also changes variables: the inputs at `positions`, in place.

    `bind` reads and writes their arrays, which no other input shares. Run once, the eval changes copies, which it gives
    after the outputs.
    """

    def __init__(self, bind: Callable[..., Call], of: Callable[..., list[Form]], positions: tuple[int, ...]) -> None:
        super().__init__(bind, of)
        self._positions = positions

    def __call__(self, data: Any, *inputs: Array | None) -> tuple[Array, ...]:
        """Return the outputs and the new values of the variables, fresh arrays."""
        fresh = {position: np.array(inputs[position]) for position in self._positions}
        outs = super().__call__(data, *(fresh.get(position, x) for position, x in enumerate(inputs)))
        return (*outs, *fresh.values())


def filling(
    of: Callable[..., Form], once: Callable[..., Array] | None = None
) -> Callable[[Callable[..., Call]], Filling]:
    """Make an eval of a function (data, out, *inputs) that gives a Call."""
    return lambda bind: Filling(bind, of, once)


def fillings(of: Callable[..., list[Form]]) -> Callable[[Callable[..., Call]], Fillings]:
    """Make an eval of a function (data, outs, *inputs) that gives a Call."""
    return lambda bind: Fillings(bind, of)


def updating(of: Callable[..., list[Form]], *positions: int) -> Callable[[Callable[..., Call]], Updating]:
    """Make an eval of a function (data, outs, *inputs) that gives a Call, which changes the inputs at `positions`."""
    return lambda bind: Updating(bind, of, positions)


def once_known(value: Array, bind: Callable[[], Call]) -> Call:
    """Return the call that `bind` gives for an array: bound at once if nothing can write to it, else in every run."""
    if not value.flags.writeable:
        return bind()
    return lambda: bind()()


@dataclass(frozen=True, slots=True, eq=False)
class InTurn:
    """Several calls, made in order."""

    calls: tuple[Call, ...]

    def __call__(self) -> None:
        """Make them."""
        for call in self.calls:
            call()


def in_turn(calls: Sequence[Call]) -> Call:
    """Return one call for several, made in order."""
    return calls[0] if len(calls) == 1 else InTurn(tuple(flat(calls)))


def flat(calls: Iterable[Call]) -> Iterator[Call]:
    """Yield calls, and in the place of several in turn each of them."""
    for call in calls:
        yield from call.calls if isinstance(call, InTurn) else (call,)
