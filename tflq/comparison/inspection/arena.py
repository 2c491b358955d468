"""The arena that tflite-micro needs for a model, to the byte.

The head holds activations and scratch buffers at the places that the greedy planner gives them. The tail holds what
lives as long as the interpreter: descriptions of tensors and operators, and constants that kernels compute in advance.
Sizes of structures depend on the compiler's word and enums, so they are data (`schemas/tflm_memory.json`, made by
`tools/make_micro_memory.py`). Nothing is run.

Source: tflite-micro (August 2026) micro_allocator.cc, micro_interpreter.cc MicroInterpreter::AllocateTensors,
micro_allocation_info.cc, memory_planner/greedy_memory_planner.cc, and the Prepare functions in micro/kernels/*.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from math import prod
from typing import Any

from tflq.errors import LimitError
from tflq.model.ir import GraphView, Model, OperatorView, TensorSpec, TensorType, view
from tflq.model.ir.constants import stored
from tflq.model.ir.model import schema, stored_bytes
from tflq.model.ir.signatures import call

#: Buffers and kernels' own memory begin at multiples of this many bytes. Source: MicroArenaBufferAlignment.
ALIGNMENT = 16
#: Bytes of seven numbers of 32 bits. Source: batch_matmul.h QuantizationOpDataBatchMatmul.
_MULTIPLIER_DATA = 28
#: Steps of the planner: each call of a subgraph has its own, so that a small file can ask for very many.
_MOST_STEPS = 100_000


class BuildLayout(Enum):
    """A compiler's layout of structures: the Python wheel's, or that of a build for Cortex-M."""

    WHEEL = "wheel"
    CORTEX_M = "cortex-m"


@dataclass(frozen=True, slots=True)
class Arena:
    """Bytes that an interpreter takes of its arena: `head` for buffers, `tail` for what persists.

    `peak` is the operator at whose step the most bytes of buffers are alive, and `unknown` are operators
    whose kernels' own memory is not known, and not counted.
    """

    head: int
    tail: int
    peak: str
    unknown: tuple[str, ...]

    @property
    def total(self) -> int:
        """Bytes of the whole arena, which must begin at a multiple of 16."""
        return self.head + self.tail


#: From the name of a structure to its bytes.
Sizes = Callable[[str], int]
#: The bytes that a kernel asks for while it is prepared, one number for each call.
Needs = Callable[[OperatorView, Sizes], Iterator[int]]


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A tensor or scratch buffer of the head: bytes, and the steps from its first to its last use."""

    size: int
    first: int
    last: int


def arena_of(model: Model, layout: BuildLayout = BuildLayout.CORTEX_M) -> Arena:
    """Return the arena of a model whose operators are tflite-micro's reference kernels.

    What variables of resources (VAR_HANDLE) take is not counted, and they are named as unknown. An offline plan in the
    model's metadata is not followed.

    Raises:
        LimitError: Subgraphs call each other too often to be planned.
    """
    graphs = [view(model, index) for index in range(len(model.subgraphs))]
    facts = schema("tflm_memory")[layout.value]

    def size_of(name: str) -> int:
        return int(facts["structures"][name][0])

    scratch = {
        (number, op.index): sizes
        for number, graph in enumerate(graphs)
        for op in graph.ops
        if (sizes := tuple(_of(_SCRATCH, op, size_of)))
    }
    buffers, steps = _buffers(model, graphs, scratch)
    change = [0] * (len(steps) + 1)
    for buffer in buffers:
        if buffer.last >= 0:
            change[max(0, buffer.first)] += buffer.size
            change[buffer.last + 1] -= buffer.size
    alive = list(accumulate(change[:-1]))
    return Arena(
        head=planned(buffers),
        tail=_tail(graphs, sum(map(len, scratch.values())), facts, size_of),
        peak=steps[alive.index(max(alive))],
        unknown=tuple(dict.fromkeys(op.name for g in graphs for op in g.ops if not _is_counted(op.name, facts))),
    )


def _is_counted(name: str, facts: dict[str, Any]) -> bool:
    return name in facts["data"] and name != "VAR_HANDLE"


def registrations(model: Model) -> tuple[str, ...]:
    """Return the methods of `MicroMutableOpResolver` that register the model's operators, in the order of first use."""
    methods = schema("tflm_memory")["methods"]
    names = (op.name for index in range(len(model.subgraphs)) for op in view(model, index).ops)
    return tuple(dict.fromkeys(methods[name] for name in names if name in methods))


def planned(buffers: list[PlannedBuffer]) -> int:
    """Return the bytes that the greedy planner needs: largest buffers first, each in the first gap that it fits.

    Of buffers of one size, the last one is placed first. Source: GreedyMemoryPlanner::CalculateOffsetsIfNeeded.
    """
    placed: list[tuple[int, PlannedBuffer]] = []  # in the order of their offsets
    for _, buffer in sorted(enumerate(buffers), key=lambda one: (-one[1].size, -one[0])):
        offset = 0
        for there, other in placed:
            if other.first > buffer.last or buffer.first > other.last:
                continue
            if there - offset >= buffer.size:
                break
            offset = max(offset, there + other.size)
        position = next((k for k, (there, _) in enumerate(placed) if there > offset), len(placed))
        placed.insert(position, (offset, buffer))
    return max((offset + buffer.size for offset, buffer in placed), default=0)


