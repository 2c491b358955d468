"""REDUCE_WINDOW: every window folded to one element.

| operand   | shape                      | types                                                |
|-----------|----------------------------|------------------------------------------------------|
| x         | 1 to 6 dimensions          | float32, float64, int8, uint8, int16, int32, int64, bool |
| start     | one element                | as x                                                 |
| window    | one per dimension, constant | int64                                               |
| strides   | the same                   | int64                                                |
| dilations | the same                   | int64                                                |
| y         | positions of the window    | as x                                                 |

Options: reduce_function. Sums of bool are kept as the bytes they are.
Source: LiteRT 2.3, stablehlo_reduce_window.cc TFLiteData.
"""

from __future__ import annotations

from tflq.ir.schema import enum
from tflq.kernels.geometry.sliding import FOLDS, TYPES, Windows, fold_windows, windows
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import integers
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Only geometry, and which fold."""
    number = int(node.options["reduce_function"])
    fold = next((FOLDS[name] for name, code in enum("ReduceWindowFunction").items() if code == number > 0), None)
    if fold is None:
        node.refuse("reduce_function", expected=sorted(FOLDS), got=number)
    size, strides, dilations = (integers(node, position) for position in (2, 3, 4))
    data = windows(node, fold, node.input(0).shape, size, strides, dilations)
    return Prepared((data.shape,), data, evaluate)


def evaluate(data: Windows, x: Array, start: Array, *_: Array) -> Array:
    """Source: ReduceWindow."""
    return fold_windows(data, x, start)


KERNELS = tuple(Kernel("REDUCE_WINDOW", f"{t} {t} int64 int64 int64 -> {t}", prepare, (1, 1)) for t in TYPES)
