"""One operator of a file in the form for its kernel: a Node with Operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.engine.kernels.kernel import SCALES_ELSEWHERE, Node, Operand, Shape, Surroundings
from tflq.errors import ModelError, UnsupportedError
from tflq.model.ir import CARRIER, GraphView, OperatorView, Quantization, Record, TensorType
from tflq.model.ir.constants import block_scales_of


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
