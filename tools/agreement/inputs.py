"""Inputs that can show differences: extreme codes, given samples, sums at thresholds, random codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from agreement.sums import Array, Ints, Product, products
from tflq.comparison.inputs.prepare import InputPreparation
from tflq.comparison.inputs.read import input_specs, make_inputs
from tflq.engine.numerics.products import Range
from tflq.engine.profiles import PROFILES
from tflq.errors import InputError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.proof.reach import Values, values_for

Sample = tuple[Array, ...]
#: Types of codes that inputs may have.
_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Number of receptive fields with a sum at a threshold that are solved for one model.
_SOLVED = 256
#: Number of taps of a receptive field whose values are solved for, the others being random.
_FREE = 12
#: Share of an image's elements that one step of the search changes.
_CHANGED = 0.1


class Drawn:
    """Inputs of a model by kind, from one seed."""

    def __init__(self, model: Model, profile: str, seed: int) -> None:
        self.model, self.specs = model, input_specs(model)
        for spec in self.specs:
            if spec.type not in _CODES:
                raise InputError("type of an input: quantize it to codes", name=spec.name or "", got=spec.type.label)
        self.products = products(model, PROFILES[profile])
        self._rng = np.random.default_rng(seed)

    def extreme(self) -> Iterator[Sample]:
        """Yield constant codes, and patterns of the lowest and the highest."""
        places = max(len(constants(spec)) for spec in self.specs)
        for number in range(places):
            codes = [constants(spec) for spec in self.specs]
            forms = zip(self.specs, codes, strict=True)
            yield tuple(np.full(shape_of(s), c[number % len(c)], CARRIER[s.type]) for s, c in forms)
        for step in (1, 2, 3, 5, 7):
            for first in (0, 1):
                yield tuple(striped(spec, step, first) for spec in self.specs)

    def given(self, path: Path) -> Sequence[Sample]:
        """Return the samples of a file; floats are real values."""
        return make_inputs(self.model, path, how=InputPreparation(quantize=True)).samples

    def random(self, count: int) -> Iterator[Sample]:
        """Yield independent codes, every other sample smooth: few distinct codes side by side."""
        for number in range(count):
            yield tuple(self._noise(s) if number % 2 else self._smooth(s) for s in self.specs)

    def _noise(self, spec: TensorSpec) -> Array:
        low, high = limits(spec)
        return self._rng.integers(low, high + 1, shape_of(spec)).astype(CARRIER[spec.type])

    def _smooth(self, spec: TensorSpec) -> Array:
        low, high = limits(spec)
        centre, width = self._rng.integers(low, high + 1), self._rng.integers(1, (high - low) // 2)
        codes = self._rng.normal(centre, width, shape_of(spec))
        return np.clip(np.rint(codes), low, high).astype(CARRIER[spec.type])

    def constructed(self, count: int) -> Iterator[Sample]:
        """Yield images whose receptive fields give the first product sums at thresholds."""
        inputs = view(self.model).inputs
        first = next((p for p in self.products if p.x in inputs and p.name != "TRANSPOSE_CONV"), None)
        fields = self._solved(first) if first is not None else []
        if first is None or not fields:
            return
        place = inputs.index(first.x)
        for sample in self.random(count):
            codes = sample[place].reshape(-1).astype(np.int64)
            free = np.ones(codes.size, bool)
            for number in self._rng.permutation(len(fields)).tolist():
                elements, values = fields[number]
                if free[elements].all():
                    codes[elements], free[elements] = values, False
            made = codes.astype(sample[place].dtype).reshape(sample[place].shape)
            yield (*sample[:place], made, *sample[place + 1 :])

    def _solved(self, product: Product) -> list[tuple[Array, Array]]:
        """Return elements of the input and their codes, one receptive field each, shifted to many places."""
        sums = product.sums
        points = sums.breakpoints(sums.output.pipeline.clamp)
        if points is None:
            return []
        found = []
        zero = int(sums.x.zero_point)
        for channel in self._rng.integers(0, len(sums.weights), _SOLVED).tolist():
            inside = points[
                (points[:, channel] > sums.low[channel]) & (points[:, channel] <= sums.high[channel]), channel
            ]
            if not inside.size:
                continue
            at = int(self._rng.choice(inside)) - int(self._rng.integers(0, 2))
            for field in sums.fields(channel):
                values = self._values(sums.weights[channel][field.taps], sums.span, at)
                if values is not None:
                    whole = len(field.taps) == sums.weights.shape[1]
                    elements = self._shifted(product, field.elements) if whole else field.elements
                    found.append((elements, values + zero))
        return found

    def _values(self, weights: Ints, span: Range, target: int) -> Ints | None:
        """Return values with that sum: small random ones for all but a few taps if possible, else for none."""
        near = np.rint(self._rng.normal(0, (span[1] - span[0]) / 16, len(weights))).astype(np.int64)
        values = np.clip(near, *span)
        free = self._rng.permutation(np.flatnonzero(weights))[:_FREE]
        values[free] = 0
        rest = target - int(weights @ values)
        solution = values_for(weights[free], Values.between(*span), [(rest, rest + 1)])
        if solution is not None:
            values[free] = solution[0]
            return values
        solution = values_for(weights, Values.between(*span), [(target, target + 1)])
        return None if solution is None else solution[0]

    def _shifted(self, product: Product, elements: Array) -> Array:
        """Return the field's elements at another place whose taps are all inside the image, if it has such."""
        prepared = product.sums.bound.step.prepared
        window = getattr(prepared.data, "window", None) if prepared is not None else None
        if window is None:
            return elements
        depth = product.sums.x.shape[3]
        rows, columns, channels = np.unravel_index(elements, (window.height, window.width, depth))
        down = self._steps(window.height - 1 - int(rows.max()), int(rows.min()), window.stride_h)
        right = self._steps(window.width - 1 - int(columns.max()), int(columns.min()), window.stride_w)
        return np.ravel_multi_index((rows + down, columns + right, channels), (window.height, window.width, depth))

    def _steps(self, after: int, before: int, stride: int) -> int:
        """Return a random multiple of the stride by which a field may move."""
        return stride * int(self._rng.integers(-(before // stride), after // stride + 1))

    def changed(self, sample: Sample) -> Sample:
        """Return a sample with new codes in a random part of each input."""
        return tuple(self._changed(spec, value) for spec, value in zip(self.specs, sample, strict=True))

    def _changed(self, spec: TensorSpec, value: Array) -> Array:
        flat = value.reshape(-1).copy()
        size = max(1, int(flat.size * _CHANGED * self._rng.random()))
        start = int(self._rng.integers(0, flat.size - size + 1))
        low, high = limits(spec)
        if self._rng.random() < 0.5:
            flat[start : start + size] = self._rng.integers(low, high + 1, size).astype(flat.dtype)
        else:
            moved = flat[start : start + size].astype(np.int64) + self._rng.integers(-3, 4, size)
            flat[start : start + size] = np.clip(moved, low, high).astype(flat.dtype)
        return flat.reshape(value.shape)


def shape_of(spec: TensorSpec) -> tuple[int, ...]:
    """Return the shape in the file."""
    return tuple(int(size) for size in spec.shape)


def limits(spec: TensorSpec) -> tuple[int, int]:
    """Return the lowest and the highest code."""
    info = np.iinfo(CARRIER[spec.type])
    return int(info.min), int(info.max)


def constants(spec: TensorSpec) -> list[int]:
    """Return the extreme codes, the zero point and its neighbours."""
    low, high = limits(spec)
    zero = int(spec.quantization.zero_point[0]) if spec.quantization is not None else 0
    return sorted({min(max(code, low), high) for code in (low, high, zero - 1, zero, zero + 1)})


def striped(spec: TensorSpec, step: int, first: int) -> Array:
    """Return runs of `step` elements with the lowest and the highest code in turn."""
    shape = shape_of(spec)
    number = np.arange(int(np.prod(shape))) // step + first
    return np.where(number % 2, *limits(spec)).astype(CARRIER[spec.type]).reshape(shape)
