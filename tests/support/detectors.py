"""Small detectors in the forms in which outputs are written: one per anchor of a grid, with few high scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tflq
from support.graphs import Graph, Op, build
from support.single_op import T

Array = np.ndarray[Any, np.dtype[Any]]

SIDE, CHANNELS, CLASSES = 8, 24, 3
ANCHORS, PIXELS = SIDE * SIDE, 640.0
#: Forms of the outputs.
FORMS = ("joint", "last", "apart", "corners", "scores-first", "v5", "logits", "grid")


def samples(count: int = 24, seed: int = 0) -> Array:
    """Return pictures [count, 8, 8, 3] in which a few pixels are bright."""
    rng = np.random.default_rng(seed)
    dark = 0.2 * rng.random((count, SIDE, SIDE, 3))
    return np.float32(dark + (rng.random((count, SIDE, SIDE, 1)) < 0.06) * rng.uniform(1, 2, (count, SIDE, SIDE, 3)))


def detector(form: str = "joint") -> tflq.Model:
    """Return a float detector: a convolution, a head for boxes, one for scores, and the decoding of `form`."""
    return tflq.load(_Writer().model(form))


class _Writer:
    """Tensors and operators while a detector is written."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(7)
        self._tensors: list[T] = [T("float32", (1, SIDE, SIDE, 3))]
        self._ops: list[Op] = []

    def model(self, form: str) -> bytes:
        body = self._conv(0, CHANNELS, 3, 1.0, 0.0, activation=1)
        body = self._conv(body, CHANNELS, 1, 1.0, 0.0, activation=1)
        box, cls = self._conv(body, 4, 1, 0.5, 0.0), self._conv(body, CLASSES, 1, 8.0, -4.0)
        if form == "grid":  # raw heads: what decodes them is not in the file
            return self._written([self._join([box, cls], 3)])
        last = form in ("last", "v5")
        box, cls = (self._anchors(t, n, last=last) for t, n in ((box, 4), (cls, CLASSES)))
        axis, scores = 2 if last else 1, cls if form == "logits" else self._op("LOGISTIC", [cls])
        share = self._op("LOGISTIC", [box])
        boxes = self._op("MUL", [share, self._constant(PIXELS / 2)], MUL)
        boxes = self._op("ADD", [boxes, self._constant(PIXELS / 4)], ADD)
        if form == "corners":
            centre, size = (self._slice(boxes, start, axis) for start in (0, 2))
            boxes = self._join([self._op("SUB", [centre, size], SUB), self._op("ADD", [centre, size], ADD)], axis)
        if form == "apart":
            return self._written([boxes, scores])
        if form == "v5":
            parts = [self._slice(boxes, 0, axis), self._slice(boxes, 2, axis), scores]
            half = (self._join([self._half(t, k) for t in parts], axis) for k in (0, 1))
            return self._written([self._join(list(half), 1)])
        return self._written([self._join([scores, boxes] if form == "scores-first" else [boxes, scores], axis)])

    def _written(self, outputs: Sequence[int]) -> bytes:
        return build(Graph(self._tensors, (0,), tuple(outputs), self._ops))

    def _constant(self, value: Any, kind: str = "float32") -> int:
        array = np.asarray(value, kind)
        self._tensors.append(T(kind, array.shape, value=array))
        return len(self._tensors) - 1

    def _op(self, name: str, inputs: Sequence[int], options: Any = None, shape: Sequence[int] | None = None) -> int:
        self._tensors.append(T("float32", tuple(shape or self._tensors[inputs[0]].shape)))
        self._ops.append(Op(name, tuple(inputs), (len(self._tensors) - 1,), options))
        return len(self._tensors) - 1

    def _conv(self, data: int, count: int, side: int, power: float, bias: float, activation: int = 0) -> int:
        depth = self._tensors[data].shape[-1]
        weights = self._rng.normal(0, power / np.sqrt(depth) / side, (count, side, side, depth))
        operands = [data, self._constant(weights), self._constant(np.full(count, bias))]
        fields = {"padding": 0, "stride_w": 1, "stride_h": 1, "fused_activation_function": activation}
        fields |= {"dilation_w_factor": 1, "dilation_h_factor": 1}
        return self._op("CONV_2D", operands, ("Conv2DOptions", fields), (1, SIDE, SIDE, count))

    def _anchors(self, data: int, count: int, *, last: bool) -> int:
        """Return a head as [1, anchors, channels], or [1, channels, anchors]."""
        flat = self._op("RESHAPE", [data, self._constant([1, ANCHORS, count], "int32")], None, (1, ANCHORS, count))
        if last:
            return flat
        return self._op("TRANSPOSE", [flat, self._constant([0, 2, 1], "int32")], None, (1, count, ANCHORS))

    def _slice(self, data: int, start: int, axis: int) -> int:
        begin, size = [0, 0, 0], [1, *self._tensors[data].shape[1:]]
        begin[axis], size[axis] = start, 2
        return self._op("SLICE", [data, self._constant(begin, "int32"), self._constant(size, "int32")], None, size)

    def _half(self, data: int, k: int) -> int:
        """Return half of the anchors, as one of two scales has them."""
        size = [1, ANCHORS // 2, self._tensors[data].shape[2]]
        begin = self._constant([0, k * ANCHORS // 2, 0], "int32")
        return self._op("SLICE", [data, begin, self._constant(size, "int32")], None, size)

    def _join(self, parts: Sequence[int], axis: int) -> int:
        shape = list(self._tensors[parts[0]].shape)
        shape[axis] = sum(self._tensors[t].shape[axis] for t in parts)
        return self._op(
            "CONCATENATION", parts, ("ConcatenationOptions", {"axis": axis, "fused_activation_function": 0}), shape
        )


MUL, ADD, SUB = ((f"{name}Options", {"fused_activation_function": 0}) for name in ("Mul", "Add", "Sub"))
