"""The roles of operands of integer operators, and the tensors that share scale and zero point.

Constraints on a scheme beyond the rules of operators.

Operators behind the last ones with weights, which cost next to nothing in any type.

Select the operators that become integer, their modes, and the reasons why others stay in float.

Ranges are not used here: a scheme is the part of a quantization that the graph and the modes decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.rules import (
    BROKEN,
    CONVERSIONS,
    FIXED,
    KEPT_FLOAT,
    READS_SHAPES,
    RULES,
    need,
    needs_of,
    tied_inputs,
)
from tflq.engine.kernels.table import find
from tflq.engine.profiles import by_name
from tflq.model.ir import OperatorView, TensorType
from tflq.quantization.recipe import BLOCK, TYPES, WITH_EIGHT_BITS, Mode
from tflq.quantization.scheme import operands
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.operands import CELLS, Multiplied, multiplied, operand_types, own_type, stored_weights


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on a scheme beyond LiteRT's rules.

    `joins_rescale`: operators that join tensors get some of them rescaled if that gives finer scales. Constant operands
    of `own_constants` operators are groups of their own. Weights of `one_scale` operators have one scale for all
    channels.
    """

    joins_rescale: bool = True
    own_constants: frozenset[str] = frozenset()
    one_scale: frozenset[str] = frozenset()
    operators: frozenset[int] = frozenset()  # that keep to these; others are as LiteRT wants them


NONE = Constraints()


#: Weights of this number of elements or fewer, as those that average a distribution's bins, cost nothing.
_FEW_WEIGHTS = 64


def tail_region(floats: FloatModel) -> frozenset[int]:
    """Return the operators behind the last ones with weights on every way; none if no operator has weights."""
    graph, chosen, has_heavy = floats.graph, set[int](), False
    for op in reversed(graph.ops):
        heavy = _is_heavy(floats, op)
        has_heavy |= heavy
        readers = {reader.index for t in op.outputs for reader in graph.readers(t)}
        if not heavy and readers <= chosen and any(map(floats.is_float, op.outputs)):
            chosen.add(op.index)
    return frozenset(chosen) if has_heavy else frozenset()


def _is_heavy(floats: FloatModel, op: OperatorView) -> bool:
    fact = OPERATORS.get(op.name)
    if fact is None or fact.products is None:
        return False
    weights = floats.constants.get(op.inputs[1]) if len(op.inputs) > 1 else None
    return weights is None or weights.size > _FEW_WEIGHTS


#: The profile whose kernels decide which operators have an integer form.
REFERENCE_PROFILE = "litert-ref"


def modes_of(
    model: FloatModel, mode: Mode, kept_float: Mapping[int, str]
) -> tuple[tuple[Mode | None, ...], dict[int, str]]:
    """Return each operator's mode, and the reasons, by index, why operators on float data stay in float."""
    modes: list[Mode | None] = []
    reasons = dict(kept_float)
    for index in range(len(model.graph.ops)):
        own = _own_mode(model, index, mode)
        reason = reasons.get(index) or _refusal(model, index, own)
        if reason:
            reasons[index] = reason
        modes.append(None if reason is not None else own)
    return tuple(modes), {index: reason for index, reason in reasons.items() if reason}


def _own_mode(model: FloatModel, index: int, mode: Mode) -> Mode:
    """Return the mode in which an operator computes: with weights of eight bits if its kernel takes none of four."""
    wider = WITH_EIGHT_BITS.get(mode)
    if wider is None:
        return mode
    weights = multiplied(model, index, mode)
    narrow = weights is not None and (
        _has_blocks(model, index, weights) if mode is Mode.DYNAMICX4 else needs_of(model.graph.op(index).name).int4 > 1
    )
    return mode if narrow and _refusal(model, index, mode) is None else wider


def _has_blocks(model: FloatModel, index: int, weights: Multiplied) -> bool:
    """Return whether an operator's weights have whole blocks, and XNNPACK takes them: those of a FULLY_CONNECTED."""
    shape = model.constants[weights.tensor].shape
    return (
        model.graph.op(index).name == "FULLY_CONNECTED" and len(shape) == 2 and shape[1] > 0 and shape[1] % BLOCK == 0
    )


