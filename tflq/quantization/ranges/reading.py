"""Ranges of what detectors compute for anchors, by the errors of the boxes and scores that are read.

Most of the energy of boxes is often at anchors with low scores, which callers ignore. So the range of a judged output
is the one with the least error as it is read; values on the way to it count by the scores of their anchors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.layout import Layout, layout_of
from tflq.quantization.anchors import Reading, Row, reading_of
from tflq.quantization.params import Range
from tflq.quantization.ranges.search.objectives import Loss
from tflq.quantization.ranges.search.quantizer import Quantizer
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.light import tail_region
from tflq.typing import Array

Reals = NDArray[np.float64]

#: Fewer anchors than these could be any other dimension.
_LEAST_ANCHORS = 16
#: Bytes of a tensor on the way to the outputs, above which its range is chosen by its own values.
_BYTES = 1 << 20
#: Samples of the outputs that a loss sees, and elements, if that is more than the least number of samples.
_SAMPLES, _LEAST_SAMPLES, _ELEMENTS = 16, 4, 1 << 22


@dataclass(frozen=True, eq=False)
class AnchorRanges:
    """The tensors of a detector that hold a value for each anchor, and losses of their ranges."""

    model: FloatModel

    @cached_property
    def layout(self) -> Layout | None:
        """The layout of the outputs; None if scores judge nothing in it."""
        if not self.model.graph.outputs:
            return None
        layout = layout_of(self.model.graph)
        return layout if len(layout.groups) > 1 and max(g.anchors for g in layout.groups) >= _LEAST_ANCHORS else None

    @cached_property
    def axes(self) -> Mapping[int, int]:
        """The dimension of anchors, from the end, of tensors behind the last weights that have one of their number."""
        if self.layout is None:
            return {}
        anchors = max(group.anchors for group in self.layout.groups)
        graph, found = self.model.graph, dict[int, int]()
        for index in tail_region(self.model):
            for tensor in graph.op(index).outputs:
                axes = [axis for axis, length in enumerate(graph.tensors[tensor].shape) if length == anchors]
                is_small = 4 * math.prod(graph.tensors[tensor].shape) <= _BYTES
                if len(axes) == 1 and is_small and self.model.is_float(tensor):
                    found[tensor] = axes[0] - len(graph.tensors[tensor].shape)
        return found

    @cached_property
    def needed(self) -> frozenset[int]:
        """The tensors whose first samples a loss reads."""
        return frozenset() if self.layout is None else frozenset({*self.axes, *self.layout.tensors})

    def limit(self, tensor: int) -> int:
        """Return the bytes of the first samples of a tensor that a loss reads."""
        return 4 * _SAMPLES * math.prod(self.model.graph.tensors[tensor].shape)

    def loss(self, tensors: Sequence[int], kept: Mapping[int, Array], quantizer: Quantizer) -> Loss | None:
        """Return the loss of a range that tensors share, from samples [S, ...] of tensors; None if it has none.

        None too if no boxes are read by scores.
        """
        layout = self.layout
        if layout is None or not all(t in kept and len(kept[t]) for t in (*layout.tensors, *tensors)):
            return None
        count = min(len(kept[t]) for t in (*layout.tensors, *tensors))
        elements = sum(math.prod(kept[t].shape[1:]) for t in layout.tensors)
        count = min(count, max(_LEAST_SAMPLES, _ELEMENTS // max(1, elements)))
        rows = [[kept[t][k].reshape(-1).astype(np.float64) for t in layout.tensors] for k in range(count)]
        reading = reading_of(layout, rows)
        if not reading.has_boxes:
            return None
        joint = [t for t in tensors if t in layout.tensors]
        if joint:
            return _as_read(reading, rows, [layout.tensors.index(t) for t in joint], quantizer)
        if not all(t in self.axes for t in tensors):
            return None
        judge = next(k for k, by in enumerate(reading.judges) if by is not None)
        weights = [reading.weights(judge, row) for row in rows]
        values, counts = list[Reals](), list[Reals]()
        for tensor in tensors:
            for k, weight in enumerate(weights):
                assert weight is not None  # that group is judged
                moved = np.moveaxis(kept[tensor][k : k + 1], self.axes[tensor], -1).astype(np.float64)
                read = moved[..., weight > 0]
                values.append(read.reshape(-1))
                counts.append(np.broadcast_to(weight[weight > 0], read.shape).reshape(-1))
        return _weight(np.concatenate(values)[None], np.concatenate(counts), quantizer)


def _as_read(reading: Reading, rows: Sequence[Row], places: Sequence[int], quantizer: Quantizer) -> Loss:
    """Return the mean error of outputs at some places, as they are read."""

    def loss(range_: Range) -> Reals:
        lost = 0.0
        for row in rows:
            near = [quantizer.nearest(v[None], range_)[0] if k in places else v for k, v in enumerate(row)]
            lost += sum(reading.noises(row, near))
        return np.array([lost / max(1, len(rows))])

    return loss


def _weight(values: Reals, weights: Reals, quantizer: Quantizer) -> Loss:
    """Return the weighted mean square error of values [1, N]."""

    def loss(range_: Range) -> Reals:
        error = np.square(values - quantizer.nearest(values, range_))[0]
        return np.array([float(weights @ error) / max(float(weights.sum()), 1e-30)])

    return loss