def _buffers(
    model: Model, graphs: list[GraphView], scratch: Mapping[tuple[int, int], tuple[int, ...]]
) -> tuple[list[PlannedBuffer], list[str]]:
    """Return the buffers of all subgraphs in the planner's order, and the operator of each step."""
    first: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], int] = {}
    spans: dict[tuple[int, int], tuple[int, int]] = {}  # of the scratch buffers of an operator
    steps = ["inputs"]

    def walk(number: int) -> None:
        graph = graphs[number]
        if len(steps) > _MOST_STEPS:
            raise LimitError(f"subgraphs call each other more than {_MOST_STEPS:,} times")

        def write(tensors: tuple[int, ...]) -> None:
            for tensor in tensors:
                first.setdefault((number, tensor), len(steps) - 1)

        def read(tensors: tuple[int, ...]) -> None:
            last.update(((number, tensor), len(steps) - 1) for tensor in tensors)

        write(graph.inputs)
        read(graph.inputs)
        for op in graph.ops:
            steps.append(f"{op.index} {op.name}")
            write(op.outputs)
            begun = len(steps) - 1
            for inner in call(op.record):
                steps.append(steps[-1])
                walk(inner)
            read(op.inputs)
            read(op.outputs)
            place = (number, op.index)
            spans[place] = (spans.get(place, (begun,))[0], len(steps) - 1)
        write(graph.outputs)
        read(graph.outputs)

    walk(0)
    found = []
    for number, graph in enumerate(graphs):
        for tensor, spec in enumerate(graph.tensors):
            size = _up(_bytes(spec), ALIGNMENT)
            if size and not spec.is_variable and stored(model, spec) is None:
                place = (number, tensor)
                found.append(PlannedBuffer(size, first.get(place, -1), last.get(place, -1)))
    for place, sizes in scratch.items():
        found += [PlannedBuffer(_up(size, ALIGNMENT), *spans.get(place, (-1, -1))) for size in sizes]
    return found, steps


def _tail(graphs: list[GraphView], scratch: int, facts: dict[str, Any], size_of: Sizes) -> int:
    """Return the bytes of the tail, which grows down from the arena's end, in the order of the interpreter's calls."""
    used = 0

    def take(size: int, alignment: int = ALIGNMENT) -> None:
        nonlocal used
        used = _up(used + size, alignment)

    def take_structure(name: str, count: int = 1) -> None:
        size, alignment = facts["structures"][name]
        take(size * count, alignment)

    for name in ("SingleArenaBufferAllocator", "GreedyMemoryPlanner", "MicroAllocator", "MicroBuiltinDataAllocator"):
        take_structure(name)
    take_structure("SubgraphAllocations", len(graphs))
    for graph in graphs:
        take_structure("TfLiteEvalTensor", len(graph.tensors))
    for graph in graphs:
        take_structure("NodeAndRegistration", len(graph.ops))
    every = [op for graph in graphs for op in graph.ops]
    for op in every:
        if op.name in facts["parameters"]:
            take(*facts["parameters"][op.name])
    for op in every:
        if held := facts["data"].get(op.name):
            take(held)
    for op in every:
        for size in _of(_PREPARED, op, size_of):
            take(size)
    if scratch:
        take_structure("ScratchBufferHandle", scratch)
    for graph in graphs:
        for spec in graph.tensors:
            if spec.is_variable:
                take(_bytes(spec))
    for tensors in (graphs[0].inputs, graphs[0].outputs):
        take(size_of("void*") * len(tensors))
        for tensor in tensors:
            take_structure("TfLiteTensor")
            codes = graphs[0].tensors[tensor].quantization
            if codes is not None and codes.scale.size and codes.zero_point.size:
                take_structure("TfLiteAffineQuantization")
                take(_array(codes.scale.size), 4)
    return used


