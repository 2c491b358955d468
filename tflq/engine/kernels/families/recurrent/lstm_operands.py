"""Positions of an LSTM's operands, and their requirements.

Gates are numbered input, forget, cell, output. Without an input gate's weights that gate is one minus the forget gate
(CIFG). Peepholes have no cell gate.
Source: LiteRT 2.3 lstm.cc, unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc CheckLstmTensorDimensions,
CheckInputTensorDimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.kernel import Exactness, Node, Operand, Shape
from tflq.model.ir import TensorType

INPUT, FORGET, CELL, OUTPUT = range(4)

#: The promise for gates that open by a float logistic function.
FLOAT_GATES = Exactness(
    "exact on the same libm",
    "elements outside aligned groups of four take exp from libm; float sums deeper than 680 are cut by cache size",
)


@dataclass(frozen=True, slots=True)
class LstmRoles:
    """Positions of one cell's operands among the node's inputs."""

    inputs: tuple[int, ...]  # of the input weights, by gate
    recurrent: tuple[int, ...]
    peepholes: tuple[int, int, int]  # input, forget, output
    biases: tuple[int, ...]
    projection: int
    projection_bias: int
    output_state: int
    cell_state: int
    norms: tuple[int, ...] = ()  # layer normalisation coefficients, by gate
    auxiliary: tuple[int, ...] = ()  # weights of an auxiliary input, by gate

    def peephole(self, gate: int) -> int | None:
        """Return the position of a gate's peephole weights."""
        return {INPUT: self.peepholes[0], FORGET: self.peepholes[1], OUTPUT: self.peepholes[2]}.get(gate)

    @property
    def weights(self) -> tuple[int, ...]:
        """All positions but the states'."""
        single = (self.projection, self.projection_bias)
        return (*self.inputs, *self.recurrent, *self.peepholes, *self.biases, *single, *self.norms, *self.auxiliary)


def _four(first: int) -> tuple[int, ...]:
    return tuple(range(first, first + 4))


#: LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM
SINGLE = LstmRoles(_four(1), _four(5), (9, 10, 11), _four(12), 16, 17, 18, 19, norms=_four(20))
#: The two cells of BIDIRECTIONAL_SEQUENCE_LSTM
FORWARD = LstmRoles(_four(1), _four(5), (9, 10, 11), _four(12), 16, 17, 35, 36, auxiliary=_four(40))
BACKWARD = LstmRoles(_four(18), _four(22), (26, 27, 28), _four(29), 33, 34, 37, 38, auxiliary=_four(44))


@dataclass(frozen=True, slots=True)
class LstmSizes:
    """Extents of one cell, and which of its optional parts are there."""

    batches: int
    inputs: int
    cells: int
    outputs: int
    cifg: bool
    normalised: bool

    @property
    def gates(self) -> tuple[int, ...]:
        """The gates that are computed from weights."""
        return (FORGET, CELL, OUTPUT) if self.cifg else (INPUT, FORGET, CELL, OUTPUT)


def is_diagonal(operand: Operand | None) -> bool:
    """Return whether recurrent weights hold a diagonal only."""
    return operand is not None and len(operand.shape) == 1


def check(node: Node, roles: LstmRoles, batches: int, inputs: int, *, diagonal: bool = False) -> LstmSizes:
    """Check shapes, types and what must come together; give the sizes. `diagonal` allows recurrent vectors."""
    for option in ("cell_clip", "proj_clip"):
        node.check(float(node.options.get(option, 0)) >= 0, option, expected=">= 0", got=node.options.get(option))
    weights, recurrent = node.input(roles.inputs[OUTPUT]), node.input(roles.recurrent[OUTPUT])
    require_rank(node, weights, 2)
    node.check(len(recurrent.shape) in (1, 2), "number of dimensions", recurrent, expected="1 or 2")
    normalised = bool(roles.norms) and node.optional(roles.norms[FORGET]) is not None
    cifg = node.optional(roles.inputs[INPUT]) is None
    sizes = LstmSizes(batches, inputs, weights.shape[0], recurrent.shape[-1], cifg, normalised)
    _check_presence(node, roles, sizes)
    _check_shapes(node, roles, sizes, diagonal)
    _check_types(node, roles)
    if node.optional(roles.projection) is None:
        node.check(sizes.outputs == sizes.cells, "without a projection, outputs and cells must be as many", recurrent)
    for position, size in ((roles.output_state, sizes.outputs), (roles.cell_state, sizes.cells)):
        state = node.input(position)
        node.check(state.is_variable, "must be a variable", state)
        node.check(prod(state.shape) == batches * size, "size", state, expected=batches * size, got=list(state.shape))
    return sizes


