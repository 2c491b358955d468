"""What a model is made of, and the constants that a profile prepares its operators with. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tflq.api.files import Source
from tflq.api.subject import ModelFacts, subject
from tflq.display import displayed_by
from tflq.errors import TflqError
from tflq.inspection.constants import Constants, constants_of
from tflq.interpreter import Step, make_plan
from tflq.ir import Model, Operator, Subgraph, TensorSpec, TensorType
from tflq.ir.schema import in_words
from tflq.kernels.exactness import Exactness
from tflq.kernels.work import Sizes, multiply_accumulates
from tflq.profiles import Profile
from tflq.profiles import by_name as profile_by_name
from tflq.surgery.tap import single_operator


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One tensor. `scale` and `zero_point` have one entry per tensor or per channel, none where it is not quantized."""

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    signature: tuple[int, ...] | None
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    quantized_dimension: int
    kind: str  # input, output, constant, variable or activation
    bytes: int  # of the constant, 0 for other tensors


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """One operator. `constants` is None where it is bound as the model runs, or for the `reason` given.

    `options` are those of the file, in words where the schema has any: ("padding", "SAME").
    """

    index: int
    op: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: tuple[tuple[str, Any], ...]
    macs: int
    constants: Constants | None
    promise: Exactness | None  # of its results; None where it is refused
    reason: str = ""


@displayed_by("inspect.report:inspect_report")
@dataclass(frozen=True, slots=True)
class Inspection:
    """A model's first subgraph under a profile."""

    model: ModelFacts
    profile: str
    description: str
    subgraphs: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tensors: tuple[TensorFacts, ...]
    operators: tuple[OperatorFacts, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(operator.macs for operator in self.operators)

    @property
    def unsupported(self) -> tuple[OperatorFacts, ...]:
        """Operators that the profile refuses."""
        return tuple(operator for operator in self.operators if operator.reason)


def inspect(model: Source | Model, profile: str | Profile = "litert-ref") -> Inspection:
    """Read the model and prepare each operator by itself, so that one that is refused does not hide the others.

    Args:
        model: A path, the bytes of a file, or a Model. Its first subgraph is looked at, and nothing is run.
        profile: Whose arithmetic the constants are for: a name or a Profile.

    Raises:
        FileAccessError, FormatError, ModelError: As `load`.
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
    graph = target.model.subgraphs[0] if target.model.subgraphs else Subgraph((), (), (), ())
    return Inspection(
        model=target.facts,
        profile=chosen.name,
        description=target.model.description or "",
        subgraphs=len(target.model.subgraphs),
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=tuple(_tensor(target.model, graph, i, spec) for i, spec in enumerate(graph.tensors)),
        operators=tuple(_operator(target.model, graph, i, chosen) for i in range(len(graph.operators))),
    )


def _tensor(model: Model, graph: Subgraph, index: int, spec: TensorSpec) -> TensorFacts:
    q = spec.quantization
    size = _constant_bytes(model, spec)
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


def _constant_bytes(model: Model, spec: TensorSpec) -> int:
    data = model.buffers[spec.buffer].data if 0 <= spec.buffer < len(model.buffers) else None
    return 0 if data is None else data.nbytes


def _operator(model: Model, graph: Subgraph, index: int, profile: Profile) -> OperatorFacts:
    operator = graph.operators[index]
    code = (
        model.operator_codes[operator.opcode_index] if 0 <= operator.opcode_index < len(model.operator_codes) else None
    )
    op = "?" if code is None else code.custom_code or code.name if code.name == "CUSTOM" else code.name
    constants, promise, reason = _prepared(model, index, profile, op)
    return OperatorFacts(
        index=index,
        op=op,
        version=code.version if code else 0,
        inputs=operator.inputs,
        outputs=operator.outputs,
        options=_options(operator),
        macs=macs_of(op, graph.tensors, operator),
        constants=constants,
        promise=promise,
        reason=reason,
    )


def prepare_alone(model: Model, index: int, profile: Profile) -> Step:
    """One operator as the profile prepares it, without its weights where they are not needed."""
    alone, _ = single_operator(model, index)
    try:
        return make_plan(_without_weights(alone), profile).steps[0]
    except TflqError:
        return make_plan(alone, profile).steps[0]


def _prepared(model: Model, index: int, profile: Profile, op: str) -> tuple[Constants | None, Exactness | None, str]:
    """Constants, promise, and why there are none."""
    try:
        step = prepare_alone(model, index, profile)
    except TflqError as error:
        return None, None, error.statement
    except IndexError:
        return None, None, "a tensor or operator code index is out of range"
    return None if step.prepared is None else constants_of(step.prepared), step.promise, ""


#: Types of constants that may be a shape, an axis or paddings, whose values decide shapes.
_SHAPE_TYPES = frozenset({TensorType.INT32, TensorType.INT64, TensorType.BOOL})


def _without_weights(alone: Model) -> Model:
    """Return the operator with its constants of other types as graph inputs, so that nothing is packed for speed."""
    graph = alone.subgraphs[0]
    withheld = {
        index
        for index, spec in enumerate(graph.tensors)
        if spec.type not in _SHAPE_TYPES and not spec.is_variable and _constant_bytes(alone, spec)
    }
    tensors = tuple(replace(spec, buffer=0) if i in withheld else spec for i, spec in enumerate(graph.tensors))
    inputs = (*graph.inputs, *sorted(withheld - set(graph.inputs)))
    return replace(alone, subgraphs=(replace(graph, tensors=tensors, inputs=inputs), *alone.subgraphs[1:]))


def _options(operator: Operator) -> tuple[tuple[str, Any], ...]:
    record = operator.options or operator.options_2
    if record is None:
        return ()
    plain = ((name, value) for name, value in record.fields.items() if isinstance(value, (bool, int, float, str)))
    return tuple((name, in_words(record.table, name, value)) for name, value in plain)


def macs_of(op: str, tensors: Sequence[TensorSpec], operator: Operator) -> int:
    """Multiply-accumulates of an operator, from the shapes that the file declares; 0 for those that have none."""

    def shape(tensor: int) -> tuple[int, ...] | None:
        return tensors[tensor].shape if 0 <= tensor < len(tensors) else None

    record = operator.options or operator.options_2
    sizes = Sizes(
        inputs=tuple(shape(tensor) for tensor in operator.inputs),
        outputs=tuple(shape(tensor) or () for tensor in operator.outputs),
        options={} if record is None else record.fields,
    )
    return multiply_accumulates(op, sizes)