def _up(size: int, alignment: int) -> int:
    """Return the next multiple of `alignment`."""
    return -(-size // alignment) * alignment


def _bytes(spec: TensorSpec | None) -> int:
    return 0 if spec is None else stored_bytes(spec.type, spec.shape)


def _array(count: int) -> int:
    """Return the bytes of a TfLiteIntArray."""
    return 4 + 4 * count


def _of(table: Mapping[str, Needs], op: OperatorView, size_of: Sizes) -> Iterator[int]:
    return table[op.name](op, size_of) if op.name in table else iter(())


def _type(op: OperatorView, position: int) -> TensorType | int | None:
    """Return the type of an input, None for an absent one."""
    spec = op.input_specs[position] if position < len(op.inputs) else None
    return None if spec is None else spec.type


def _shape(op: OperatorView, position: int) -> tuple[int, ...]:
    spec = op.input_specs[position] if position < len(op.inputs) else None
    return () if spec is None else spec.shape


def _is_code(op: OperatorView, position: int = 0) -> bool:
    return _type(op, position) in (TensorType.INT8, TensorType.INT16)


def _channels(axis: int) -> Needs:
    """Return the need of one multiplier and one shift a channel, the dimension `axis` of the weights."""

    def needs(op: OperatorView, _: Sizes) -> Iterator[int]:
        yield from [4 * _shape(op, 1)[axis]] * 2

    return needs


def _dense(op: OperatorView, _: Sizes) -> Iterator[int]:
    weights = op.input_specs[1]
    scales = 0 if weights is None or weights.quantization is None else weights.quantization.scale.size
    if _type(op, 0) is not TensorType.FLOAT32 and scales > 1:
        yield from [4 * scales] * 2


def _softmax(op: OperatorView, _: Sizes) -> Iterator[int]:
    if _type(op, 0) is TensorType.INT16:
        yield from [2 * 513] * 2


def _batch_matmul(op: OperatorView, size_of: Sizes) -> Iterator[int]:
    """Yield multipliers, the operands that are transposed, and the shape of the output."""
    if _is_code(op):
        yield _MULTIPLIER_DATA
    for position, (name, transposed) in enumerate((("adj_x", True), ("adj_y", False))):
        if bool(op.options and op.options[name]) == transposed:
            yield size_of("TfLiteEvalTensor")
            yield _array(len(_shape(op, position)))
            yield _bytes(op.input_specs[position])
    yield from _output_shape(op, size_of)


def _output_shape(op: OperatorView, _: Sizes) -> Iterator[int]:
    """Yield the shape of the output. Source: kernel_util.cc CreateWritableTensorDimsWithCopy."""
    yield _array(len(op.output().shape))


def _of_int8(structure: str) -> Needs:
    """Return the need of a structure, for int8 alone."""

    def needs(op: OperatorView, size_of: Sizes) -> Iterator[int]:
        if _type(op, 0) is TensorType.INT8:
            yield size_of(structure)

    return needs


_PREPARED: Mapping[str, Needs] = {
    "ADD_N": _of_int8("AddNData"),
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _channels(0),
    "CUMSUM": _of_int8("CumSumData"),
    "DEPTHWISE_CONV_2D": _channels(3),
    "DEPTH_TO_SPACE": _output_shape,
    "FULLY_CONNECTED": _dense,
    "GATHER": _output_shape,
    "GATHER_ND": _output_shape,
    "L2_POOL_2D": _output_shape,
    "LOG_SOFTMAX": _of_int8("LogSoftmaxData"),
    "SOFTMAX": _softmax,
    "SPACE_TO_DEPTH": _output_shape,
    "TRANSPOSE_CONV": _channels(0),
}


def _int4_weights(op: OperatorView, _: Sizes) -> Iterator[int]:
    if _type(op, 1) is TensorType.INT4:
        yield prod(_shape(op, 1))


def _axes(op: OperatorView, _: Sizes) -> Iterator[int]:
    yield 4 * len(_shape(op, 0))
    yield 4 * prod(_shape(op, 1))


def _sums(op: OperatorView, size_of: Sizes) -> Iterator[int]:
    if _is_code(op):
        yield 4 * prod(op.output().shape)
    yield from _axes(op, size_of)


def _svdf(op: OperatorView, _: Sizes) -> Iterator[int]:
    batch, filters = _shape(op, 0)[0], _shape(op, 1)[0]
    yield 4 * batch * filters
    if _type(op, 1) is TensorType.INT8 and op.options:
        yield 4 * batch * (filters // int(op.options["rank"]))


def _transpose_conv(op: OperatorView, _: Sizes) -> Iterator[int]:
    """Yield the sums of the output and, for 16-bit biases, the biases in 64 bits."""
    if _is_code(op, 2):
        yield (4 if _type(op, 2) is TensorType.INT8 else 8) * prod(op.output().shape)
    if _type(op, 2) is TensorType.INT16 and _type(op, 3) is TensorType.INT16:
        yield 8 * prod(_shape(op, 3))


def _lstm(op: OperatorView, _: Sizes) -> Iterator[int]:
    yield from [_bytes(op.input_specs[19])] * 4  # as the cell state, for each gate


_SCRATCH: Mapping[str, Needs] = {
    "ADD_N": lambda op, size_of: iter((size_of("void*") * len(op.inputs),)),
    "CONV_2D": _int4_weights,
    "DEPTHWISE_CONV_2D": _int4_weights,
    "FULLY_CONNECTED": _int4_weights,
    "MEAN": _sums,
    "MIRROR_PAD": lambda op, _: iter([4 * len(_shape(op, 0))] * 2),
    "REDUCE_ALL": _axes,
    "REDUCE_MAX": _axes,
    "REDUCE_MIN": _axes,
    "SUM": _sums,
    "SVDF": _svdf,
    "TRANSPOSE_CONV": _transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