def _refusal(model: FloatModel, index: int, mode: Mode) -> str | None:
    """Return the reason why an operator stays in float.

    The reason is empty if it holds no float data, and None if it becomes integer.
    """
    operator, types = model.graph.op(index), TYPES[mode]
    op = operator.name
    weights = multiplied(model, index, mode)
    if op in READS_SHAPES | CONVERSIONS or not any(model.is_float(t) for t in (*operator.inputs, *operator.outputs)):
        return ""
    if types.data is None and weights is None and not stored_weights(model, index, mode):
        return ""
    if op not in RULES:
        return KEPT_FLOAT.get(op, "LiteRT has no integer kernel for it")
    if weights is not None and weights.bias is not None and weights.bias not in model.constants:
        return "its bias is computed"
    if op in CELLS and mode == Mode.INT8 and (reason := operands.refusal(model, index)):
        return reason
    if op == "SVDF" and any(operator.inputs[p] not in model.constants for p in (operands.FEATURES, operands.TIME)):
        return "its weights are computed"
    if types.data == TensorType.UINT8 and RULES[op].fills:
        return "its kernel writes code 0 for the value 0, which uint8 activations cannot all have"
    if types.data is not None and (op, types.data) in BROKEN:
        return BROKEN[op, types.data]
    inputs, outputs = operand_types(model, index, mode)
    kernels = by_name(REFERENCE_PROFILE).kernels
    if mode == Mode.WEIGHTS or find(kernels, op, need(op, inputs), inputs, outputs) is not None:
        return None
    return f"LiteRT has no {mode.value} kernel for its operands"


#: An operand: (operator, input position).
Slot = tuple[int, int]
#: A tensor in one integer type: as it is produced, or as QUANTIZE converts it for an operator that reads another type.
Form = tuple[int, TensorType]


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """Modes of operators (None: float) and the groups of tensors that share scale and zero point.

    A group is named by one of its forms. `results` gives the group of each tensor that an integer operator produces or
    that the graph receives; `read` gives those of operands that hold activations. `members` are the tensors whose
    ranges a group must hold, `fixed` the scale and zero point of groups that an operator decides; groups of `centred`
    have zero point 0. `constants` are slots of constants that are read as activations: with their group, or None if
    their own range decides. `stored` are weights without a search for a better range, with the dimension of their
    channels. `cells` are LSTMs on integer activations; `states` are the states of SVDFs, with the operator. `edges` are
    float inputs and outputs of the graph that no integer operator reads or produces.
    """

    model: FloatModel
    modes: tuple[Mode | None, ...]
    results: Mapping[int, Form]
    read: Mapping[Slot, Form]
    members: Mapping[Form, tuple[int, ...]]
    fixed: Mapping[Form, tuple[float, int]]
    centred: frozenset[Form]
    constants: Mapping[Slot, Form | None]
    multiplied: tuple[Multiplied, ...]
    stored: Mapping[Slot, int | None]
    cells: tuple[int, ...]
    states: Mapping[Form, int]
    edges: Mapping[int, Form]

    @property
    def observed(self) -> tuple[int, ...]:
        """Tensors whose ranges are needed, in order."""
        known = {*self.fixed, *self.states}
        members = (t for group, members in self.members.items() if group not in known for t in members)
        return tuple(sorted({t for t in members if t not in self.model.constants}))


def scheme(model: FloatModel, modes: Sequence[Mode | None], kept: Constraints = NONE) -> Scheme:
    """Return the scheme of a graph whose operators compute in `modes`; it keeps to further constraints."""
    return _Grouping(model, tuple(modes), kept).result()


def _tied_and_computed(model: FloatModel, index: int) -> list[int]:
    """Return positions of inputs that share the output's scale and are not constant."""
    op = model.graph.op(index)
    inputs, tied = op.inputs, tied_inputs(op.name, len(op.inputs))
    return [p for p in tied if p < len(inputs) and model.is_float(inputs[p]) and inputs[p] not in model.constants]


