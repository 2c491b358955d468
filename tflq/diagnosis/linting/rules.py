"""Rules, their findings, and an operator as rules see it.

One operator and its operands, as rules see them.

Rules and their findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import ModuleType

import numpy as np

from tflq.model.ir import CARRIER, GraphView, Model, OperatorView, Quantization, TensorSpec, TensorType, view
from tflq.model.ir.signatures import root_subgraphs
from tflq.typing import Array

#: Element types whose codes represent real values by a scale.
QUANTIZED = frozenset({TensorType.INT8, TensorType.UINT8, TensorType.INT16})


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """Operator `index` of subgraph `subgraph`. Tensors are its indices; those out of range count as absent.

    `first` is the model with that subgraph first.
    """

    model: Model
    subgraph: int
    index: int
    first: Model | None = None

    @property
    def graph(self) -> GraphView:
        """The subgraph that it belongs to."""
        return view(self.model, self.subgraph)

    @property
    def operator(self) -> OperatorView:
        """The operator."""
        return self.graph.op(self.index)

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.operator.name

    def input(self, position: int) -> int:
        """Return the tensor of that input, -1 if it is absent."""
        return self._tensor(self.operator.inputs, position)

    def output(self, position: int = 0) -> int:
        """Return the tensor of that output, -1 if it is absent."""
        return self._tensor(self.operator.outputs, position)

    def _tensor(self, tensors: tuple[int, ...], position: int) -> int:
        index = tensors[position] if position < len(tensors) else -1
        return index if 0 <= index < len(self.graph.tensors) else -1

    def operands(self) -> Iterator[int]:
        """Yield the tensors of its inputs and outputs, each once."""
        present = (t for t in (*self.operator.inputs, *self.operator.outputs) if 0 <= t < len(self.graph.tensors))
        yield from dict.fromkeys(present)

    def spec(self, tensor: int) -> TensorSpec | None:
        """Return the tensor, None for -1."""
        return self.graph.operand(tensor)

    def type(self, tensor: int) -> TensorType | int | None:
        """Return its element type, None for -1."""
        spec = self.spec(tensor)
        return None if spec is None else spec.type

    def quantization(self, tensor: int) -> Quantization | None:
        """Return its quantization if it has scales, and zero points for each of them or one for all."""
        spec = self.spec(tensor)
        quantization = None if spec is None else spec.quantization
        if (
            quantization is None
            or not quantization.scale.size
            or quantization.zero_point.size not in (1, quantization.scale.size)
        ):
            return None
        return quantization

    def activation(self, tensor: int) -> tuple[np.float32, int] | None:
        """Return (scale, zero point) of a tensor of a quantized type with exactly one of each."""
        quantization = self.quantization(tensor)
        if quantization is None or self.type(tensor) not in QUANTIZED or quantization.scale.size != 1:
            return None
        return np.float32(quantization.scale[0]), int(quantization.zero_point[0])

    def constant(self, tensor: int) -> Array | None:
        """Return the elements in the file, flat; None if there are none, or not as a plain array of whole bytes."""
        spec = self.spec(tensor)
        if spec is None or not isinstance(spec.type, TensorType):
            return None
        data = self.graph.data(tensor)
        dtype = CARRIER[spec.type]
        narrow = spec.type in (TensorType.INT4, TensorType.INT2, TensorType.UINT4)
        if data is None or narrow or dtype.hasobject or data.nbytes % dtype.itemsize:
            return None
        return np.frombuffer(data, dtype.newbyteorder("<"))


def sites(model: Model, signature: str | None = None) -> Iterator[Site]:
    """Yield every operator of every subgraph, or of those that a signature runs."""
    for number, first in root_subgraphs(model, signature):
        for index in range(len(model.subgraphs[number].operators)):
            yield Site(model, number, index, first)


class Level(str, Enum):
    """Error: a runtime refuses the model, or its bits have no meaning. Warning: off the spec, or less accurate.

    Note: an explanation, which does not change the exit code.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Breach:
    """A violation of a rule by one operator: `tensor` is an index of its subgraph, -1 for none.

    `outcome` replaces the rule where one question has two answers.
    """

    tensor: int
    required: str
    found: str
    fixable: bool = False
    outcome: LintRule | None = None


@dataclass(frozen=True, slots=True)
class LintRule:
    """One rule. `check` yields the violations by one operator."""

    id: str
    level: Level
    summary: str
    check: Callable[[Site], Iterator[Breach]]


def rule(id: str, level: Level, summary: str) -> Callable[[Callable[[Site], Iterator[Breach]]], LintRule]:
    """Return the decorator that makes a rule of the function that yields its violations."""
    return lambda check: LintRule(id, level, summary, check)


def rules_of(module: ModuleType) -> tuple[LintRule, ...]:
    """Return the rules that a module defines, in their order."""
    return tuple(value for value in vars(module).values() if isinstance(value, LintRule))


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation with its place: `operator` is an index of subgraph `subgraph`; `tensor` is one too, or None."""

    rule: str
    level: Level
    summary: str
    subgraph: int
    operator: int
    op: str
    tensor: int | None
    name: str
    required: str
    found: str
    fixable: bool
