"""The contents of a model, and the constants with which a profile prepares its operators. Nothing is run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from tflq.comparison.inspection.constants import Constants, constants_of
from tflq.display import display_by
from tflq.engine.api.files import Source
from tflq.engine.api.subject import ModelFacts, Subject, subject
from tflq.engine.interpreter import Step, make_plan
from tflq.engine.kernels.exactness import Exactness
from tflq.engine.kernels.facts.counts import Sizes
from tflq.engine.kernels.validity import REF
from tflq.engine.kernels.work import multiply_accumulates
from tflq.engine.profiles import Profile
from tflq.engine.profiles import by_name as profile_by_name
from tflq.errors import TflqError
from tflq.model.ir import (
    GraphView,
    Model,
    OperatorView,
    Root,
    Signed,
    TensorSpec,
    TensorType,
    rooted,
    signed,
    view,
    with_graph,
)
from tflq.model.ir.schema import in_words
from tflq.model.ir.signatures import call, original_index, reach
from tflq.model.surgery.tap import single_operator

#: Operators that run one of several subgraphs.
_BRANCHES = frozenset({"IF", "STABLEHLO_CASE"})


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One tensor. `scale` and `zero_point` have one entry per tensor or per channel, none if it is not quantized."""

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    signature: tuple[int, ...] | None
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    quantized_dimension: int
    kind: str  # input, output, constant, variable or activation
    bytes: int  # size of the constant, 0 for other tensors


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """One operator. `constants` is None if it is bound at run time, or for the `reason` given.

    `options` are those of the file, in words if the schema has any: ("padding", "SAME").
    """

    index: int
    op: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: tuple[tuple[str, Any], ...]
    macs: int
    constants: Constants | None
    promise: Exactness | None  # of its results; None if it is refused
    reason: str = ""


@display_by("inspect.report:inspect_report")
@dataclass(frozen=True, slots=True)
class Inspection:
    """A signature's subgraph under a profile, or one that operators run.

    `signatures` holds the inspections of all signatures if the model has several, this one among them. `inner` holds
    the subgraphs that its operators run; their `callers` are these operators, by index and name. Multiply-accumulates
    of an operator include those of the subgraphs that it runs, each run once.
    """

    model: ModelFacts
    profile: str
    description: str
    subgraphs: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tensors: tuple[TensorFacts, ...]
    operators: tuple[OperatorFacts, ...]
    name: str = ""
    subgraph: int = 0
    signatures: tuple[Inspection, ...] = ()
    inner: tuple[Inspection, ...] = ()
    callers: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Inspection, ...]:
        """The inspections of all signatures."""
        return self.signatures or (self,)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(operator.macs for operator in self.operators)

    @property
    def unsupported(self) -> tuple[OperatorFacts, ...]:
        """Operators that the profile refuses."""
        return tuple(operator for operator in self.operators if operator.reason)


def inspect(model: Source | Model, profile: str | Profile = "litert-ref", signature: str | None = None) -> Inspection:
    """Read the model and prepare each operator by itself, so that a refused one does not hide the others.

    Args:
        model: A path, the bytes of a file, or a Model. Nothing is run.
        profile: The arithmetic of the constants: a name or a Profile.
        signature: The only signature to inspect. None: all; the result is the first, whose `signatures` holds all.

    Raises:
        FileAccessError, FormatError, ModelError: See `load`.
        UnknownNameError: There is no profile of that name.

    Example:
        >>> found = tflq.inspect("golden/models/digits_mobilenet_int8.tflite")
        >>> found.operators[4].op, f"{found.macs:,}"
        ('CONV_2D', '1,292,544')
        >>> found.operators[4].constants.stages[0].shift[:3]
        (-9, -9, -9)
    """
    chosen = profile_by_name(profile)
    target = subject(model)
    found = tuple(_with_inner(target, part, chosen) for part in signed(target.model, signature))
    return replace(found[0], signatures=found) if len(found) > 1 else found[0]


def _with_inner(target: Subject, part: Signed, profile: Profile) -> Inspection:
    """Inspect a signature, and the subgraphs that its operators run."""
    callers: dict[int, list[str]] = {}
    for op in view(part.model).ops:
        for index in sorted(reach(part.model, set(call(op.record)))):
            callers.setdefault(index, []).append(f"{op.index} {op.name}")
    inner = []
    for index, names in callers.items():
        inside = rooted(part.model, Root(None, index))
        place = original_index(part.root, index)
        inner.append(_inspection(target, inside, profile, place, view(inside).record.name or "", callers=tuple(names)))
    return _inspection(target, part.model, profile, part.root.subgraph, part.name, inner=tuple(inner))


def _inspection(
    target: Subject,
    model: Model,
    profile: Profile,
    subgraph: int,
    name: str,
    inner: tuple[Inspection, ...] = (),
    callers: tuple[str, ...] = (),
) -> Inspection:
    """Inspect the first subgraph of a model."""
    graph = view(model)
    return Inspection(
        model=target.facts,
        profile=profile.name,
        description=target.model.description or "",
        subgraphs=len(target.model.subgraphs),
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=tuple(_tensor(graph, i, spec) for i, spec in enumerate(graph.tensors)),
        operators=tuple(_operator(op, profile, is_inner=bool(callers)) for op in graph.ops),
        name=name,
        subgraph=subgraph,
        inner=inner,
        callers=callers,
    )


