"""Generated inputs: one value per tensor, within what its operators take.

Bounds of integer inputs, from the operators that they index: token ids below the vocabulary, positions in the cache.

An input is followed through operators that pass its values on, into composites, to the operators that index with it.

Generated inputs: one value per tensor, from its type, its quantization and its consumer.

Every generator is a function of (shape, range, random stream), so equal seeds give equal inputs everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tflq.engine.interpreter.plan import current_limits
from tflq.errors import LimitError, UnsupportedError
from tflq.model.ir import CARRIER, GraphView, Model, OperatorView, TensorSpec, TensorType, view
from tflq.model.ir.signatures import call
from tflq.typing import Array

#: Operators that pass values on: the positions of the operands that do, None for all.
_PASSES: Mapping[str, tuple[int, ...] | None] = MappingProxyType(
    {
        **dict.fromkeys(("RESHAPE", "CAST", "EXPAND_DIMS", "SQUEEZE", "SLICE", "STRIDED_SLICE", "TRANSPOSE"), (0,)),
        **dict.fromkeys(("BROADCAST_TO", "TILE", "UNPACK", "SPLIT_V"), (0,)),
        **dict.fromkeys(("CONCATENATION", "PACK", "STABLEHLO_COMPOSITE"), None),
        "SPLIT": (1,),
        "SELECT": (1, 2),
        "SELECT_V2": (1, 2),
    }
)
#: Operand positions that hold indices: operator -> (position of the indices, position of the indexed operand).
_INDEXED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"GATHER": (1, 0), "GATHER_ND": (1, 0), "EMBEDDING_LOOKUP": (0, 1)}
)
#: Number of tensors that are followed at most, in all subgraphs.
_MOST = 2000


@dataclass(frozen=True, slots=True)
class IndexBound:
    """The largest index that an input may hold; 0 is the smallest.

    `start` is the largest start of an update in a tensor, if the input holds positions; None if it holds none.
    """

    largest: int
    start: int | None = None


def bind_of(model: Model, tensor: int) -> IndexBound | None:
    """Return the bound of an input of the first subgraph; None if no operator indexes with it."""
    largest, starts = list[int](), list[int]()
    for op, position in _uses(model, tensor):
        indices, indexed = _INDEXED.get(op.builtin, (-1, -1))
        if position == indices:
            size = _size(op, op.graph.tensors[op.inputs[indexed]].shape)
            largest.append(max(size - 1, 0))
        elif op.builtin == "DYNAMIC_UPDATE_SLICE" and position == 2:
            whole, part = (op.graph.tensors[op.inputs[k]].shape for k in (0, 1))
            starts.append(max((a - b for a, b in zip(whole, part)), default=0))  # noqa: B905 (files may differ)
    if not largest and not starts:
        return None
    return IndexBound(min((*largest, *([] if largest else starts))), max(min(starts), 0) if starts else None)


def _size(op: OperatorView, shape: tuple[int, ...]) -> int:
    if op.builtin == "GATHER_ND":
        return min(shape, default=1) if len(op.inputs) < 2 else _gather(op, shape)
    axis = int(op.options.get("axis", 0) or 0) if op.options and op.builtin == "GATHER" else 0
    return shape[axis] if -len(shape) <= axis < len(shape) else 1


def _gather(op: OperatorView, shape: tuple[int, ...]) -> int:
    """Return the smallest dimension that GATHER_ND's indices address: as many as their last dimension."""
    indices = op.graph.tensors[op.inputs[1]].shape
    return min(shape[: indices[-1]] if indices else shape, default=1)


def _uses(model: Model, tensor: int) -> Iterator[tuple[OperatorView, int]]:
    """Yield the operators that read an input's values, with the operand's position."""
    waiting, seen = [(0, tensor)], set[tuple[int, int]]()
    while waiting and len(seen) < _MOST:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        graph = view(model, place[0])
        for op in graph.readers(place[1]):
            for position in (k for k, t in enumerate(op.inputs) if t == place[1]):
                yield op, position
                waiting += _pass(model, graph, op, position, place[0])


def _pass(model: Model, graph: GraphView, op: OperatorView, position: int, subgraph: int) -> Iterator[tuple[int, int]]:
    passing = _PASSES.get(op.builtin, ())
    if passing is not None and position not in passing:
        return
    for index in call(op.record):
        inputs = view(model, index).inputs if 0 <= index < len(model.subgraphs) else ()
        yield from ((index, t) for k, t in enumerate(inputs) if k == position)
    if op.builtin != "STABLEHLO_COMPOSITE":
        yield from ((subgraph, t) for t in op.outputs if t >= 0)


