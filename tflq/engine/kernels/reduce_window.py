"""REDUCE_WINDOW, STABLEHLO_REDUCE_WINDOW: every window folded to one element.

| operand   | shape                      | types                                                    |
|-----------|----------------------------|----------------------------------------------------------|
| x         | 1 to 6 dimensions          | float32, float64, int8, uint8, int16, int32, int64, bool |
| start     | one element                | as x                                                     |
| y         | positions of the window    | as x                                                     |

REDUCE_WINDOW: operands window, strides, dilations (constant int64, one a dimension); option reduce_function.
STABLEHLO_REDUCE_WINDOW: options window_dimensions, window_strides, base_dilations, window_dilations, padding (low and
high by dimension; `start` fills it), body_subgraph_index. Of the body only the name of its one operator is read.
Sums of bool are kept as the bytes they are.
Source: LiteRT 2.3, stablehlo_reduce_window.cc TFLiteData, StablehloData.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.engine.kernels.geometry.interior_padding import Spread, move_apart, spread
from tflq.engine.kernels.geometry.sliding import FOLDS, TYPES, Fold, Windows, fold_windows, windows
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import integers, integers_option
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir.schema import enum
from tflq.typing import Array


def prepare_window(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry and the fold."""
    number = int(node.options["reduce_function"])
    fold = next((FOLDS[name] for name, code in enum("ReduceWindowFunction").items() if code == number > 0), None)
    if fold is None:
        node.refuse("reduce_function", expected=sorted(FOLDS), got=number)
    size, strides, dilations = (integers(node, position) for position in (2, 3, 4))
    data = windows(node, fold, node.input(0).shape, size, strides, dilations)
    return Prepared((data.shape,), data, fold_windows)


_BODIES = {
    "ADD": "ADD",
    "STABLEHLO_ADD": "ADD",
    "MUL": "MUL",
    "STABLEHLO_MULTIPLY": "MUL",
    "MAXIMUM": "MAXIMUM",
    "STABLEHLO_MAXIMUM": "MAXIMUM",
    "MINIMUM": "MINIMUM",
    "STABLEHLO_MINIMUM": "MINIMUM",
    "LOGICAL_AND": "ALL",
    "STABLEHLO_AND": "ALL",
    "LOGICAL_OR": "ANY",
    "STABLEHLO_OR": "ANY",
}


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Spreading and padding, and the windows over the result."""

    spread: Spread
    windows: Windows


def prepare_spread_window(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry and the fold."""
    shape = node.input(0).shape
    rank = len(shape)
    ones = (1,) * rank
    size = integers_option(node, "window_dimensions")
    strides, apart, dilations = (
        integers_option(node, name) or ones for name in ("window_strides", "base_dilations", "window_dilations")
    )
    edges = integers_option(node, "padding") or (0,) * (2 * rank)
    node.check(len(edges) == 2 * rank, "length of padding", expected=2 * rank, got=len(edges))
    node.check(len(apart) == rank and min(apart) > 0, "base_dilations", expected=f"{rank} above 0", got=list(apart))
    around = spread(shape, edges[::2], edges[1::2], apart)
    padded = any(edges) or max(apart) > 1
    node.check(not padded or min(around.shape) > 0, "padding leaves nothing", expected="above 0", got=around.shape)
    data = OpData(around, windows(node, _fold(node), around.shape, size, strides, dilations))
    return Prepared((data.windows.shape,), data, eval_spread_window)


def _fold(node: Node) -> Fold:
    names = node.around().operators(int(node.options["body_subgraph_index"]))
    if len(names) != 1 or names[0] not in _BODIES:
        node.refuse("body", expected=f"one of {', '.join(sorted(_BODIES))}", got=list(names))
    return FOLDS[_BODIES[names[0]]]


def eval_spread_window(data: OpData, x: Array, start: Array) -> Array:
    """Source: PadCropReduceWindow."""
    return fold_windows(data.windows, move_apart(data.spread, x, start.reshape(-1)[0]), start)


KERNELS = (
    *tuple(Kernel("REDUCE_WINDOW", f"{t} {t} int64 int64 int64 -> {t}", prepare_window, (1, 1)) for t in TYPES),
    *tuple(Kernel("STABLEHLO_REDUCE_WINDOW", f"{t} {t} -> {t}", prepare_spread_window, (1, 1)) for t in TYPES),
)
