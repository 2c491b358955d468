"""Options of custom operators that the file holds as a C structure of 32-bit integers, as MediaPipe writes them.

Members that the file lacks are 0; bytes beyond the structure are ignored.
Source: LiteRT xnnpack_delegate.cc SafeCopyCustomData.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.engine.kernels.kernel import Node

#: Paddings of TfLitePadding: 0 is unknown.
SAME, VALID = 1, 2


def integers(node: Node, names: Sequence[str]) -> dict[str, int]:
    """Return the structure's members by these names, in order."""
    size = 4 * len(names)
    data = node.custom_options[:size].ljust(size, b"\0")
    return {name: int(value) for name, value in zip(names, np.frombuffer(data, "<i4"), strict=True)}