def _passed_on(model: FloatModel, modes: Sequence[Mode | None]) -> frozenset[int]:
    """Return tensors whose codes only reach operators that join them with others, perhaps moved on the way."""
    graph, lost = model.graph, set(model.graph.outputs)
    for index in reversed(range(len(modes))):
        operator, tied = graph.op(index), _tied_and_computed(model, index)
        joins = len(tied) > 1 or not lost.intersection(operator.outputs)
        kept = tied if modes[index] is not None and joins else ()
        lost.update(t for p, t in enumerate(operator.inputs) if p not in kept)
    return frozenset(range(len(graph.tensors))) - lost


class _Grouping:
    """Groups of forms while operators are added in order."""

    def __init__(self, model: FloatModel, modes: tuple[Mode | None, ...], kept: Constraints) -> None:
        self._model, self._modes, self._kept = model, modes, kept
        self._parent: dict[Form, Form] = {}
        self._fixed: dict[Form, tuple[float, int]] = {}
        self._centred: set[Form] = set()
        self._made: dict[int, Form] = {}
        self._read: dict[Slot, Form] = {}
        self._constants: dict[Slot, Form | None] = {}
        self._multiplied: list[Multiplied] = []
        self._stored: dict[Slot, int | None] = {}
        self._cells: list[int] = []
        self._states: dict[Form, int] = {}
        self._edges: dict[int, Form] = {}
        self._passed_on = _passed_on(model, modes)
        for index, mode in enumerate(modes):
            if mode is not None:
                self._take(index, mode)
        self._give_inputs()
        self._give_edges()

    def result(self) -> Scheme:
        members: dict[Form, list[int]] = {}
        for form in self._parent:
            members.setdefault(self._root(form), []).append(form[0])
        return Scheme(
            model=self._model,
            modes=self._modes,
            results={t: self._root(form) for t, form in self._made.items()},
            read={slot: self._root(form) for slot, form in self._read.items()},
            members={root: tuple(sorted(tensors)) for root, tensors in members.items()},
            fixed=self._fixed,
            centred=frozenset(map(self._root, self._centred)),
            constants={slot: None if form is None else self._root(form) for slot, form in self._constants.items()},
            multiplied=tuple(self._multiplied),
            stored=self._stored,
            cells=tuple(self._cells),
            states=self._states,
            edges=self._edges,
        )

    def _take(self, index: int, mode: Mode) -> None:
        weights = multiplied(self._model, index, mode)
        kept = self._kept if index in self._kept.operators else NONE
        if weights is not None and self._model.graph.op(index).name in kept.one_scale:
            weights = replace(weights, axis=None)
        if weights is not None:
            self._multiplied.append(weights)
        for position, axis in stored_weights(self._model, index, mode).items():
            self._stored[index, position] = axis
        data = TYPES[mode].data
        if data is None:
            return
        operator = self._model.graph.op(index)
        op = operator.name
        if op in CELLS:
            self._take_cell(index)
            return
        if op == "SVDF":
            self._take_svdf(index)
            return
        special = set() if weights is None else {weights.position}
        if weights is not None and weights.bias is not None:
            special.add(weights.bias_position)
        outputs = [(t, data) for t in operator.outputs if self._model.is_float(t)]
        for form in outputs:
            if (op, data) in FIXED:
                self._fixed[form] = FIXED[op, data]
            self._made[form[0]] = self._new(form)
            if RULES[op].fills:
                self._centred.add(form)
        for first, second in pairwise(outputs):
            self._union(first, second)
        activations = [p for p, t in enumerate(operator.inputs) if self._model.is_float(t) and p not in special]
        tied = tied_inputs(op, len(operator.inputs)) if outputs else ()
        computed = _tied_and_computed(self._model, index)
        for position in activations:
            tensor = operator.inputs[position]
            form = (tensor, own_type(op, position, mode) or data)
            if tensor in self._model.constants:
                own = self._new(form) if op in kept.own_constants else None
                self._constants[index, position] = outputs[0] if position in tied else own
            elif position not in tied:
                self._read[index, position] = self._new(form)
            elif self._compatible(form, outputs[0]) and (len(computed) == 1 or self._may_share(form, kept)):
                self._read[index, position] = form
                self._union(form, outputs[0])
            else:
                self._read[index, position] = outputs[0]

    def _take_cell(self, index: int) -> None:
        """Add an LSTM: its output state is its output, its cell state has its own scale; other inputs are constants."""
        operator = self._model.graph.op(index)
        x, state, cell = (operator.inputs[p] for p in (0, operands.OUTPUT_STATE, operands.CELL_STATE))
        output, memory = (operator.outputs[0], TensorType.INT8), (cell, TensorType.INT16)
        self._fixed[memory] = operands.cell_scale(self._model, index), 0
        self._made[operator.outputs[0]] = self._made[state] = self._new(output)
        self._made[cell] = self._new(memory)
        self._read[index, 0] = self._new((x, TensorType.INT8))
        self._read[index, operands.OUTPUT_STATE], self._read[index, operands.CELL_STATE] = output, memory
        for position, tensor in enumerate(operator.inputs):
            if tensor in self._model.constants and position not in operands.BIASES and position:
                self._constants[index, position] = None
        self._cells.append(index)

    def _take_svdf(self, index: int) -> None:
        """Add an SVDF: the scale of its state follows from its input's."""
        operator = self._model.graph.op(index)
        state = (operator.inputs[operands.STATE], TensorType.INT16)
        self._made[state[0]] = self._read[index, operands.STATE] = self._new(state)
        self._made[operator.outputs[0]] = self._new((operator.outputs[0], TensorType.INT8))
        self._read[index, operands.X] = self._new((operator.inputs[operands.X], TensorType.INT8))
        for position in (operands.FEATURES, operands.TIME):
            if operator.inputs[position] in self._model.constants:
                self._constants[index, position] = None
        self._states[state] = index

    def _give_edges(self) -> None:
        """Give inputs and outputs of float operators alone a form for callers who want codes."""
        data = next((TYPES[mode].data for mode in self._modes if mode is not None), None)
        for tensor in (*self._model.graph.inputs, *self._model.graph.outputs):
            touched = tensor in self._made or tensor in self._model.constants
            if data is not None and not touched and self._model.is_float(tensor):
                self._edges[tensor] = self._new((tensor, data))

    def _may_share(self, form: Form, kept: Constraints) -> bool:
        """Return whether a group is read only by operators that join it to others, so a wider range costs nothing.

        If joins may not rescale, they share it at any cost.
        """
        root = self._root(self._new(form))
        members = (other[0] for other in self._parent if self._root(other) == root)
        shares = not kept.joins_rescale or all(tensor in self._passed_on for tensor in members)
        return root not in self._fixed and shares

    def _give_inputs(self) -> None:
        """Give each graph input a form of its own, else the form that the first operator reads."""
        read = [(self._model.graph.op(i).inputs[p], form) for (i, p), form in sorted(self._read.items())]
        for tensor, form in [(own[0], own) for own in self._parent] + read:
            if tensor in self._model.graph.inputs:
                self._made.setdefault(tensor, form)

    def _compatible(self, one: Form, other: Form) -> bool:
        roots = [self._root(self._new(form)) for form in (one, other)]
        fixed = [self._fixed[root] for root in roots if root in self._fixed]
        if self._centred.intersection((one, other)) and any(zero_point for _, zero_point in fixed):
            return False
        return len(fixed) < 2 or fixed[0] == fixed[1]

    def _new(self, form: Form) -> Form:
        """Return a form, with the parameters that the file prescribes unless an operator fixes others."""
        if form not in self._parent:
            self._parent[form] = form
            stored = self._model.params.get(form[0])
            if stored is not None and stored.type == form[1] and form not in self._fixed:
                self._fixed[form] = float(stored.scale[0]), int(stored.zero_point[0])
        return form

    def _root(self, form: Form) -> Form:
        while self._parent[form] != form:
            form = self._parent[form]
        return form

    def _union(self, one: Form, other: Form) -> None:
        a, b = self._root(one), self._root(other)
        if a == b:
            return
        self._parent[b] = a
        if b in self._fixed:
            self._fixed[a] = self._fixed.pop(b)
