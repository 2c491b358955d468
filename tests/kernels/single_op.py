"""One-operator models for kernel tests, run by tflq and by LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tflq.api.interpreter import Interpreter
from tflq.flatbuf import write
from tflq.ir import (
    CARRIER,
    STORED_BITS,
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
)
from tflq.ir.schema import enum

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class T:
    """A tensor of the model. `scale` may be one number or a sequence (then along `axis`); `value` makes it constant."""

    type: str
    shape: Sequence[int]
    scale: Any = None
    zero_point: Any = 0
    axis: int = 0
    value: Any = None
    variable: bool = False

    def spec(self, name: str, buffer: int) -> TensorSpec:
        quantization = None
        if self.scale is not None:
            scale = np.atleast_1d(np.asarray(self.scale, np.float32))
            zero_point = np.broadcast_to(np.asarray(self.zero_point, np.int64), scale.shape)
            quantization = Quantization(scale, zero_point.copy(), self.axis)
        return TensorSpec(
            name=name, type=TensorType[self.type.upper()], shape=tuple(self.shape), buffer=buffer,
            quantization=quantization, is_variable=self.variable,
        )  # fmt: skip


def build(
    op: str,
    inputs: Sequence[T | None],
    outputs: Sequence[T],
    options: tuple[str, Mapping[str, Any]] | None = None,
    version: int = 1,
    intermediates: Sequence[T] = (),
) -> bytes:
    """The file of a model with one operator. `options` is ("AddOptions", {field: value}); None inputs are absent."""
    buffers = [Buffer()]
    tensors: list[TensorSpec] = []

    def add(tensor: T | None, name: str) -> int:
        if tensor is None:
            return -1
        buffer = 0
        if tensor.value is not None:
            buffers.append(Buffer(data_of(tensor)))
            buffer = len(buffers) - 1
        tensors.append(tensor.spec(name, buffer))
        return len(tensors) - 1

    given = [add(t, f"in{i}") for i, t in enumerate(inputs)]
    made = [add(t, f"out{i}") for i, t in enumerate(outputs)]
    between = [add(t, f"mid{i}") for i, t in enumerate(intermediates)]
    code = enum("BuiltinOperator")[op]
    operator = Operator(
        0, tuple(given), tuple(made),
        options=Record(options[0], dict(options[1])) if options and options[0] not in _second() else None,
        options_2=Record(options[0], dict(options[1])) if options and options[0] in _second() else None,
        intermediates=tuple(between) or None,
    )  # fmt: skip
    free = [i for i, t in zip(given, inputs, strict=True) if t is not None and t.value is None and not t.variable]
    graph = Subgraph(tuple(tensors), tuple(free), tuple(made), (operator,), "main")
    return write(Model(3, (OperatorCode(code, op, version),), (graph,), tuple(buffers)))


def _second() -> frozenset[str]:
    from tflq.ir.schema import schema

    return frozenset(schema()["unions"]["BuiltinOptions2"])


def data_of(tensor: T) -> Array:
    """The bytes of a constant, as the file stores them."""
    type_ = TensorType[tensor.type.upper()]
    value = np.broadcast_to(np.asarray(tensor.value, CARRIER[type_]), tuple(tensor.shape))
    bits = STORED_BITS[type_]
    if bits == 8 * value.dtype.itemsize:
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    per_byte = 8 // bits
    codes = value.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    codes = np.pad(codes, (0, -len(codes) % per_byte)).reshape(-1, per_byte)
    return np.bitwise_or.reduce(codes << np.arange(0, 8, bits, dtype=np.uint8), axis=1).astype(np.uint8)


def _run(interpreter: Any, inputs: Sequence[Array]) -> list[Array]:
    details = interpreter.get_input_details()
    for detail, value in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def tflq(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Outputs of tflq under its default profile."""
    return _run(Interpreter(model_content=model), inputs)


def allocate(model: bytes) -> None:
    """Prepare a model under tflq's default profile without running it."""
    Interpreter(model_content=model).allocate_tensors()


def litert(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Outputs of LiteRT's reference kernels, in this process: a model that makes it abort ends the test run."""
    runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    interpreter = runtime.Interpreter(
        model_content=model, num_threads=1, experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_REF
    )
    return _run(interpreter, inputs)


def assert_same(model: bytes, inputs: Sequence[Array], note: object = "") -> int:
    """Compare both, bit by bit (NaN equals NaN); gives the number of elements compared."""
    compared = 0
    for number, (got, want) in enumerate(zip(tflq(model, inputs), litert(model, inputs), strict=True)):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), (note, number)
        same = _bits(got) == _bits(want)
        if got.dtype.kind in "fc":
            same |= np.isnan(got) & np.isnan(want)
        if not same.all():
            index = np.unravel_index(int(np.argmin(same)), same.shape)
            raise AssertionError(
                f"{note}: output {number}: {np.count_nonzero(~same)} of {same.size} differ, first at {index}: "
                f"got {got[index]!r}, LiteRT {want[index]!r}, inputs {[x.reshape(-1)[:8] for x in inputs]}"
            )
        compared += same.size
    return compared


def _bits(x: Array) -> Array:
    unsigned = {"f": f"u{x.dtype.itemsize}", "c": f"V{x.dtype.itemsize}"}.get(x.dtype.kind)
    return np.ascontiguousarray(x).view(unsigned).reshape(x.shape) if unsigned else x


def draw(rng: np.random.Generator, tensor: T, low: float = -4.0, high: float = 4.0) -> Array:
    """Random values of a tensor's type: the full range of codes, or reals between `low` and `high`."""
    dtype = CARRIER[TensorType[tensor.type.upper()]]
    shape = tuple(tensor.shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)
