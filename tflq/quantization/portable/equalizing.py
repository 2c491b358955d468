"""Equalize channels on the grid: each gets the factor with which the least noise of rounding is expected.

On the grid, the codes of a channel's weights span between half and all of their range, as its largest weight lies. The
freedom of equalization moves that weight to just below a grid point: a channel's rows are multiplied by a factor f, and
what reads the channel is divided by it. A greater f means finer activations of that channel, as far as the scale of the
tensor has room for it, and coarser codes where they are read. Noise is modelled as uniform rounding errors of
activations and weights on inputs of a typical magnitude, and is measured where the channel is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Params, Range, extent
from tflq.quantization.portable.grid import MOST_CODE, STRIDE, grid_shifts, output_group
from tflq.quantization.ranges.biases import data_params
from tflq.quantization.refine.equalization import scaled
from tflq.quantization.refine.groups import Factor, Group, channel_groups
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import Form, Scheme

Reals = NDArray[np.float64]

#: Factors that are tried; 1 first, so that it wins ties.
FACTORS = np.array(sorted((2.0 ** (k / 8) for k in range(-8, 9)), key=lambda f: abs(np.log2(f))))
#: The largest magnitude of a channel over its typical one.
PEAK = 3.0
#: A magnitude in place of 0.
_TINY = 1e-30


def equalize_on_grid(
    plan: Scheme, activations: Mapping[Form, Params], inside: Collection[int], extents: Mapping[int, Range]
) -> FloatModel:
    """Return the scheme's float model with channels of operators `inside` moved on the grid of these parameters.

    `extents` are the least and greatest value of each channel of activations, by tensor.
    """
    channels = _Channels(plan, activations, inside, extents)
    for group in channel_groups(plan.model):
        channels.move(group)
    return channels.model


class _Channels:
    """A float model while its groups of channels are moved, one after another."""

    def __init__(
        self, plan: Scheme, activations: Mapping[Form, Params], inside: Collection[int], extents: Mapping[int, Range]
    ) -> None:
        self.model = plan.model
        self._plan, self._activations, self._extents = plan, activations, dict(extents)
        products = [m for m in plan.multiplied if m.operator in inside]
        self._products = {m.tensor: m for m in products if output_group(plan, m.operator) is not None}

    def move(self, group: Group) -> None:
        """Multiply each channel of a group by the factor with the least noise."""
        tensors = [t for t in group.tensors if t in self._extents and t in self._plan.results]
        if not tensors or not any(f.constant in self._products for f in group.factors):
            return
        noise, least = self._noise(group, tensors)
        most = np.min([self._room(t) for t in tensors], axis=0)
        tried = FACTORS[:, None]
        noise[(tried > np.maximum(most, 1)) | (tried < np.minimum(least, 1))] = np.inf
        factors = FACTORS[np.argmin(noise, axis=0)]
        self.model = scaled(self.model, [(group, 1 / factors)])
        for t in tensors:
            self._extents[t] = Range(self._extents[t].low * factors, self._extents[t].high * factors)

    def _noise(self, group: Group, tensors: Sequence[int]) -> tuple[Reals, Reals]:
        """Return the noise of each factor and channel, [F, C], and the factor that no channel may go below, [C]."""
        typical = np.max([self._typical(t) for t in tensors], axis=0)
        noise, least, gain = np.zeros((FACTORS.size, group.size)), np.zeros(group.size), np.zeros(group.size)
        readers = [f for f in group.factors if f.sign > 0 and f.constant in self._products]
        for factor in readers:
            m, values = self._products[factor.constant], self._values(factor)
            gain += np.bincount(factor.channels, np.square(values).sum(axis=(0, 1)), group.size)
            if factor.reads:  # the steps of rows stay: no column may become a row's greatest
                steps = np.square(self._steps(m, np.ones((1, 1)))).sum()
                rows = np.abs(values).max(axis=1)
                least = np.maximum(least, (rows / np.maximum(rows.max(axis=1, keepdims=True), _TINY)).max(axis=0))
            else:
                every = self._steps(m, 1 / FACTORS[:, None])
                steps = np.stack([np.bincount(factor.channels, np.square(row), group.size) for row in every])
            noise += np.square(FACTORS)[:, None] * typical * values.shape[1] * steps
        for factor in (f for f in group.factors if f.sign < 0 and f.constant in self._products):
            m = self._products[factor.constant]
            output = output_group(self._plan, m.operator)
            assert output is not None
            own = np.square(self._steps(m, FACTORS[:, None])) * self._power(m) + self._scale(output) ** 2
            noise += gain * own / np.square(FACTORS)[:, None]
        return noise, least

    def _values(self, factor: Factor) -> Reals:
        """Return weights as [rows, taps, channels]; those of a depthwise convolution have one row."""
        moved = np.moveaxis(self.model.constants[factor.constant].astype(np.float64), factor.axis, -1)
        rows = moved.shape[0] if factor.reads else 1
        return moved.reshape(rows, -1, moved.shape[-1])

    def _scale(self, group: Form) -> float:
        return float(self._activations[group].scale[0])

    def _steps(self, m: Multiplied, factors: Reals) -> Reals:
        """Return the steps of each row's even codes, [F, C], if the rows are multiplied by factors [F, 1]."""
        output = output_group(self._plan, m.operator)
        assert output is not None
        ratio = float(data_params(self._plan, m, self._activations).scale[0]) / self._scale(output)
        weights = extent(self.model.constants[m.tensor], m.axis)
        reach = np.maximum(np.maximum(-weights.low, weights.high), _TINY) / MOST_CODE
        return STRIDE * np.exp2(-grid_shifts(reach * factors * ratio).astype(np.float64)) / ratio

    def _typical(self, tensor: int) -> Reals:
        """Return the mean square of each channel, as its extent suggests."""
        span = self._extents[tensor]
        return np.square(np.maximum(-span.low, span.high) / PEAK)

    def _power(self, m: Multiplied) -> Reals:
        """Return the sum of squares of the inputs of each row; one number if rows read the same."""
        values = self.model.constants[m.tensor]
        typical = self._typical(m.data) if m.data in self._extents else np.ones(1)
        if self.model.graph.op(m.operator).name == "DEPTHWISE_CONV_2D":
            per_channel = np.broadcast_to(typical, values.shape[3]) if typical.size == 1 else typical
            window = values.shape[1] * values.shape[2]
            return np.repeat(window * per_channel, values.shape[3] // per_channel.size)
        return np.full(1, values[0].size * typical.mean())

    def _room(self, tensor: int) -> Reals:
        """Return by how much each channel may grow before it leaves the range of its tensor."""
        params, span = self._activations[self._plan.results[tensor]], self._extents[tensor]
        low, high = (float(params.scale[0]) * (limit - int(params.zero_point[0])) for limit in params.limits)
        return np.minimum(high / np.maximum(span.high, _TINY), low / np.minimum(span.low, -_TINY))