_CODES: Mapping[TensorType, tuple[int, int]] = MappingProxyType(
    {
        TensorType.INT8: (-128, 127),
        TensorType.UINT8: (0, 255),
        TensorType.INT16: (-32768, 32767),
        TensorType.UINT16: (0, 65535),
        TensorType.INT4: (-8, 7),
        TensorType.UINT4: (0, 15),
        TensorType.INT2: (-2, 1),
    }
)
#: Integers of unknown meaning stay small: they may be counts or sizes.
_PLAIN_INTEGERS = (-100, 100)
_INTEGERS = frozenset({TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64})
#: Bytes per element of the largest input that are needed to generate it: a few arrays of float64.
_SCRATCH = 32
_FLOATS = frozenset({TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64})


@dataclass(frozen=True, slots=True)
class DrawRange:
    """The range of generated values, both ends included; for floats `whole` is False."""

    low: float
    high: float
    whole: bool


Generator = Callable[[tuple[int, ...], DrawRange, np.random.Generator], Array]


def random(shape: tuple[int, ...], range_: DrawRange, stream: np.random.Generator) -> Array:
    """Return values uniformly distributed over the full range. The result is int64 or float64."""
    if range_.whole:
        return stream.integers(int(range_.low), int(range_.high), shape, np.int64, endpoint=True)
    return stream.uniform(range_.low, range_.high, shape)


def smooth(shape: tuple[int, ...], range_: DrawRange, stream: np.random.Generator) -> Array:
    """Return a slow wave along every axis, over the full range, similar to photographs and sounds."""
    phase = np.zeros(shape)
    for axis, size in enumerate(shape):
        turns = stream.uniform(0.5, 3.0) / max(size, 1)
        steps = np.arange(size) * turns + stream.uniform()
        phase = phase + steps.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    waves = (np.sin(2 * math.pi * phase) + 1) / 2
    values = range_.low + waves * (range_.high - range_.low)
    return np.rint(values).astype(np.int64) if range_.whole else values


def extremes(shape: tuple[int, ...], range_: DrawRange, stream: np.random.Generator) -> Array:
    """Return only the two ends of the range, in runs of random length, so that sums reach far in both directions."""
    count = math.prod(shape)
    flips = stream.uniform(size=count) < stream.choice([0.5, 0.05, 0.005])
    high = (np.cumsum(flips) + stream.integers(2)) % 2 == 1
    values = np.where(high, range_.high, range_.low).reshape(shape)
    return values.astype(np.int64) if range_.whole else values


#: Every generator, by name.
GENERATORS: Mapping[str, Generator] = MappingProxyType({"random": random, "smooth": smooth, "extremes": extremes})


def generate(model: Model, generator: Generator, samples: int, seed: int) -> tuple[tuple[Array, ...], ...]:
    """Return `samples` times one value for each input of the first subgraph."""
    graph = view(model)
    _check_size([graph.tensors[tensor] for tensor in graph.inputs], samples)
    stream = np.random.default_rng(seed)
    return tuple(
        tuple(_value(model, tensor, graph.tensors[tensor], generator, stream) for tensor in graph.inputs)
        for _ in range(samples)
    )


def _check_size(specs: Sequence[TensorSpec], samples: int) -> None:
    """Refuse inputs that exceed the current memory limit, themselves or during their generation."""
    sizes = [math.prod(spec.shape) for spec in specs]
    carried = sum(size * _item_size(spec) for size, spec in zip(sizes, specs, strict=True))
    need, limit = samples * carried + _SCRATCH * max(sizes, default=0), current_limits().memory
    if need > limit:
        raise LimitError(
            f"to generate {samples} samples of the inputs takes {need} bytes, more than the limit of {limit} bytes; "
            "raise --memory-limit to allow it"
        )


def _item_size(spec: TensorSpec) -> int:
    return CARRIER[spec.type].itemsize if isinstance(spec.type, TensorType) else 0


def _value(model: Model, tensor: int, spec: TensorSpec, generator: Generator, stream: np.random.Generator) -> Array:
    if spec.type == TensorType.BOOL:
        return generator(spec.shape, DrawRange(0, 1, True), stream).astype(np.bool_)
    if spec.type == TensorType.STRING:
        words = np.empty(spec.shape, object)
        numbers = stream.integers(0, 1000, spec.shape)
        words[...] = np.reshape([b"word%d" % n for n in np.ravel(numbers)], spec.shape)
        return words
    if spec.type in (TensorType.COMPLEX64, TensorType.COMPLEX128):
        real, imaginary = (generator(spec.shape, DrawRange(-1, 1, False), stream) for _ in range(2))
        return (real + 1j * imaginary).astype(CARRIER[TensorType(spec.type)])
    value = _structural(model, tensor, spec)
    if value is None:
        value = _positions(model, tensor, spec)
    if value is not None:
        return value
    range_ = _range(model, tensor, spec)
    return np.asarray(generator(spec.shape, range_, stream).astype(CARRIER[TensorType(spec.type)]), order="C")


