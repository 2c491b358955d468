"""One operator of a file in the form for its kernel: a Node with Operands.

Bind an operator to its kernel: before the model runs, or once its inputs' shapes are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.engine.interpreter.plan import Step, is_beyond_memory
from tflq.engine.kernels.facts.counts import Sizes
from tflq.engine.kernels.kernel import SCALES_ELSEWHERE, Kernel, Node, Operand, Prepared, Shape, Surroundings
from tflq.engine.kernels.work import work_of
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import LimitError, ModelError, OperatorFailed, TflqError, UndefinedResultError, UnsupportedError
from tflq.model.ir import CARRIER, GraphView, OperatorView, Quantization, Record, TensorType
from tflq.model.ir.constants import block_scales_of
from tflq.model.ir.model import MissingField
from tflq.typing import Array


def prepare(kernel: Kernel, node: Node, arithmetic: Arithmetic) -> Prepared:
    """Run a kernel's prepare; unforeseen errors become an OperatorFailed."""
    try:
        with np.errstate(all="ignore"):
            prepared = kernel.prepare(node, arithmetic)
    except UndefinedResultError as error:
        raise UndefinedResultError(error.function, error.reason, op=node.op, index=node.index) from error
    except TflqError:
        raise
    except MissingField as error:
        node.refuse("options", expected=f"a table with the field {error.name}", got=error.table)
    except Exception as error:
        if _is_undefined_conversion(error):
            reason = f"scales or options give a number that no integer can hold ({error})"
            raise UndefinedResultError("prepare", reason, op=node.op, index=node.index) from error
        raise failure(node.op, node.index, "prepare", error) from error
    if len(prepared.shapes) != len(node.outputs):
        node.refuse("number of outputs", expected=len(prepared.shapes), got=len(node.outputs))
    for position in prepared.updates:
        node.input(position)  # must be there
    if prepared.work is not None:
        return prepared
    return replace(prepared, work=work_of(node.op, Sizes.of(node, prepared.shapes)))


def _is_undefined_conversion(error: Exception) -> bool:
    """Return whether Python refused to convert an infinity or NaN to an integer, which C++ leaves undefined."""
    return isinstance(error, OverflowError) or (isinstance(error, ValueError) and "NaN to integer" in str(error))


def failure(op: str, index: int, phase: str, error: Exception) -> TflqError:
    """Return the error for an unforeseen error of a kernel."""
    if is_beyond_memory(error):
        return LimitError(f"operator {index} {op}: {phase} takes more memory than is available: {error}")
    return OperatorFailed(op, index, phase, f"{type(error).__name__}: {error}")


def bind(step: Step, arithmetic: Arithmetic, values: Sequence[Array | None], room: int | None = None) -> Prepared:
    """Prepare with the inputs' present shapes, and for shape operands their values, in `room` bytes."""
    reveal = step.kernel.shape_operands
    operands = tuple(
        None if operand is None or value is None else _with_value(operand, value, position in reveal)
        for position, (operand, value) in enumerate(zip(step.node.inputs, values, strict=True))
    )
    return prepare(step.kernel, replace(step.node, inputs=operands, room=room), arithmetic)


def _with_value(operand: Operand, value: Array, reveal: bool) -> Operand:
    if operand.is_constant:
        return replace(operand, shape=value.shape, value=value)
    return replace(operand, shape=value.shape, value=value if reveal else None, is_revealed=reveal)


class _Zeros(Mapping[str, int]):
    """Options that the file leaves out: TFLite then gives its kernels zeroed parameters."""

    def __getitem__(self, key: str) -> int:
        return 0

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


NO_OPTIONS = Record("", _Zeros())


def node_of(
    operands: Sequence[Operand] | Mapping[int, Operand], op: OperatorView, around: Surroundings | None, room: int
) -> Node:
    """Return the operator, on the subgraph's operands by index, for preparation in `room` bytes."""
    return Node(
        op=op.name,
        version=op.version,
        index=op.index,
        inputs=tuple(operands[t] if t >= 0 else None for t in op.inputs),
        outputs=tuple(operands[t] for t in op.outputs if t >= 0),
        options=_convert(op.options or NO_OPTIONS),
        intermediates=tuple(operands[t] for t in op.record.intermediates or () if t >= 0),
        custom_options=bytes(op.record.custom_options or b""),
        surroundings=around,
        room=room,
    )


#: Option of operators with a fused activation, and the functions that the schema knows.
_ACTIVATION, _FUNCTIONS = "fused_activation_function", range(6)


def _convert(options: Record) -> Record:
    """Return the options with an unknown activation as none. Source: flatbuffer_conversions.cc ConvertActivation."""
    function = options.fields.get(_ACTIVATION)
    if function is None or int(function) in _FUNCTIONS:
        return options
    return replace(options, fields={**options.fields, _ACTIVATION: 0})


def operand_of(graph: GraphView, index: int, shape: Shape | None, computed: bool, is_part: bool = False) -> Operand:
    """Return a tensor of the subgraph, with its value if it is constant.

    `shape` replaces the file's if given; `computed` is set if an operator makes the tensor. In a part of a model, whose
    inputs are results of other operators, the shape given is not the recorded one.
    """
    spec = graph.tensors[index]
    if not isinstance(spec.type, TensorType):
        raise UnsupportedError("tensor", types=f"type {spec.type}", reason=f"tensor {spec.name!r}")
    value = None if spec.is_variable or index in graph.inputs else graph.constant(index)
    if value is not None and computed and not value.size:
        value = None  # an empty buffer; the tensor has no elements
    if value is not None and computed:
        raise ModelError("a constant is written to", tensor=spec.name or f"#{index}")
    if value is None and not computed and index not in graph.inputs and 0 in spec.shape:
        value = np.empty(spec.shape, CARRIER[spec.type])  # needs no buffer to be a constant
    return Operand(
        index=index,
        name=spec.name or "",
        type=spec.type,
        shape=spec.shape if shape is None else shape,
        quantization=visible(spec.quantization),
        value=value,
        is_variable=spec.is_variable,
        sparsity=None if value is None else spec.sparsity,
        block_scales=block_scales_of(graph.model, graph.record, spec),
        recorded=spec.shape if shape is None or is_part else shape,
        is_open=-1 in (spec.shape_signature or ()),
    )


def visible(quantization: Quantization | None) -> Quantization | None:
    """Return the quantization as LiteRT's kernels see it.

    Plain scales are removed if the details name tensors that hold scales.

    Source: LiteRT 2.3 InterpreterBuilder::ParseQuantization.
    """
    details = None if quantization is None else quantization.details
    if quantization is None or details is None or details.table not in SCALES_ELSEWHERE:
        return quantization
    return replace(quantization, scale=quantization.scale[:0], zero_point=quantization.zero_point[:0])
