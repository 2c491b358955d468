"""A model while some of its operators are replaced by others.

The values that describe rewrites: what became of an operator, and what keeps a model from being portable.

Operators that several forms write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import (
    GraphView,
    Model,
    Operator,
    OperatorCode,
    OperatorView,
    Quantization,
    TensorSpec,
    TensorType,
    view,
)
from tflq.model.ir.model import enum
from tflq.quantization.draft import IntegerModel, ModelDraft, options
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten operator: its index and name in the source model, the tensor it made, and the operators instead.

    `cost` is the loss of accuracy ("exact" if there is none), `bytes` the constants that it adds to the file.
    """

    index: int
    op: str
    name: str
    becomes: str
    why: str
    bytes: int
    cost: str = "exact"


def rewrite_of(operator: OperatorView, steps: Sequence[str], why: str, count: int) -> Rewrite:
    """Return the rewrite of an operator of the source to some others, with the bytes of their constants."""
    return Rewrite(operator.index, operator.name, operator.output().name or "", ", ".join(steps), why, count)


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """A rewritten model; `origins` are the indices of its operators in the source model."""

    model: Model
    rewrites: tuple[Rewrite, ...]
    origins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """An operator whose bits differ between runtimes: why, what it is worth to keep it, and what to do instead."""

    index: int
    op: str
    name: str
    why: str
    kept: str
    instead: str


class Editing:
    """The first subgraph of a model while its operators are copied or replaced, in order.

    Tensors of the source go by their own indices until an operator is written; `new` gives that of the result.
    """

    def __init__(self, model: Model) -> None:
        self.graph: GraphView = view(model)
        self._model = model
        self._draft = ModelDraft(model)
        self._made: dict[int, int] = {}
        self._inputs = tuple(map(self.new, self.graph.inputs))

    def new(self, tensor: int) -> int:
        """Return the new index of a tensor of the source, which is copied when it is first asked for."""
        if tensor < 0:
            return -1
        if tensor not in self._made:
            spec = self.graph.tensors[tensor]
            self._made[tensor] = self._draft.tensor(replace(spec, buffer=self._draft.copied(spec.buffer)))
        return self._made[tensor]

    def copy(
        self,
        operator: OperatorView,
        origin: int | None = None,
        inputs: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        **fields: Any,
    ) -> None:
        """Write an operator of the source, with other inputs, outputs or fields of its options if given."""
        record = operator.record
        inside = None if record.intermediates is None else tuple(map(self.new, record.intermediates))
        written = replace(
            record,
            inputs=tuple(map(self.new, record.inputs)) if inputs is None else tuple(inputs),
            outputs=tuple(map(self.new, record.outputs)) if outputs is None else tuple(outputs),
            intermediates=inside,
        )
        if fields and record.options is not None:
            changed = MappingProxyType({**record.options.fields, **fields})
            written = replace(written, options=replace(record.options, fields=changed))
        self._draft.append(written, operator.code, operator.index if origin is None else origin)

    def replace(self, tensor: int, new: int) -> None:
        """Let operators that read a tensor of the source read another one of the result."""
        self._made[tensor] = new

    def spec(self, new: int) -> TensorSpec:
        """Return a tensor of the result."""
        return self._draft.tensors[new]

    def constant(self, name: str, values: Array, quantization: Quantization | None = None) -> int:
        """Add a constant of float32, int32 or int8."""
        kind = TensorType[values.dtype.name.upper()]
        buffer = self._draft.buffer(values)
        return self._draft.tensor(TensorSpec(self._draft.named(name), kind, values.shape, buffer, quantization))

    def tensor(self, like: TensorSpec, suffix: str, **changes: Any) -> int:
        """Add a computed tensor like another one."""
        name = self._draft.named(f"{like.name or ''}{suffix}")
        changes = {"shape_signature": None, **changes} if "shape" in changes else changes
        return self._draft.tensor(replace(like, name=name, buffer=0, **changes))

    def operator(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        origin: int,
        table: str = "",
        version: int = 1,
        **fields: Any,
    ) -> None:
        """Write an operator on tensors of the result; `table` holds its options."""
        code = OperatorCode(enum("BuiltinOperator")[name], name, version)
        record = options(table, **fields) if table else None
        self._draft.append(Operator(0, tuple(inputs), tuple(outputs), record), code, origin)

    def result(self) -> Model:
        """Return the model."""
        return self._draft.finished(self._inputs, tuple(map(self.new, self.graph.outputs)))

    @property
    def origins(self) -> tuple[int, ...]:
        """The origin of each operator written so far."""
        return tuple(self._draft.origins)

    @property
    def made(self) -> dict[int, int]:
        """The new index of each tensor of the source that the result has."""
        return dict(self._made)