def _range(model: Model, tensor: int, spec: TensorSpec) -> DrawRange:
    if spec.type in _CODES:
        return DrawRange(*_CODES[TensorType(spec.type)], True)
    if spec.type in _INTEGERS:
        return _integer_range(model, tensor, TensorType(spec.type))
    if spec.type in _FLOATS:
        return _float_range(model, tensor, spec)
    name = spec.type.label if isinstance(spec.type, TensorType) else str(spec.type)
    raise UnsupportedError("input generator", types=name, reason=f"input {spec.name!r}; hand its values in")


def _integer_range(model: Model, tensor: int, type_: TensorType) -> DrawRange:
    bound = bind_of(model, tensor)
    if bound is not None:
        return DrawRange(0, bound.largest, True)
    low, high = _PLAIN_INTEGERS
    return DrawRange(max(low, 0) if type_ in (TensorType.UINT32, TensorType.UINT64) else low, high, True)


def _structural(model: Model, tensor: int, spec: TensorSpec) -> Array | None:
    """Return the harmless value of an input that is an axis, paddings, a shape or a permutation."""
    if spec.type not in (TensorType.INT32, TensorType.INT64):
        return None
    for operator in view(model).readers(tensor):
        op = operator.builtin
        for position, kind in _STRUCTURE.get(op, {}).items():
            if position < len(operator.inputs) and operator.inputs[position] == tensor:
                value = _STRUCTURES[kind](spec.shape, operator.output().shape)
                return value.astype(CARRIER[TensorType(spec.type)])
    return None


def _positions(model: Model, tensor: int, spec: TensorSpec) -> Array | None:
    """Return 0, 1, 2 ... for an input that holds the rows of a cache to update."""
    if spec.type not in (TensorType.INT32, TensorType.INT64):
        return None
    bound = bind_of(model, tensor)
    if bound is None or bound.start is None:
        return None
    return np.arange(math.prod(spec.shape)).reshape(spec.shape).astype(CARRIER[TensorType(spec.type)])


def _output_shape(shape: tuple[int, ...], output: tuple[int, ...]) -> Array:
    """Return the shape of the output in the file, or its last sizes if fewer are requested."""
    count = math.prod(shape)
    return np.array(([1] * count + list(output))[len(output) :][-count:] if count else []).reshape(shape)


#: Structural values by name: (shape of the input, shape of the operator's output) -> value.
_STRUCTURES: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], Array]] = MappingProxyType(
    {
        "zeros": lambda shape, output: np.zeros(shape),
        "ones": lambda shape, output: np.ones(shape),
        "rest": lambda shape, output: np.full(shape, -1),
        "order": lambda shape, output: np.arange(math.prod(shape)).reshape(shape),
        "shape": _output_shape,
    }
)
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")
#: Operator -> operand position -> the kind of value there.
_STRUCTURE: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        **{op: {1: "zeros"} for op in (*_REDUCTIONS, "EXPAND_DIMS", "ARG_MAX", "ARG_MIN", "CUMSUM", "REVERSE_V2")},
        **{op: {1: "zeros"} for op in ("PAD", "PADV2", "MIRROR_PAD")},
        **{op: {1: "zeros"} for op in ("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "UNSORTED_SEGMENT_SUM")},
        "BATCH_TO_SPACE_ND": {1: "ones", 2: "zeros"},
        "BROADCAST_TO": {1: "shape"},
        "FILL": {0: "shape"},
        "RESHAPE": {1: "shape"},
        "SCATTER_ND": {0: "zeros", 2: "shape"},
        "SLICE": {1: "zeros", 2: "rest"},
        "SPACE_TO_BATCH_ND": {1: "ones", 2: "zeros"},
        "SPLIT": {0: "zeros"},
        "STRIDED_SLICE": {1: "zeros", 2: "ones", 3: "ones"},
        "TILE": {1: "ones"},
        "TOPK_V2": {1: "ones"},
        "TRANSPOSE": {1: "order"},
        "TRANSPOSE_CONV": {0: "shape"},
    }
)


def _float_range(model: Model, tensor: int, spec: TensorSpec) -> DrawRange:
    """Return the recorded minimum and maximum, or the range of the codes that the input is quantized to, or [-1, 1]."""
    quantization = spec.quantization
    if quantization is not None and quantization.min is not None and quantization.max is not None:
        low, high = quantization.min, quantization.max
        return _finite(float(low.min(initial=np.inf)), float(high.max(initial=-np.inf)))
    for operator in view(model).readers(tensor):
        if operator.builtin != "QUANTIZE" or not operator.outputs:
            continue
        output = operator.output()
        q = output.quantization
        if output.type in _CODES and q is not None and len(q.scale) == 1 == len(q.zero_point):
            first, last = _CODES[TensorType(output.type)]
            scale, zero_point = float(q.scale[0]), int(q.zero_point[0])
            return _finite((first - zero_point) * scale, (last - zero_point) * scale)
    return DrawRange(-1.0, 1.0, False)


def _finite(low: float, high: float) -> DrawRange:
    ok = math.isfinite(low) and math.isfinite(high) and low < high
    return DrawRange(low, high, False) if ok else DrawRange(-1.0, 1.0, False)
