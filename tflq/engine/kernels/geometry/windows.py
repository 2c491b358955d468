"""Windows that slide over an image: output sizes and paddings.

Images are N, H, W, C. Padding is never stored: taps outside the image are left out, or read as 0 where values are
centred (code minus zero point).
Source: LiteRT 2.3 padding.h ComputeOutSizeChecked, ComputePaddingWithOffsetChecked.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from tflq.engine.kernels.kernel import Node, Shape


class Padding(IntEnum):
    """How the border is treated, with the schema's numbers."""

    SAME = 0
    VALID = 1


class Axis(NamedTuple):
    """One axis of a window: sizes, stride, dilation and padding in pixels. `before` is the padding at the low end."""

    size: int
    kernel: int
    stride: int
    dilation: int
    out: int
    before: int

    def part(self, positions: slice) -> Axis:
        """Return the axis at those of its positions only."""
        return self._replace(out=positions.stop - positions.start, before=self.before - positions.start * self.stride)


class Window(NamedTuple):
    """A window over an image of height x width; everything in pixels. Read by compiled loops."""

    height: int
    width: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    out_h: int
    out_w: int
    pad_top: int
    pad_left: int

    @classmethod
    def over(cls, vertical: Axis, horizontal: Axis) -> Window:
        """Return the window with these axes."""
        return cls(
            height=vertical.size,
            width=horizontal.size,
            kernel_h=vertical.kernel,
            kernel_w=horizontal.kernel,
            stride_h=vertical.stride,
            stride_w=horizontal.stride,
            dilation_h=vertical.dilation,
            dilation_w=horizontal.dilation,
            out_h=vertical.out,
            out_w=horizontal.out,
            pad_top=vertical.before,
            pad_left=horizontal.before,
        )

    def part(self, rows: slice, columns: slice | None = None) -> Window:
        """Return the window at those of its positions only."""
        columns = columns or slice(0, self.out_w)
        return self._replace(
            out_h=rows.stop - rows.start,
            pad_top=self.pad_top - rows.start * self.stride_h,
            out_w=columns.stop - columns.start,
            pad_left=self.pad_left - columns.start * self.stride_w,
        )

    @classmethod
    def of_one_tap(cls, height: int, width: int) -> Window:
        """Return the window of an operator that takes every pixel by itself."""
        return cls.over(_one_tap(height), _one_tap(width))

    @property
    def taps(self) -> int:
        """Positions of the kernel."""
        return self.kernel_h * self.kernel_w

    @property
    def is_pointwise(self) -> bool:
        """True if every output pixel sees just the input pixel at its own place."""
        return self.taps == 1 and self.stride_h == self.stride_w == 1 and self.pad_top == self.pad_left == 0


def _one_tap(size: int) -> Axis:
    return Axis(size=size, kernel=1, stride=1, dilation=1, out=size, before=0)


def axis(padding: int, size: int, kernel: int, stride: int, dilation: int) -> Axis | None:
    """Return the geometry along one axis; None if the window does not fit or a parameter makes no sense."""
    if padding not in (Padding.SAME, Padding.VALID) or size < 0 or kernel <= 0 or stride <= 0 or dilation <= 0:
        return None
    reach = (kernel - 1) * dilation + 1
    span = size + stride - (1 if padding == Padding.SAME else reach)
    out = int(span / stride)  # truncates towards zero, as C does: a window a little too large gives 0, not an error
    if out < 0:
        return None
    return Axis(size, kernel, stride, dilation, out, max(0, (out - 1) * stride + reach - size) // 2)


def window(node: Node, image: Shape, kernel: tuple[int, int]) -> Window:
    """Return the window of `node`'s options (padding, strides, any dilations) over `image` (N, H, W, C)."""
    options = node.options
    axes = []
    for letter, size, taps in (("h", image[1], kernel[0]), ("w", image[2], kernel[1])):
        dilation = int(options.get(f"dilation_{letter}_factor", 1))
        stride = int(options[f"stride_{letter}"])
        placed = axis(int(options["padding"]), size, taps, stride, dilation)
        if placed is None:
            node.refuse(
                f"the window does not fit along {letter}",
                expected="a kernel inside the image, positive steps",
                got=f"size {size}, kernel {taps}, stride {stride}, dilation {dilation}",
            )
        axes.append(placed)
    return Window.over(axes[0], axes[1])