def rewritten_to(integer: IntegerModel, editing: Editing) -> IntegerModel:
    """Return an integer model with the result of editing it."""
    model, made = editing.result(), editing.made
    tensors = {source: made[tensor] for source, tensor in integer.tensors.items() if tensor in made}
    return replace(integer, model=model, operators=editing.origins, tensors=MappingProxyType(tensors))


def origin_near(integer: IntegerModel, graph: GraphView, tensor: int) -> int:
    """Return the operator of the float model that makes a tensor of the integer one, else the first that reads it."""
    maker = graph.maker(tensor)
    near = [*([] if maker is None else [maker]), *graph.readers(tensor)]
    origins = [integer.operators[operator.index] for operator in near]
    return next((origin for origin in origins if origin >= 0), 0)


def compose(first: Rewritten, second: Rewritten) -> Rewritten:
    """Return two rewrites, one after the other, as one of the first one's source."""
    rewrites = tuple(replace(r, index=first.origins[r.index]) for r in second.rewrites)
    origins = tuple(first.origins[origin] for origin in second.origins)
    return Rewritten(second.model, (*first.rewrites, *rewrites), origins)


#: A form: it writes operators in place of one of the source and returns the rewrite, or writes nothing: None.
Form = Callable[[Editing, OperatorView], Rewrite | None]


def replaced(model: Model, forms: Mapping[str, Form], inside: Collection[int] | None = None) -> Rewritten:
    """Return the model with the operators that forms take, by name, replaced: those `inside`, or all."""
    editing, rewrites = Editing(model), list[Rewrite]()
    for operator in editing.graph.ops:
        form = forms.get(operator.name) if inside is None or operator.index in inside else None
        rewrite = None if form is None else form(editing, operator)
        if rewrite is None:
            editing.copy(operator)
        else:
            rewrites.append(rewrite)
    return Rewritten(editing.result(), tuple(rewrites), editing.origins)


VALID = enum("Padding")["VALID"]

#: The greatest number of weights that a form writes; greater operators stay.
_MOST_WEIGHTS = 1 << 24


def fits(*sizes: int) -> bool:
    """Return whether a form may write weights of these sizes."""
    return prod(sizes) <= _MOST_WEIGHTS


def reshaped(editing: Editing, operator: OperatorView, tensor: int, shape: Sequence[int]) -> int:
    """Return a tensor of the result in another shape; its first dimension may change at run time."""
    spec = editing.spec(tensor)
    result = editing.tensor(spec, "/image", shape=tuple(shape))
    write_reshape(editing, operator, tensor, result, spec, tuple(shape))
    return result


def write_reshape(
    editing: Editing,
    operator: OperatorView,
    tensor: int,
    result: int,
    signed: TensorSpec,
    shape: tuple[int, ...] | None = None,
) -> None:
    """Write a RESHAPE; the first dimension is left to the runtime if that of `signed` changes."""
    sizes = list(editing.spec(result).shape if shape is None else shape)
    if signed.shape_signature and signed.shape_signature[0] < 0:
        sizes[0] = -1
    numbers = np.array(sizes, np.int32)
    operands = [tensor, editing.constant("shape", numbers)]
    editing.operator("RESHAPE", operands, [result], operator.index, "ReshapeOptions", new_shape=numbers)


def write_depthwise(
    editing: Editing,
    operator: OperatorView,
    taken: int,
    result: int,
    weights: NDArray[np.float32],
    bias: NDArray[np.float32],
    strides: tuple[int, int] = (1, 1),
    fused: int = 0,
) -> None:
    """Write a DEPTHWISE_CONV_2D without padding; weights are [1, height, width, channels]."""
    name = operator.output().name or operator.name
    operands = [taken, editing.constant(f"{name}/weights", weights), editing.constant(f"{name}/bias", bias)]
    editing.operator(
        "DEPTHWISE_CONV_2D",
        operands,
        [result],
        operator.index,
        "DepthwiseConv2DOptions",
        padding=VALID,
        stride_h=strides[0],
        stride_w=strides[1],
        depth_multiplier=1,
        fused_activation_function=fused,
    )