def _tensor(graph: GraphView, index: int, spec: TensorSpec) -> TensorFacts:
    q = spec.quantization
    data = graph.data(index)
    size = 0 if data is None else data.nbytes
    kinds = (
        (spec.is_variable, "variable"),
        (index in graph.inputs, "input"),
        (size > 0, "constant"),
        (index in graph.outputs, "output"),
    )
    return TensorFacts(
        index=index,
        name=spec.name or "",
        type=spec.type.label if isinstance(spec.type, TensorType) else str(spec.type),
        shape=spec.shape,
        signature=spec.shape_signature,
        scale=tuple(q.scale.tolist()) if q else (),
        zero_point=tuple(q.zero_point.tolist()) if q else (),
        quantized_dimension=q.quantized_dimension if q else 0,
        kind=next((kind for holds, kind in kinds if holds), "activation"),
        bytes=size,
    )


def _operator(op: OperatorView, profile: Profile, *, is_inner: bool) -> OperatorFacts:
    constants, promise, reason = None, None, ""
    if not (is_inner and any(True for _ in call(op.record))):  # what runs others is bound by the outermost operator
        constants, promise, reason = _prepare(op.graph.model, op.index, profile)
    return OperatorFacts(
        index=op.index,
        op=op.name,
        version=op.version,
        inputs=op.inputs,
        outputs=op.outputs,
        options=_options(op),
        macs=macs_with_calls(op),
        constants=constants,
        promise=promise,
        reason=reason,
    )


def prepare_alone(model: Model, index: int, profile: Profile, beside: Collection[Profile] = ()) -> Step:
    """Return one operator as the profile prepares it, in the form to be compared with that of those `beside` it.

    Reference kernels do not depend on whether weights are constant. Where all profiles have them, they get no weights,
    which saves packing.
    """
    *others, whole = forms_alone(model, index, (profile, *beside))
    for form in others:
        try:
            return make_plan(form, profile).steps[0]
        except TflqError:
            continue
    return make_plan(whole, profile).steps[0]


def forms_alone(model: Model, index: int, profiles: Collection[Profile]) -> tuple[Model, ...]:
    """Return one operator as models of its own, of which the first that a profile takes is prepared.

    The last one has the operator's weights.
    """
    alone, _ = single_operator(model, index)
    has_packed = any(one.runtime.resolver != REF for one in profiles)
    return (alone,) if has_packed else (_without_weights(alone), alone)


def _prepare(model: Model, index: int, profile: Profile) -> tuple[Constants | None, Exactness | None, str]:
    """Return constants, promise, and the reason if there are none."""
    try:
        step = prepare_alone(model, index, profile)
    except TflqError as error:
        return None, None, error.statement
    return None if step.prepared is None else constants_of(step.prepared), step.promise, ""


#: Types of constants that may be a shape, an axis or paddings, which determine shapes.
_SHAPE_TYPES = frozenset({TensorType.INT32, TensorType.INT64, TensorType.BOOL})


def _without_weights(alone: Model) -> Model:
    """Return the operator with its constants of other types as graph inputs, which prevents packing."""
    graph = view(alone)
    withheld = {
        index
        for index, spec in enumerate(graph.tensors)
        if spec.type not in _SHAPE_TYPES
        and not spec.is_variable
        and (data := graph.data(index)) is not None
        and data.nbytes
    }
    tensors = tuple(replace(spec, buffer=0) if i in withheld else spec for i, spec in enumerate(graph.tensors))
    inputs = (*graph.inputs, *sorted(withheld - set(graph.inputs)))
    return with_graph(alone, replace(graph.record, tensors=tensors, inputs=inputs))


def _options(op: OperatorView) -> tuple[tuple[str, Any], ...]:
    record = op.options
    if record is None:
        return ()
    plain = ((name, value) for name, value in record.fields.items() if isinstance(value, (bool, int, float, str)))
    return tuple((name, in_words(record.table, name, value)) for name, value in plain)


def macs_with_calls(op: OperatorView) -> int:
    """Return an operator's multiply-accumulates with those of the subgraphs that it runs, each counted once.

    Of the branches of IF and STABLEHLO_CASE only the one with the most counts.
    """
    return macs_of(op) + _macs_of_calls(op, {})


def _macs_of_calls(op: OperatorView, known: dict[int, int]) -> int:
    """Return the multiply-accumulates of the subgraphs that an operator runs; `known` are those of some subgraphs."""
    inside, model = [], op.graph.model
    for index in call(op.record):
        if index not in known and 0 <= index < len(model.subgraphs):
            known[index] = 0  # a subgraph that runs itself counts once
            known[index] = sum(macs_of(one) + _macs_of_calls(one, known) for one in view(model, index).ops)
        inside.append(known.get(index, 0))
    return max(inside, default=0) if op.builtin in _BRANCHES else sum(inside)


def macs_of(op: OperatorView) -> int:
    """Return an operator's multiply-accumulates, from the shapes in the file; 0 if it has none."""
    sizes = Sizes(
        inputs=tuple(None if spec is None else spec.shape for spec in op.input_specs),
        outputs=tuple(() if spec is None else spec.shape for spec in op.output_specs),
        options={} if op.options is None else op.options.fields,
    )
    return multiply_accumulates(op.name, sizes)
