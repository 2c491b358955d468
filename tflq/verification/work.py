"""How much an operator computes: multiply-accumulates, from shapes alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

Shape = tuple[int, ...]
#: (input shapes, None where absent; first output's shape) -> multiply-accumulates
Count = Callable[[Sequence["Shape | None"], Shape], int]


def _convolution(inputs: Sequence[Shape | None], output: Shape) -> int:
    """Weights are (O, KH, KW, C/G) or (O, KD, KH, KW, C): all but the first count per output element."""
    weights = inputs[1]
    return math.prod(output) * math.prod(weights[1:]) if weights else 0


def _depthwise(inputs: Sequence[Shape | None], output: Shape) -> int:
    """Weights are (1, KH, KW, C): one window per output element."""
    weights = inputs[1]
    return math.prod(output) * math.prod(weights[1:-1]) if weights else 0


def _transposed(inputs: Sequence[Shape | None], output: Shape) -> int:
    """Inputs are (output shape, weights (O, KH, KW, C), x): each element of x meets O windows."""
    weights, x = inputs[1], inputs[2]
    return math.prod(x) * math.prod(weights[:-1]) if weights and x else 0


def _dense(inputs: Sequence[Shape | None], output: Shape) -> int:
    """Weights are (O, K)."""
    weights = inputs[1]
    return math.prod(output) * weights[-1] if weights else 0


def _matrices(inputs: Sequence[Shape | None], output: Shape) -> int:
    """(..., M, K) by (..., K, N), either transposed: K follows from the sizes."""
    x = inputs[0]
    rows = {output[-2], output[-1]} if len(output) > 1 else set()
    inner: int = next((size for size in (x or ())[-2:] if size not in rows), (x or (0,))[-1])
    return math.prod(output) * inner


def _lstm(inputs: Sequence[Shape | None], output: Shape) -> int:
    """Every weight matrix (operands 1 to 8 and the projection, 16) meets each step of the sequence once."""
    x = inputs[0]
    steps = math.prod(x[:-1]) if x else 0
    matrices = [inputs[i] for i in (*range(1, 9), 16) if i < len(inputs)]
    total: int = sum(math.prod(m) for m in matrices if m)
    return steps * total


_COUNTS: Mapping[str, Count] = MappingProxyType(
    {
        "CONV_2D": _convolution,
        "CONV_3D": _convolution,
        "DEPTHWISE_CONV_2D": _depthwise,
        "TRANSPOSE_CONV": _transposed,
        "FULLY_CONNECTED": _dense,
        "BATCH_MATMUL": _matrices,
        "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    }
)


def multiply_accumulates(op: str, inputs: Sequence[Shape | None], output: Shape) -> int:
    """How many multiply-accumulates the operator takes; 0 for operators that are no sums of products."""
    count = _COUNTS.get(op)
    needed = 3 if op == "TRANSPOSE_CONV" else 2
    return count(inputs, output) if count is not None and len(inputs) >= needed else 0
