"""A graph while it is drawn. Tensors are numbers; shapes are those that tflq's plan announces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Quantization, Record, Subgraph, TensorSpec, TensorType
from tflq.model.ir.model import enum
from tflq.typing import Array

Shape = tuple[int, ...]
#: Types of activations, with the lowest code and the one beyond the highest.
CODES = {"int8": (-128, 128), "uint8": (0, 256), "int16": (-32768, 32768)}
#: Fused activations: NONE, RELU, RELU_N1_TO_1, RELU6.
FUSED = (0, 0, 0, 1, 2, 3)
MOST_ELEMENTS = 4000


class NotDrawnError(Exception):
    """The operator does not fit the graph so far."""


class Graph:
    """A graph, operator by operator. `computed` are tensors that an operator may read, `names` the operators so far."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.tensors: list[TensorSpec] = []
        self.buffers = [Buffer()]
        self.codes: list[OperatorCode] = []
        self.operators: list[Operator] = []
        self.inputs: list[int] = []
        self.computed: list[int] = []
        self.shared: dict[Shape, int] = {}  # float constants by shape

    def choose(self, *values: Any) -> Any:
        """Return one of the values."""
        return values[int(self.random.integers(len(values)))]

    def toss(self, share: float) -> bool:
        """Return True in that share of calls."""
        return bool(self.random.random() < share)

    def number(self, low: int, beyond: int) -> int:
        """Return a number in [low, beyond)."""
        return int(self.random.integers(low, beyond))

    def kind(self, tensor: int) -> str:
        """Return the type of a tensor, in lower case."""
        return str(self.tensors[tensor].type.label)

    def shape(self, tensor: int) -> Shape:
        """Return the shape of a tensor."""
        return self.tensors[tensor].shape

    def quantization(self, tensor: int) -> Quantization | None:
        """Return the quantization of a tensor."""
        return self.tensors[tensor].quantization

    def draw_quantization(self, kind: str) -> Quantization | None:
        """Return a scale and zero point for activations of a type; None for floats."""
        if kind == "float32":
            return None
        scale = 2.0 ** self.random.uniform(-7, -2)
        if kind == "int16":
            return quantized(scale / 128)
        low, beyond = CODES[kind]
        return quantized(scale, self.choose(self.number(low, beyond), self.number(low, beyond), low, low + 128))

    def draw(self, kind: str, shape: Shape) -> Array:
        """Return activations of a type: normal floats, or codes."""
        if kind == "float32":
            return np.asarray(self.random.normal(0, self.choose(1, 1, 5), shape), np.float32)
        return np.asarray(self.random.integers(*CODES[kind], shape), kind)

    def add(self, kind: str, shape: Shape, quantization: Quantization | None = None, buffer: int = 0) -> int:
        """Add a tensor."""
        name = f"t{len(self.tensors)}"
        self.tensors.append(TensorSpec(name, TensorType[kind.upper()], shape, buffer, quantization))
        return len(self.tensors) - 1

    def constant(self, values: Any, kind: str, quantization: Quantization | None = None) -> int:
        """Add a constant."""
        array = np.ascontiguousarray(np.asarray(values).astype(kind))
        self.buffers.append(Buffer(array.reshape(-1).view(np.uint8)))
        return self.add(kind, array.shape, quantization, len(self.buffers) - 1)

    def give(self, kind: str, shape: Shape) -> int:
        """Add an input of the graph."""
        self.inputs.append(self.add(kind, shape, self.draw_quantization(kind)))
        self.computed.append(self.inputs[-1])
        return self.inputs[-1]

    def pick(self, rank: int | None = None) -> int:
        """Return one of the last tensors, of that rank."""
        fitting = [t for t in self.computed if rank is None or len(self.shape(t)) == rank]
        if not fitting:
            raise NotDrawnError
        return int(self.random.choice(fitting[-4:]))

    def alike(self, tensor: int, shape: Shape | None = None) -> list[int]:
        """Return the tensors of the same type and shape, or of another shape."""
        wanted = self.shape(tensor) if shape is None else shape
        return [t for t in self.computed if self.kind(t) == self.kind(tensor) and self.shape(t) == wanted]

    def operate(
        self,
        name: str,
        inputs: Sequence[int],
        options: tuple[str, Mapping[str, Any]] | None = None,
        kind: str = "float32",
        quantization: Quantization | None = None,
        version: int = 1,
        count: int = 1,
        *,
        is_activation: bool = True,
    ) -> list[int]:
        """Append an operator; return its outputs. Raises NotDrawnError where the reference kernels refuse it."""
        code = OperatorCode(enum("BuiltinOperator")[name], name, version)
        if code not in self.codes:
            self.codes.append(code)
        outputs = [self.add(kind, (), quantization) for _ in range(count)]
        record = None if options is None else Record(options[0], dict(options[1]))
        self.operators.append(Operator(self.codes.index(code), tuple(inputs), tuple(outputs), record))
        try:
            operands = make_plan(self.model(outputs), by_name("litert-ref")).operands
        except TflqError as error:
            raise NotDrawnError from error
        for tensor in outputs:
            shape = operands[tensor].shape
            if not 0 < int(np.prod(shape)) <= MOST_ELEMENTS:
                raise NotDrawnError
            self.tensors[tensor] = replace(self.tensors[tensor], shape=tuple(shape))
        if is_activation:
            self.computed += outputs
        return outputs

    def results(self) -> list[int]:
        """Return the tensors that no operator reads."""
        read = {t for operator in self.operators for t in operator.inputs}
        return [t for operator in self.operators for t in operator.outputs if t not in read]

    def names(self) -> list[str]:
        """Return the names of the operators, in order."""
        return [self.codes[operator.opcode_index].name for operator in self.operators]

    def model(self, outputs: Sequence[int]) -> Model:
        """Return the model with those outputs."""
        graph = Subgraph(tuple(self.tensors), tuple(self.inputs), tuple(outputs), tuple(self.operators), "main")
        return Model(3, tuple(self.codes), (graph,), tuple(self.buffers))

    def remember(self) -> dict[str, Any]:
        """Return what `recall` takes to undo the steps after it."""
        return {name: copy(value) for name, value in vars(self).items() if name != "random"}

    def recall(self, remembered: Mapping[str, Any]) -> None:
        """Undo the steps since `remember`."""
        vars(self).update(remembered)


def quantized(scale: Any, zero_point: int = 0, axis: int = 0) -> Quantization:
    """Return a quantization of one scale, or of several along an axis."""
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    return Quantization(scales, np.full(scales.shape, zero_point, np.int64), axis)
