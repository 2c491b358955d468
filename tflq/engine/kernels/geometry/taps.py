"""The pixels that one tap of a window reads, for all of its positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.engine.kernels.geometry.windows import Window
from tflq.typing import Array


def read_tap(x: Array, window: Window, ky: int, kx: int, outside: Any = 0) -> Array:
    """Return what tap (ky, kx) reads of `x` (N, H, W, C), as (N, out_h, out_w, C); `outside` beyond the image."""
    rows = np.arange(window.out_h) * window.stride_h - window.pad_top + ky * window.dilation_h
    columns = np.arange(window.out_w) * window.stride_w - window.pad_left + kx * window.dilation_w
    inside = ((rows >= 0) & (rows < x.shape[1]))[:, None] & ((columns >= 0) & (columns < x.shape[2]))
    read = x[:, rows.clip(0, x.shape[1] - 1)][:, :, columns.clip(0, x.shape[2] - 1)]
    return np.where(inside[None, :, :, None], read, x.dtype.type(outside))
