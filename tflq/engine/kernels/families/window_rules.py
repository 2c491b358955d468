"""A row with windows whose device takes other elements of the image, with its fields.

Along an axis, tap k of output i is element i * stride + start - before + k * dilation. Devices differ in the stride and
start, in the padding before the image, in what taps outside hold, and in the channels of groups. The image is rebuilt
so that a window without padding sees what the device sees; pools that leave taps out get another window instead.

Sources of fields: OpenCV 5.0 dnn (padding of the undilated kernel), Sophgo TPU-MLIR 1.30 (taps of average pools that
hold the zero point), PyTorch's symmetric padding, accelerators without zero points (padding of code 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families import code_averages, pooling
from tflq.engine.kernels.geometry.windows import Padding, Window, window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER
from tflq.typing import Array

POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
#: The operators that have it.
OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", *POOLS)
LEFT_OUT = "left out"
#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "padding": ("more at the end", "more at the start", "of the undilated kernel", "half the kernel", "all at the end"),
    "outside": (LEFT_OUT, "the zero point", "code 0"),
    "strides": ("own", "the height's", "the width's", "swapped", "from the last element of each step"),
    "dilation": ("own", "ignored"),
    "groups": ("own", "the first group's channels"),
}


@dataclass(frozen=True, slots=True)
class WindowRule:
    """One point of the grammar of windows. Fields are spelled as files of profiles spell them."""

    padding: str = "more at the end"
    outside: str = LEFT_OUT
    strides: str = "own"
    dilation: str = "own"
    groups: str = "own"

    def moved(self, at: Window) -> Window:
        """Return the window that the device uses in place of the right one."""
        changed = {"the height's": (at.stride_h,) * 2, "the width's": (at.stride_w,) * 2}
        strides = changed.get(self.strides, (at.stride_h, at.stride_w))
        strides = strides[::-1] if self.strides == "swapped" else strides
        late = self.strides == FIELDS["strides"][-1]
        dilations = (1, 1) if self.dilation == "ignored" else (at.dilation_h, at.dilation_w)
        return at._replace(
            stride_h=strides[0],
            stride_w=strides[1],
            dilation_h=dilations[0],
            dilation_w=dilations[1],
            pad_top=self._before(at.height, at.kernel_h, at.stride_h, at.dilation_h, at.out_h)
            - late * (at.stride_h - 1),
            pad_left=self._before(at.width, at.kernel_w, at.stride_w, at.dilation_w, at.out_w)
            - late * (at.stride_w - 1),
        )

    def _before(self, size: int, kernel: int, stride: int, dilation: int, out: int) -> int:
        """Return the padding before an image."""
        spread = 1 if self.padding == "of the undilated kernel" else dilation
        reach = (kernel - 1) * spread + 1
        total = max(0, (out - 1) * stride + reach - size)
        if self.padding == "half the kernel":
            return reach // 2
        return {"more at the start": total - total // 2, "all at the end": 0}.get(self.padding, total // 2)


#: The reader of what a file states.
window_rule_of = reader(WindowRule, FIELDS, "a rule of windows")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants: the row's own, the rows, columns and channels that it is given, and the code outside the image."""

    inner: Prepared
    rows: Array
    columns: Array
    channels: Array
    fill: int


def windows_by_rule(row: Kernel, point: WindowRule) -> Kernel:
    """Return the row that takes the elements that the rule names."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x = node.input(0)
        node.check(len(x.shape) == 4 and x.is_quantized and x.value is None, "has no image of codes", x)
        is_pool = node.op in POOLS
        kernel = [node.options["filter_height"], node.options["filter_width"]] if is_pool else node.input(1).shape[1:3]
        right = window(node, x.shape, (int(kernel[0]), int(kernel[1])))
        at = point.moved(right) if int(node.options["padding"]) == Padding.SAME else _without(point).moved(right)
        if is_pool and point.outside == LEFT_OUT:
            return _pooled(row.prepare(node, arithmetic), at, node)
        rows = _places(at.out_h, at.stride_h, at.kernel_h, at.dilation_h, at.pad_top)
        columns = _places(at.out_w, at.stride_w, at.kernel_w, at.dilation_w, at.pad_left)
        changed = {"padding": int(Padding.VALID), "stride_h": at.stride_h, "stride_w": at.stride_w}
        if not is_pool:
            changed |= {"dilation_h_factor": at.dilation_h, "dilation_w_factor": at.dilation_w}
        shape = (x.shape[0], len(rows), len(columns), x.shape[3])
        image = replace(x, shape=shape, recorded=shape)
        options = replace(node.options, fields={**node.options.fields, **changed})
        inner = row.prepare(replace(node, inputs=(image, *node.inputs[1:]), options=options), arithmetic)
        depth = x.shape[3] if is_pool or point.groups == "own" else node.input(1).shape[3]
        fill = int(x.zero_point) if point.outside != "code 0" else 0
        low, high = type_range(CARRIER[x.type])
        data = OpData(inner, rows, columns, np.arange(x.shape[3]) % max(depth, 1), min(max(fill, low), high))
        return replace(inner, data=data, eval=eval_windows)

    return replace(row, prepare=prepare, takes=None)


def _without(point: WindowRule) -> WindowRule:
    """Return the rule for windows without padding."""
    return replace(point, padding="all at the end")


def _places(out: int, stride: int, kernel: int, dilation: int, before: int) -> Array:
    """Return the positions that the windows span along an axis, the first one's first; some lie outside the image."""
    return np.arange(max(0, (out - 1) * stride + (kernel - 1) * dilation + 1)) - before


def _pooled(prepared: Prepared, at: Window, node: Node) -> Prepared:
    """Return the pool over another window; taps outside are left out, and a window without any is refused."""
    node.check(isinstance(prepared.data, (pooling.OpData, code_averages.OpData)), "is no pool of codes")
    for out, stride, kernel, before, size in (
        (at.out_h, at.stride_h, at.kernel_h, at.pad_top, at.height),
        (at.out_w, at.stride_w, at.kernel_w, at.pad_left, at.width),
    ):
        starts = np.arange(out) * stride - before
        node.check(bool(np.all((starts < size) & (starts + kernel > 0))), "a window lies outside the image")
    return replace(prepared, data=replace(prepared.data, window=at))


def eval_windows(data: OpData, x: Array, *others: Array | None) -> Any:
    """Gather the rows and columns, fill those outside, and evaluate the row."""
    height, width = x.shape[1:3]
    image = x[:, data.rows.clip(0, height - 1)][:, :, data.columns.clip(0, width - 1)]
    rows, columns = ((at >= 0) & (at < size) for at, size in ((data.rows, height), (data.columns, width)))
    inside = rows[:, None] & columns
    image = np.where(inside[None, :, :, None], image, x.dtype.type(data.fill))[..., data.channels]
    return data.inner.eval(data.inner.data, np.ascontiguousarray(image), *others)
