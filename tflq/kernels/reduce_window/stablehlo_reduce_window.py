"""STABLEHLO_REDUCE_WINDOW: every window of a spread and padded array folded to one element.

| operand | shape                   | types                                                    |
|---------|-------------------------|----------------------------------------------------------|
| x       | 1 to 6 dimensions       | float32, float64, int8, uint8, int16, int32, int64, bool |
| start   | one element             | as x                                                     |
| y       | positions of the window | as x                                                     |

Options: window_dimensions, window_strides, base_dilations, window_dilations, padding (low and high by dimension; what
lies there is `start`), body_subgraph_index. Of the body only its one operator's name is read. Sums of bool are kept as
the bytes they are.
Source: LiteRT 2.3, stablehlo_reduce_window.cc StablehloData.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflq.kernels.geometry.interior_padding import Spread, move_apart, spread
from tflq.kernels.geometry.sliding import FOLDS, TYPES, Windows, fold_windows, windows
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import integers_option
from tflq.numerics.arithmetic import Arithmetic

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
    """What happens before the windows, and the windows."""

    spread: Spread
    windows: Windows


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Only geometry, and which fold."""
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
    return Prepared((data.windows.shape,), data, evaluate)


def _fold(node: Node) -> Callable[[Array, Array], Array]:
    names = node.around().operators(int(node.options["body_subgraph_index"]))
    if len(names) != 1 or names[0] not in _BODIES:
        node.refuse("body", expected=f"one of {', '.join(sorted(_BODIES))}", got=list(names))
    return FOLDS[_BODIES[names[0]]]


def evaluate(data: OpData, x: Array, start: Array) -> Array:
    """Source: PadCropReduceWindow."""
    return fold_windows(data.windows, move_apart(data.spread, x, start.reshape(-1)[0]), start)


KERNELS = tuple(Kernel("STABLEHLO_REDUCE_WINDOW", f"{t} {t} -> {t}", prepare, (1, 1)) for t in TYPES)
