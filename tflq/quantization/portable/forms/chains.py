"""Find chains of pointwise operators that compute a function of one tensor.

However an activation is spelled, LOGISTIC and MUL for SiLU or ADD, RELU6 and two MUL for HARD_SWISH, a chain is one
function of one number. On 8-bit codes it has 256 values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.model.ir import GraphView, OperatorView, TensorType
from tflq.quantization.params import Params, real
from tflq.quantization.portable.forms.functions import Reals, function_of


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Pointwise operators, in order of execution, that read nothing computed except `source` and give `result`."""

    graph: GraphView
    operators: tuple[int, ...]
    source: int
    result: int

    @property
    def names(self) -> tuple[str, ...]:
        """The operators that compute, by name."""
        names = (self.graph.op(index).name for index in self.operators)
        return tuple(name for name in names if name not in ("QUANTIZE", "DEQUANTIZE")) or ("QUANTIZE",)

    def values(self, source: Reals) -> Reals:
        """Return the function's values in float64, without rounding in between. Undefined ones are 0."""
        known = {self.source: source}
        with np.errstate(all="ignore"):
            for index in self.operators:
                operator = self.graph.op(index)
                function = function_of(operator)
                assert function is not None  # as found
                known[operator.outputs[0]] = function(*(known.get(t, _scalar(self.graph, t)) for t in operator.inputs))
        return np.nan_to_num(np.broadcast_to(known[self.result], source.shape), nan=0.0, posinf=np.inf, neginf=-np.inf)


def chains(graph: GraphView, starts: Callable[[int], bool], ends: Callable[[int], bool]) -> tuple[Chain, ...]:
    """Return the longest chain to each tensor that `ends` takes, from one that `starts` takes.

    Chains may share operators: what several of them read, each computes.
    """
    last = (op for op in graph.ops if len(op.outputs) == 1 and ends(op.outputs[0]))
    return tuple(chain for op in last if (chain := _longest(op, starts)) is not None)


def _longest(last: OperatorView, starts: Callable[[int], bool]) -> Chain | None:
    graph, result = last.graph, last.outputs[0]
    inside: list[int] = []
    best: Chain | None = None
    operator: OperatorView | None = last
    while operator is not None and _is_pointwise(operator, result):
        inside.append(operator.index)
        open_ = _open(graph, inside)
        if len(open_) == 1 and starts(open_[0]):
            best = Chain(graph, tuple(sorted(inside)), open_[0], result)
        operator = _next(graph, open_)
    return best


def _open(graph: GraphView, inside: list[int]) -> list[int]:
    """Return the computed tensors that operators read and do not make."""
    made = {graph.op(i).outputs[0] for i in inside}
    read = {t for i in inside for t in graph.op(i).inputs}
    return [t for t in read if t not in made and _scalar(graph, t) is None]


def _next(graph: GraphView, open_: list[int]) -> OperatorView | None:
    """Return the last of the makers of open tensors; None if its result is an output of the graph."""
    makers = [maker for t in open_ if (maker := graph.maker(t)) is not None]
    last = max(makers, key=lambda maker: maker.index, default=None)
    return None if last is None or last.outputs[0] in graph.outputs else last


def _is_pointwise(operator: OperatorView, result: int) -> bool:
    """Return whether each element of the output is a function of the elements at its place, the same at every place."""
    graph = operator.graph
    if function_of(operator) is None or len(operator.outputs) != 1 or not operator.inputs or -1 in operator.inputs:
        return False
    shape = graph.tensors[result].shape
    computed = (t for t in (*operator.inputs, operator.outputs[0]) if _scalar(graph, t) is None)
    return all(graph.tensors[t].shape == shape and not graph.tensors[t].is_variable for t in computed)


def _scalar(graph: GraphView, tensor: int) -> Reals | None:
    """Return the real value of a constant of one number; None for any other tensor."""
    spec = graph.tensors[tensor]
    if tensor in graph.inputs or graph.maker(tensor) is not None or np.prod(spec.shape, dtype=np.int64) != 1:
        return None
    value = graph.constant(tensor)
    return None if value is None or value.dtype.kind not in "fiu" else real(spec, value).reshape(())


def is_code(graph: GraphView, tensor: int) -> bool:
    """Return whether a tensor holds int8 codes of one scale."""
    return params_of(graph, tensor) is not None


def params_of(graph: GraphView, tensor: int) -> Params | None:
    """Return the parameters of a tensor of int8 codes with one scale; None for any other."""
    spec = graph.tensors[tensor]
    q = spec.quantization
    if spec.type != TensorType.INT8 or q is None or q.scale.size != 1 or q.zero_point.size != 1:
        return None
    return Params(TensorType.INT8, q.scale, q.zero_point)
