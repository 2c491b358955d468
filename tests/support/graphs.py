"""Models with several operators and subgraphs, and runs of one interpreter after another, for kernels with a memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from support import noting, running
from support.single_op import Array, T, _bits, data_of, in_second_union
from tflq.engine.api.interpreter import Interpreter
from tflq.model.flatbuf import write
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Record, Subgraph, TensorSpec
from tflq.model.ir.model import enum


@dataclass(frozen=True)
class Op:
    """One operator on tensors by number; a name in mixed case is a custom operator's."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: tuple[str, Mapping[str, Any]] | None = None
    version: int = 1
    custom: bytes | None = None


@dataclass(frozen=True)
class Graph:
    """One subgraph."""

    tensors: Sequence[T]
    inputs: Sequence[int]
    outputs: Sequence[int]
    ops: Sequence[Op] = field(default_factory=tuple)


def build(*graphs: Graph) -> bytes:
    """The file of a model with those subgraphs."""
    codes: dict[tuple[str, int], int] = {}
    buffers = [Buffer()]

    def spec(tensor: T, name: str) -> TensorSpec:
        buffer = 0
        if tensor.value is not None:
            buffers.append(Buffer(strings(tensor) if tensor.type == "string" else data_of(tensor)))
            buffer = len(buffers) - 1
        return tensor.spec(name, buffer)

    def operator(op: Op) -> Operator:
        code = codes.setdefault((op.name, op.version), len(codes))
        record = Record(op.options[0], dict(op.options[1])) if op.options else None
        second = op.options is not None and op.options[0] in in_second_union()
        return Operator(
            code,
            tuple(op.inputs),
            tuple(op.outputs),
            options=None if second else record,
            options_2=record if second else None,
            custom_options=op.custom,
        )

    made = tuple(
        Subgraph(
            tuple(spec(t, f"g{g}t{i}") for i, t in enumerate(graph.tensors)),
            tuple(graph.inputs),
            tuple(graph.outputs),
            tuple(operator(op) for op in graph.ops),
            f"g{g}",
        )
        for g, graph in enumerate(graphs)
    )
    builtin = enum("BuiltinOperator")
    numbered = tuple(
        OperatorCode(builtin[name], name, version) if name in builtin else OperatorCode(32, "CUSTOM", version, name)
        for name, version in codes
    )
    return write(Model(3, numbered, made, tuple(buffers)))


def strings(tensor: T) -> Array:
    """The buffer of a constant of strings: count, offsets, characters."""
    values = [v.encode() if isinstance(v, str) else bytes(v) for v in np.asarray(tensor.value, object).reshape(-1)]
    offsets = np.cumsum([4 * (len(values) + 2), *map(len, values)])
    header = np.array([len(values), *offsets], "<i4").tobytes()
    return np.frombuffer(header + b"".join(values), np.uint8)


def texts(values: Any) -> Array:
    """An array of byte strings, of any shape."""
    array = np.asarray(values, object)
    out = np.empty(array.shape, object)
    for i in np.ndindex(array.shape):
        text: Any = array[i]
        out[i] = text.encode() if isinstance(text, str) else text
    return out


def run_all(interpreter: Any, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of every run of one interpreter; inputs are resized where their shape changes."""
    found = []
    interpreter.allocate_tensors()
    for inputs in runs:
        details = interpreter.get_input_details()
        for detail, value in zip(details, inputs, strict=True):
            if tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for detail, value in zip(details, inputs, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        found.append([np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()])
    return found


def litert(model: bytes, runs: Sequence[Sequence[Array]], resolver: str = "BUILTIN_REF") -> list[list[Array]]:
    """Outputs of LiteRT, in this process."""
    return run_all(running.litert(model, resolver), runs)


def tflq(model: bytes, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Outputs of tflq."""
    return run_all(Interpreter(model_content=model), runs)


def assert_runs(model: bytes, runs: Sequence[Sequence[Array]], resolver: str = "BUILTIN_REF") -> list[list[Array]]:
    """Compare every output of every run, bit by bit; gives LiteRT's."""
    wanted = litert(model, runs, resolver)
    for number, (got_run, want_run) in enumerate(zip(tflq(model, runs), wanted, strict=True)):
        for output, (got, want) in enumerate(zip(got_run, want_run, strict=True)):
            place = f"run {number}, output {output}"
            assert got.shape == want.shape, (place, got.shape, want.shape)
            if want.dtype.kind in "SO":
                assert got.ravel().tolist() == want.ravel().tolist(), place
                continue
            assert got.dtype == want.dtype, place
            same = (_bits(got) == _bits(want)) | ((got != got) & (want != want))
            assert same.all(), (place, got[~same][:5], want[~same][:5])
        noting.note(model, [want.size for want in want_run])
    return wanted
