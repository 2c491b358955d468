"""One operator prepared under many profiles, once for all profiles that cannot differ on it.

Preparing depends on the profile's row for the operator and on those fields of its arithmetic that the row reads. Both
are compared, so that most profiles need no preparation of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from tflq.comparison.inspection.operators import forms_alone, planned
from tflq.comparison.inspection.prepared import Kinds, same, same_fields
from tflq.engine.interpreter.binding import prepare
from tflq.engine.interpreter.fusions import fusions
from tflq.engine.interpreter.plan import Step
from tflq.engine.interpreter.planning import check_loading, kernel_for
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.table import KernelTable
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, OperatorView, TensorType, view

_FIELDS = frozenset(field.name for field in fields(Arithmetic))
#: Fields of a row that state where it is valid, not what it does.
_PLACES = ("types", "versions", "when")
#: Types of an operator's inputs, None for one that is left out, and of its outputs.
_Types: TypeAlias = "tuple[tuple[TensorType | None, ...], tuple[TensorType, ...]]"


class KernelRows:
    """Rows of kernel tables, found and compared once. Two are alike if they run the same code on the same values."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, tuple[Kernel, KernelTable]] = {}
        self._alike: dict[tuple[int, int], bool] = {}

    def row(self, profile: Profile, op: OperatorView, types: _Types) -> Kernel:
        """Return the profile's row for an operator on operands of those types.

        Raises:
            UnsupportedError: There is none.
        """
        key = id(profile.kernels), op.name, op.version, types
        if key not in self._rows:
            row = kernel_for(profile, op.name, op.version, op.index, *types)
            self._rows[key] = row, profile.kernels  # which keeps the number of the table from being reused
        return self._rows[key][0]

    def are_alike(self, first: Kernel, second: Kernel) -> bool:
        """Return whether both rows, found here, prepare the same."""
        key = id(first), id(second)
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = first is second or same_fields(first, second, _PLACES)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """One operator as some profiles prepare it: by which row, and the result, None if it is bound at run time."""

    row: Kernel
    prepared: Prepared | None


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A preparation under one profile. `read` are the fields of its arithmetic on which it depends."""

    preparation: Preparation
    arithmetic: Arithmetic
    is_chained: bool
    read: frozenset[str]

    def holds(self, profile: Profile) -> bool:
        """Return whether a profile's arithmetic has the same values in these fields."""
        mine, theirs = self.arithmetic, profile.arithmetic
        return mine is theirs or all(same(getattr(mine, name), getattr(theirs, name)) for name in self.read)


class Preparations:
    """One operator of a model by itself, under some of `profiles`.

    `rows` keeps the rows that were found for other operators of the model.
    """

    def __init__(self, model: Model, index: int, profiles: Sequence[Profile], rows: KernelRows) -> None:
        self._forms = forms_alone(model, index, profiles)
        self._graph = view(self._forms[-1])
        self._op = self._graph.op(0)
        self._types = _types(self._op)
        self._rows = rows
        self._node: Node | None = None  # of the operator with its weights
        self._known: list[_Known] = []
        self._kinds = Kinds()
        self._unbound: list[Any] = []  # kernels of operators that are bound at run time

    def under(self, profile: Profile) -> Preparation:
        """Return the operator as the profile prepares it: the same object for profiles that prepare it alike.

        Raises:
            TflqError: The profile refuses the operator.
        """
        if self._types is None:
            return _preparation(planned(self._forms, profile))
        is_chained = bool(fusions(self._graph, profile).chains)
        if self._known:  # the profile can refuse the file and the types, and nothing else in advance
            check_loading(self._graph, profile)
            row = self._rows.row(profile, self._op, self._types)
            for known in self._known:
                is_alike = known.is_chained == is_chained and self._rows.are_alike(known.preparation.row, row)
                if is_alike and known.holds(profile):
                    return known.preparation
        watched = Watched.of(profile.arithmetic)
        as_watched = replace(profile, arithmetic=watched)
        references = sys.getrefcount(watched)
        made = self._prepare(as_watched, is_chained)
        if sys.getrefcount(watched) != references:  # the result can read more fields later
            return self._prepare(profile, is_chained)
        if not made.row.session:
            made = Preparation(self._rows.row(profile, self._op, self._types), made.prepared)
            self._known.append(_Known(made, profile.arithmetic, is_chained, frozenset(watched.read)))
        return made

    def kind(self, made: Preparation) -> int:
        """Return a number that is equal for preparations that give equal bits.

        If an operator is bound at run time, only its kernel is known.
        """
        if made.prepared is not None:
            return self._kinds.of(made.prepared)
        for number, known in enumerate(self._unbound):
            if same(known, made.row.prepare):
                return -1 - number
        self._unbound.append(made.row.prepare)
        return -len(self._unbound)

    def kind_under(self, profile: Profile) -> int | None:
        """Return the `kind` of the operator as the profile prepares it; None if the profile refuses it."""
        try:
            return self.kind(self.under(profile))
        except TflqError:
            return None

    def _prepare(self, profile: Profile, is_chained: bool) -> Preparation:
        """Prepare the operator, in the surroundings of an earlier plan if there is one that fits."""
        node = self._node
        if node is not None and self._types is not None:
            row = self._rows.row(profile, self._op, self._types)
            if not row.session and _is_static(row, node):
                types = [output.type if row.makes is None else row.makes for output in node.outputs]
                outputs = tuple(replace(o, type=type_) for o, type_ in zip(node.outputs, types, strict=True))
                own = replace(node, outputs=outputs, is_in_chain=is_chained)
                return Preparation(row, prepare(row, own, profile.arithmetic))
        step = planned(self._forms, profile)
        if len(self._forms) == 1 and self._types is not None and _is_plain(step):
            made = zip(step.node.outputs, self._types[1], strict=True)
            self._node = replace(step.node, outputs=tuple(replace(o, type=type_) for o, type_ in made))
        return _preparation(step)


def _preparation(step: Step) -> Preparation:
    return Preparation(step.kernel, step.prepared)


def _types(op: OperatorView) -> _Types | None:
    """Return the types of an operator's inputs and outputs; None if a row is not chosen by them alone."""
    specs = (*op.input_specs, *op.output_specs)
    if any(spec is not None and (spec.sparsity is not None or not isinstance(spec.type, TensorType)) for spec in specs):
        return None
    inputs = tuple(None if spec is None else TensorType(spec.type) for spec in op.input_specs)
    return inputs, tuple(TensorType(spec.type) for spec in op.output_specs if spec is not None)


def _is_static(row: Kernel, node: Node) -> bool:
    """Return whether the file has all values that the row needs to prepare the node."""
    operands = (node.optional(position) for position in row.shape_operands)
    return all(operand is None or operand.is_constant for operand in operands)


def _is_plain(step: Step) -> bool:
    """Return whether an operator has no state, and writes to none of its operands."""
    written = {*step.inputs} & {*step.outputs}
    return not step.kernel.session and not written and not any(o.is_variable for o in step.node.outputs)


class Watched(Arithmetic):
    """An arithmetic that notes which of its fields are read. Copies of it note nothing: copying reads all fields."""

    __slots__ = ("read",)
    read: set[str]

    @classmethod
    def of(cls, arithmetic: Arithmetic) -> Watched:
        """Return an arithmetic with equal fields, of which none has been read."""
        watched = cls(**{name: getattr(arithmetic, name) for name in _FIELDS})
        object.__setattr__(watched, "read", set())
        return watched

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute; note a field."""
        if name in _FIELDS:
            read: set[str] = getattr(self, "read", set())
            read.add(name)
        return object.__getattribute__(self, name)