def _check_presence(node: Node, roles: LstmRoles, sizes: LstmSizes) -> None:
    """Require operands of a group to be present together or not at all."""

    def there(position: int | None) -> bool:
        return position is not None and node.optional(position) is not None

    for gate in sizes.gates:
        for positions in (roles.inputs, roles.recurrent, roles.biases):
            node.input(positions[gate])
    node.check(there(roles.recurrent[INPUT]) != sizes.cifg, "input gate weights: both or none")
    node.check(there(roles.biases[INPUT]) != sizes.cifg, "an input gate's bias comes with its weights, and only then")
    peephole = there(roles.peepholes[2])
    node.check(there(roles.peepholes[1]) == peephole, "peephole weights: all or none")
    node.check(there(roles.peepholes[0]) == peephole or sizes.cifg, "peephole weights: all or none")
    if sizes.normalised:
        node.check(all(there(roles.norms[g]) for g in (CELL, OUTPUT)), "layer norms: all or none")
        node.check(there(roles.norms[INPUT]) != sizes.cifg, "layer norms: all or none")
    node.check(
        there(roles.projection) or not there(roles.projection_bias), "projection bias without projection weights"
    )


def _check_shapes(node: Node, roles: LstmRoles, sizes: LstmSizes, diagonal: bool) -> None:
    cells, outputs = sizes.cells, sizes.outputs
    allowed: dict[int, tuple[Shape, ...]] = {}
    for position in (*roles.peepholes, *roles.biases, *(roles.norms if sizes.normalised else ())):
        allowed[position] = ((cells,),)
    for position in roles.inputs:
        allowed[position] = ((cells, sizes.inputs),)
    for position in roles.recurrent:
        allowed[position] = ((cells, outputs), (cells,)) if diagonal else ((cells, outputs),)
    allowed |= {roles.projection: ((outputs, cells),), roles.projection_bias: ((outputs,),)}
    for position, shapes in allowed.items():
        operand = node.optional(position)
        if operand is not None:
            node.check(operand.shape in shapes, "shape", operand, expected=list(shapes[0]), got=list(operand.shape))


def _check_types(node: Node, roles: LstmRoles) -> None:
    """Require weights of one type; a recurrent diagonal is float32."""
    weight_type = node.input(roles.inputs[OUTPUT]).type
    for position in (*roles.inputs, *roles.recurrent, roles.projection, *roles.auxiliary):
        operand = node.optional(position)
        if operand is None:
            continue
        type_ = TensorType.FLOAT32 if position in roles.recurrent and is_diagonal(operand) else weight_type
        node.check(operand.type == type_, "type", operand, expected=type_.label, got=operand.type.label)


def types(x: str, w: str, peephole: str, bias: str, state: str, norm: str) -> str:
    """Return the signature of a cell's 20 to 24 operands."""
    diagonal = w if x == "int8" or w == "float32" else f"{w}|float32"
    return (
        f"{x} {w}? {w} {w} {w} {diagonal}? {diagonal} {diagonal} {diagonal} {peephole}? {peephole}? {peephole}? "
        f"{bias}? {bias} {bias} {bias} {w}? {bias}? {x} {state} {norm}? {norm}? {norm}? {norm}? -> {x}"
    )


#: Signatures of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM: float, 8-bit weights, 8-bit activations.
FLOATS, _HYBRID, INTEGERS = FORMS = (
    types("float32", "float32", "float32", "float32", "float32", "float32"),
    types("float32", "int8|uint8", "int8|uint8", "float32", "float32", "float32"),
    types("int8", "int8", "int16", "int32", "int16", "int16"),
)
