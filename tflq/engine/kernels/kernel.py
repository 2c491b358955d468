"""The shape that every operator's kernel has: what it accepts, how it is prepared, what it then computes.

*prepare* turns a `Node` (one operator with the shapes, types and constants of its operands) and an `Arithmetic` into a
`Prepared`: constants and a bound pure function. *eval* is that function; no decision is left in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from tflq.engine.kernels.exactness import EXACT, Exactness
from tflq.engine.kernels.signature import Signature
from tflq.engine.kernels.validity import ALWAYS, When
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.errors import LimitError, ModelError, UnsupportedError
from tflq.model.ir import Quantization, Record, TensorType
from tflq.typing import Array

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


class Session(Protocol):
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


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of a kernel table.

    `types` are the operand types it takes, as "int8 int8 int32? -> int8" (kernels/signature.py); `signature` is
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
    prepare: Callable[[Node, Arithmetic], Prepared]
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


def promising(exactness: Exactness, *groups: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return the rows of all groups with another promise."""
    return tuple(replace(row, exactness=exactness) for group in groups for row in group)
