"""How much operators compute, from shapes and options alone: functions that facts name.

Sums of products count their multiply-accumulates: the innermost passes of the source's loops, what padding leaves out
included. Other operators count passes of their innermost loop where that is more than the elements they read and write.
Source: the loops of LiteRT 2.3's reference kernels, named row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tflq.engine.kernels.kernel import Node, Shape
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Sizes:
    """Shapes and options of one operator. `values` are those of operands that decide shapes, None if not known."""

    inputs: Sequence[Shape | None]  # None if absent
    outputs: Sequence[Shape]
    options: Mapping[str, Any]
    values: Sequence[Array | None] = ()

    @classmethod
    def of(cls, node: Node, shapes: Sequence[Shape | None]) -> Sizes:
        """Return the sizes of a prepared node whose outputs have these shapes; an output of unknown shape counts 0."""
        return cls(
            inputs=tuple([None if operand is None else operand.shape for operand in node.inputs]),
            outputs=tuple([(0,) if shape is None else shape for shape in shapes]),
            options=node.options.fields,
            values=tuple([None if operand is None else operand.value for operand in node.inputs]),
        )

    def input(self, position: int) -> Shape:
        """Return the shape of an input; (0,) if it is absent."""
        shape = self.inputs[position] if position < len(self.inputs) else None
        return (0,) if shape is None else shape

    @property
    def output(self) -> Shape:
        """The shape of the first output; (0,) if there is none."""
        return self.outputs[0] if self.outputs else (0,)

    def elements(self, *positions: int) -> int:
        """Count the elements of the inputs at `positions`, added up."""
        return sum(prod(self.input(position)) for position in positions)

    def option(self, name: str) -> int:
        """Return an option that is an integer; 0 if there is none."""
        return int(self.options.get(name) or 0)


Count = Callable[[Sizes], int]


def convolution(sizes: Sizes) -> int:
    """Count products with w (O, KH, KW, C / groups)."""
    return prod(sizes.output) * prod(sizes.input(1)[1:])


def convolution_3d(sizes: Sizes) -> int:
    """Count products with w (KD, KH, KW, C, O)."""
    return prod(sizes.output) * prod(sizes.input(1)[:-1])


def depthwise(sizes: Sizes) -> int:
    """Count products with w (1, KH, KW, O)."""
    return prod(sizes.output) * prod(sizes.input(1)[:-1])


def transpose(sizes: Sizes) -> int:
    """Count products: every element of x (operand 2) meets w (O, KH, KW, C) without its C."""
    return sizes.elements(2) * prod(sizes.input(1)[:-1])


def transpose_3d(sizes: Sizes) -> int:
    """Count products: every element of x (operand 2) meets w (KD, KH, KW, O, C) without its C."""
    return sizes.elements(2) * prod(sizes.input(1)[:-1])


def dense(sizes: Sizes) -> int:
    """Count products with w (O, K)."""
    return prod(sizes.output) * sizes.input(1)[-1] if sizes.input(1) else 0


def matrices(sizes: Sizes) -> int:
    """Count products with x (..., M, K), or (..., K, M) with the option adj_x."""
    x = sizes.input(0)
    return prod(sizes.output) * x[-2 if sizes.option("adj_x") else -1] if len(x) > 1 else 0


def recurrent(*weights: int) -> Count:
    """Return the count where every matrix at these positions meets each row of x: each batch at each step."""
    return lambda sizes: prod(sizes.input(0)[:-1]) * sizes.elements(*weights)


def lstm(sizes: Sizes) -> int:
    """Count products. Type BASIC, of five operands, has one matrix; FULL those of UNIDIRECTIONAL_SEQUENCE_LSTM."""
    return (recurrent(2) if len(sizes.inputs) == 5 else recurrent(*range(1, 9), 16))(sizes)


def svdf(sizes: Sizes) -> int:
    """Count products: the feature weights meet every row of x, the time weights every row of the state."""
    return sizes.input(0)[0] * sizes.elements(1, 2) if sizes.input(0) else 0


def weighted_rows(sizes: Sizes) -> int:
    """Count elements: each of the entries takes a row of the table, operand 4."""
    return sizes.elements(0) * prod(sizes.input(4)[1:])


def pool(sizes: Sizes) -> int:
    """Count a window for each output, as far as it fits into the image."""
    image = sizes.input(0)[1:3]
    window = (sizes.option("filter_height"), sizes.option("filter_width"))
    return prod(sizes.output) * prod(min(a, b) for a, b in zip(image, window, strict=False))


def windows(sizes: Sizes) -> int:
    """Count windows whose sizes are operand 2."""
    window = sizes.values[2] if len(sizes.values) > 2 else None
    return prod(sizes.output) * (1 if window is None else prod(map(int, window.ravel())))


def stablehlo_windows(sizes: Sizes) -> int:
    """Count windows whose sizes are an option."""
    window = sizes.options.get("window_dimensions")
    return prod(sizes.output) * (1 if window is None else prod(map(int, window)))


def neighbours(sizes: Sizes) -> int:
    """Count channels: each output sees `radius` of them to either side."""
    return prod(sizes.output) * min(2 * sizes.option("radius") + 1, sizes.output[-1]) if sizes.output else 0


def sorted(sizes: Sizes) -> int:
    """Count comparisons of a sort."""
    count = sizes.elements(0)
    return count * count.bit_length()


def transform(sizes: Sizes) -> int:
    """Count butterflies of a Fourier transform that gives this output."""
    count = prod(sizes.output)
    return 2 * count * count.bit_length()


def overlaps(sizes: Sizes) -> int:
    """Count comparisons of every box with every box selected before it."""
    return prod(sizes.input(0)[:1]) * prod(sizes.output)


def detections(sizes: Sizes) -> int:
    """Count one suppression for each class: encodings (1, boxes, 4), scores (1, boxes, classes)."""
    return sizes.elements(1) * max(prod(sizes.output) // 4, 1)


def hashes(sizes: Sizes) -> int:
    """Count hashes: each seed with each row of x."""
    return sizes.elements(0) * sizes.elements(1)
