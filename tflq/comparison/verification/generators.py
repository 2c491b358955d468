"""Generated inputs: one value per tensor, from its type, its quantization and its consumer.

Every generator is a function of (shape, range, random stream), so equal seeds give equal inputs everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tflq.comparison.verification.bounds import bind_of
from tflq.engine.interpreter.limits import current_limits
from tflq.errors import LimitError, UnsupportedError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.typing import Array

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
class Range:
    """The range of generated values, both ends included; for floats `whole` is False."""

    low: float
    high: float
    whole: bool


Generator = Callable[[tuple[int, ...], Range, np.random.Generator], Array]


def random(shape: tuple[int, ...], range_: Range, stream: np.random.Generator) -> Array:
    """Return values uniformly distributed over the full range. The result is int64 or float64."""
    if range_.whole:
        return stream.integers(int(range_.low), int(range_.high), shape, np.int64, endpoint=True)
    return stream.uniform(range_.low, range_.high, shape)


def smooth(shape: tuple[int, ...], range_: Range, stream: np.random.Generator) -> Array:
    """Return a slow wave along every axis, over the full range, similar to photographs and sounds."""
    phase = np.zeros(shape)
    for axis, size in enumerate(shape):
        turns = stream.uniform(0.5, 3.0) / max(size, 1)
        steps = np.arange(size) * turns + stream.uniform()
        phase = phase + steps.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    waves = (np.sin(2 * math.pi * phase) + 1) / 2
    values = range_.low + waves * (range_.high - range_.low)
    return np.rint(values).astype(np.int64) if range_.whole else values


def extremes(shape: tuple[int, ...], range_: Range, stream: np.random.Generator) -> Array:
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
        return generator(spec.shape, Range(0, 1, True), stream).astype(np.bool_)
    if spec.type == TensorType.STRING:
        words = np.empty(spec.shape, object)
        numbers = stream.integers(0, 1000, spec.shape)
        words[...] = np.reshape([b"word%d" % n for n in np.ravel(numbers)], spec.shape)
        return words
    if spec.type in (TensorType.COMPLEX64, TensorType.COMPLEX128):
        real, imaginary = (generator(spec.shape, Range(-1, 1, False), stream) for _ in range(2))
        return (real + 1j * imaginary).astype(CARRIER[TensorType(spec.type)])
    value = _structural(model, tensor, spec)
    if value is None:
        value = _positions(model, tensor, spec)
    if value is not None:
        return value
    range_ = _range(model, tensor, spec)
    return np.asarray(generator(spec.shape, range_, stream).astype(CARRIER[TensorType(spec.type)]), order="C")


def _range(model: Model, tensor: int, spec: TensorSpec) -> Range:
    if spec.type in _CODES:
        return Range(*_CODES[TensorType(spec.type)], True)
    if spec.type in _INTEGERS:
        return _integer_range(model, tensor, TensorType(spec.type))
    if spec.type in _FLOATS:
        return _float_range(model, tensor, spec)
    name = spec.type.label if isinstance(spec.type, TensorType) else str(spec.type)
    raise UnsupportedError("input generator", types=name, reason=f"input {spec.name!r}; hand its values in")


def _integer_range(model: Model, tensor: int, type_: TensorType) -> Range:
    bound = bind_of(model, tensor)
    if bound is not None:
        return Range(0, bound.largest, True)
    low, high = _PLAIN_INTEGERS
    return Range(max(low, 0) if type_ in (TensorType.UINT32, TensorType.UINT64) else low, high, True)


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


def _float_range(model: Model, tensor: int, spec: TensorSpec) -> Range:
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
    return Range(-1.0, 1.0, False)


def _finite(low: float, high: float) -> Range:
    ok = math.isfinite(low) and math.isfinite(high) and low < high
    return Range(low, high, False) if ok else Range(-1.0, 1.0, False)
