"""Channels that can be scaled without changing the model, and their equalization.

Tensors of a float model whose channels can be scaled without changing the model's function.

Dividing channel c of a tensor by s[c] > 0 changes nothing if the producer divides and the readers multiply. Weights and
other constants can do so; operators that commute with positive factors pass the factor on. Tensors that must have the
same scaling form a group. If nothing can absorb the factor of a member, its group is frozen at 1.

Equalize channels of activations; weights absorb the factors, so the float function stays the same.

With one scale per tensor, a channel with small values gets few codes. Channel c is divided by

    s[c] = a[c] ** strength / w[c] ** (1 - strength), rescaled to a geometric mean of 1

where a[c] is its largest magnitude over the calibration data and w[c] the largest weight that any consumer applies to
it, each relative to its row's largest (rows have scales of their own). If no consumer sums over channels (depthwise
only), dividing by a[c] itself loses nothing.

Sources: Nagel et al. 2019, "Data-free quantization through weight equalization and bias correction" (strength 1/2, with
ranges of the producer's weights for a); Xiao et al. 2023, "SmoothQuant" (folding into next weights and norm layers).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import OperatorView, with_graph
from tflq.quantization.scheme.float_graph import FloatModel, with_constants
from tflq.typing import Array, Reals

#: FusedActivation values that commute with positive factors: NONE, RELU.
HOMOGENEOUS = (0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Axis `axis` of a constant is multiplied by s[channels] ** `sign` of a tensor's group.

    `channels` gives the group's channel for every index along the axis. `reads` is set if the constant weights the
    tensor in a sum over channels, as dense weights do.
    """

    constant: int
    tensor: int
    axis: int
    channels: NDArray[np.intp]
    sign: int
    reads: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScaledChannels:
    """Tensors whose channels (their last dimension) have the same scaling, and the constants that absorb it."""

    tensors: tuple[int, ...]
    size: int
    factors: tuple[Factor, ...]


def channel_groups(model: FloatModel) -> tuple[ScaledChannels, ...]:
    """Return all groups without prescribed ranges or codes that can be scaled, in order of their first tensor."""
    finding = _Finding(model)
    for operator in model.graph.ops:
        _HANDLERS.get(operator.name, _Finding.freeze)(finding, operator)
    prescribed = {*model.ranges, *model.params}
    finding.freeze_tensors((*model.graph.inputs, *model.graph.outputs, *prescribed))
    return tuple(group for group in finding.groups() if prescribed.isdisjoint(f.constant for f in group.factors))


class _Finding:
    """The groups found so far: a forest of tensors, `frozen` roots, and factors by tensor."""

    def __init__(self, model: FloatModel) -> None:
        self.model = model
        self._parent: dict[int, int] = {}
        self._frozen: set[int] = set()
        self._factors: list[Factor] = []
        self._products: list[tuple[int, int, int]] = []  # both factors and the product of MULs
        self._uses = model.graph.uses()

    def root(self, tensor: int) -> int:
        """Return the tensor that represents its group."""
        while self._parent.get(tensor, tensor) != tensor:
            tensor = self._parent[tensor]
        return tensor

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Return the shape that the file declares."""
        return self.model.graph.tensors[tensor].shape

    def channels(self, tensor: int) -> int:
        """Return the length of the last dimension; 0 if there is none."""
        return (0, *self.shape(tensor))[-1]

    def tie(self, *tensors: int) -> None:
        """Give these tensors the same scaling; tensors with other numbers of channels are frozen."""
        if len({self.channels(t) for t in tensors}) > 1:
            self.freeze_tensors(tensors)
            return
        first, *others = (self.root(t) for t in tensors)
        for other in others:
            if other != first:
                self._parent[other] = first
                if other in self._frozen:
                    self._frozen.add(first)

    def freeze_tensors(self, tensors: tuple[int, ...]) -> None:
        """Freeze tensors whose scale nothing can absorb."""
        self._frozen.update(self.root(t) for t in tensors if t >= 0)

    def freeze(self, operator: OperatorView) -> None:
        """Freeze the tensors of an operator without a rule."""
        self.freeze_tensors((*operator.inputs, *operator.outputs))

    def own_constant(self, tensor: int) -> bool:
        """Return whether it is a float constant that nothing else reads."""
        return tensor in self.model.constants and self.model.is_float(tensor) and self._uses[tensor] == 1

    def absorb(self, factor: Factor) -> None:
        """Note a constant that can take a group's scale."""
        self._factors.append(factor)

    def product(self, left: int, right: int, output: int) -> None:
        """Note s[made] = s[left] * s[right], which is settled once the frozen tensors are known."""
        self._products.append((left, right, output))

    def groups(self) -> tuple[ScaledChannels, ...]:
        """Return the groups that are not frozen."""
        self._settle_products()
        members: dict[int, list[int]] = {}
        output = [t for o in self.model.graph.ops for t in o.outputs if self.model.is_float(t)]
        for tensor in dict.fromkeys(output):
            members.setdefault(self.root(tensor), []).append(tensor)
        return tuple(
            ScaledChannels(tuple(tensors), self.channels(root), self._factors_of(root))
            for root, tensors in members.items()
            if root not in self._frozen and self._factors_of(root)
        )

    def _factors_of(self, root: int) -> tuple[Factor, ...]:
        return tuple(f for f in self._factors if self.root(f.tensor) == root)

    def _settle_products(self) -> None:
        """Tie the product to the other factor if one is frozen; if neither is, freeze one of them."""
        while self._products:
            for position, (left, right, output) in enumerate(self._products):
                for one, other in ((left, right), (right, left)):
                    if self.root(one) in self._frozen:
                        self.tie(other, output)
                        del self._products[position]
                        break
                else:
                    continue
                break
            else:
                self.freeze_tensors(self._products[0][:1])


def _option(operator: OperatorView, name: str, default: int = 0) -> int:
    value = None if operator.options is None else operator.options.get(name, default)
    return default if value is None else int(value)


def _scaled_output(finding: _Finding, operator: OperatorView, weights: int, bias: int, axis: int) -> None:
    """Let the rows of `weights` and the bias absorb the output's scale, or freeze the output."""
    (output,) = operator.outputs
    owned = [t for t in (weights, bias) if t >= 0]
    fits = all(finding.own_constant(t) for t in owned) and finding.shape(weights)[axis] == finding.channels(output)
    if not fits or _option(operator, "fused_activation_function") not in HOMOGENEOUS:
        finding.freeze_tensors(operator.outputs)
        return
    every = np.arange(finding.channels(output))
    finding.absorb(Factor(weights, output, axis, every, -1))
    if bias >= 0:
        finding.absorb(Factor(bias, output, 0, every, -1))


def _operands(operator: OperatorView) -> tuple[int, int, int]:
    data, weights, *bias = operator.inputs
    return data, weights, (*bias, -1)[0]


def _conv(finding: _Finding, operator: OperatorView) -> None:
    data, weights, bias = _operands(operator)
    _scaled_output(finding, operator, weights, bias, 0)
    if finding.own_constant(weights) and finding.shape(weights)[3] == finding.channels(data):
        finding.absorb(Factor(weights, data, 3, np.arange(finding.channels(data)), 1, reads=True))
    else:  # groups, or weights that others read too
        finding.freeze_tensors((data,))


def _depthwise(finding: _Finding, operator: OperatorView) -> None:
    data, weights, bias = _operands(operator)
    _scaled_output(finding, operator, weights, bias, 3)
    output, channels = finding.shape(weights)[-1], finding.channels(data)
    if finding.own_constant(weights) and channels and output % channels == 0:
        finding.absorb(Factor(weights, data, 3, np.arange(output) // (output // channels), 1))
    else:
        finding.freeze_tensors((data,))


def _fully_connected(finding: _Finding, operator: OperatorView) -> None:
    data, weights, bias = _operands(operator)
    _scaled_output(finding, operator, weights, bias, 0)
    if finding.own_constant(weights) and finding.shape(weights)[1] == finding.channels(data):
        finding.absorb(Factor(weights, data, 1, np.arange(finding.channels(data)), 1, reads=True))
    else:
        finding.freeze_tensors((data,))


def _transpose_conv(finding: _Finding, operator: OperatorView) -> None:
    _, weights, data, *bias = operator.inputs
    _scaled_output(finding, operator, weights, (*bias, -1)[0], 0)
    if finding.own_constant(weights):
        finding.absorb(Factor(weights, data, 3, np.arange(finding.channels(data)), 1, reads=True))
    else:
        finding.freeze_tensors((data,))


def _pass(finding: _Finding, operator: OperatorView) -> None:
    """Pass the channels of the one input on; RESHAPE must keep the length of the last dimension."""
    finding.tie(operator.inputs[0], operator.outputs[0])


def _pool(finding: _Finding, operator: OperatorView) -> None:
    if _option(operator, "fused_activation_function") in HOMOGENEOUS:
        _pass(finding, operator)
    else:
        finding.freeze(operator)


def _mean(finding: _Finding, operator: OperatorView) -> None:
    data, axes = operator.inputs
    rank = len(finding.shape(data))
    known = finding.model.constants.get(axes)
    if known is None or any(int(a) % rank == rank - 1 for a in np.atleast_1d(known)):
        finding.freeze(operator)
    else:
        _pass(finding, operator)


def _pad(finding: _Finding, operator: OperatorView) -> None:
    amounts = finding.model.constants.get(operator.inputs[1])
    if amounts is None or np.any(amounts[-1]) or len(operator.inputs) > 2:
        finding.freeze(operator)
    else:
        _pass(finding, operator)


def _constant_row(finding: _Finding, operator: OperatorView) -> tuple[int, int] | None:
    """Return the activation and the constant with one value per channel, if an operator has one of each."""
    left, right = operator.inputs
    for data, constant in ((left, right), (right, left)):
        row = finding.own_constant(constant) and data not in finding.model.constants
        whole = finding.shape(constant)[-1:] == finding.shape(operator.outputs[0])[-1:] != (1,)
        if row and whole:
            return data, constant
    return None


def _add(finding: _Finding, operator: OperatorView) -> None:
    if _option(operator, "fused_activation_function") not in HOMOGENEOUS:
        finding.freeze(operator)
    elif (operands := _constant_row(finding, operator)) is not None:
        data, constant = operands
        (output,) = operator.outputs
        finding.tie(data, output)
        axis = len(finding.shape(constant)) - 1
        finding.absorb(Factor(constant, output, axis, np.arange(finding.channels(constant)), -1))
    elif any(t in finding.model.constants for t in operator.inputs):
        finding.freeze(operator)
    else:
        finding.tie(*operator.inputs, *operator.outputs)


def _mul(finding: _Finding, operator: OperatorView) -> None:
    if _option(operator, "fused_activation_function") not in HOMOGENEOUS:
        finding.freeze(operator)
    elif (operands := _constant_row(finding, operator)) is not None:
        data, constant = operands
        (output,) = operator.outputs
        every, axis = np.arange(finding.channels(constant)), len(finding.shape(constant)) - 1
        finding.absorb(Factor(constant, output, axis, every, -1))
        if finding.channels(data) == finding.channels(constant):
            finding.absorb(Factor(constant, data, axis, every, 1))
        else:
            finding.freeze_tensors((data,))
    elif any(t in finding.model.constants for t in operator.inputs):
        left, right = operator.inputs
        finding.tie(right if left in finding.model.constants else left, *operator.outputs)
    else:
        left, right = operator.inputs
        finding.product(left, right, operator.outputs[0])


_HANDLERS: Mapping[str, Callable[[_Finding, OperatorView], None]] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "TRANSPOSE_CONV": _transpose_conv,
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "MEAN": _mean,
    "SUM": _mean,
    "PAD": _pad,
    "ADD": _add,
    "SUB": _add,
    "MUL": _mul,
    **dict.fromkeys(("RELU", "LEAKY_RELU", "PRELU", "ABS", "NEG", "RESHAPE"), _pass),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), _pass),
}


#: Channels are scaled by at most this factor either way.
LIMIT = 2.0**12
#: The suffix of the names of divided tensors.
EQUALIZED = "/equalized"


def equalized(model: FloatModel, magnitudes: Mapping[int, Reals], strength: float = 0.5) -> FloatModel:
    """Return the model with the channels of all free groups equalized.

    `magnitudes` are the largest |values| of each channel of activations, by tensor; `strength` lies in 0 to 1.
    """
    return scaled(model, [(group, factors(model, group, magnitudes, strength)) for group in channel_groups(model)])


def factors(model: FloatModel, group: ScaledChannels, magnitudes: Mapping[int, Reals], strength: float) -> Reals:
    """Return s[c] of one group; powers of two, which add no rounding to the float function."""
    known = [magnitudes[t] for t in group.tensors if t in magnitudes]
    if not known:
        return np.ones(group.size)
    activations = np.max(known, axis=0)
    weights = _column_magnitudes(model, group)
    if weights is None:
        raw = _logs(activations)
    else:
        raw = strength * _logs(activations) - (1 - strength) * _logs(weights)
    powers: Reals = np.exp2(np.clip(np.rint(raw), -np.log2(LIMIT), np.log2(LIMIT)))
    return powers


def _logs(values: Reals) -> Reals:
    """Return log2 less its mean; channels that are all zero get the mean."""
    logs = np.log2(values, where=values > 0, out=np.full(values.shape, np.nan))
    return np.nan_to_num(logs - np.nanmean(logs)) if np.isfinite(logs).any() else np.zeros(values.shape)


def _column_magnitudes(model: FloatModel, group: ScaledChannels) -> Reals | None:
    """Return the largest weight on each channel relative to its row's largest; None if nothing sums over channels."""
    columns = []
    for factor in group.factors:
        if factor.reads:
            rows = np.abs(np.moveaxis(model.constants[factor.constant].astype(np.float64), factor.axis, -1))
            largest = rows.max(axis=tuple(range(1, rows.ndim)), keepdims=True)
            columns.append((rows / np.where(largest > 0, largest, 1)).reshape(-1, rows.shape[-1]).max(axis=0))
    return np.max(columns, axis=0) if columns else None


def scaled(model: FloatModel, groups: list[tuple[ScaledChannels, Reals]]) -> FloatModel:
    """Return the model with each group's tensors divided by its factors, and renamed."""
    changed: dict[int, Array] = {}
    for group, s in groups:
        for factor in group.factors:
            values = changed.get(factor.constant, model.constants[factor.constant])
            shape = [-1 if d == factor.axis else 1 for d in range(values.ndim)]
            by = s[factor.channels] ** factor.sign
            changed[factor.constant] = (values.astype(np.float64) * by.reshape(shape)).astype(np.float32)
    tensors = {t for group, s in groups if np.any(s != 1) for t in group.tensors}
    return _name(with_constants(model, changed), tensors)


def _name(model: FloatModel, tensors: Collection[int]) -> FloatModel:
    """Return the model with new names for those tensors, which mark that their values changed."""
    specs = tuple(
        replace(spec, name=spec.name + EQUALIZED) if t in tensors and spec.name else spec
        for t, spec in enumerate(model.graph.tensors)
    )
    graph = replace(model.graph.record, tensors=specs)
    return replace(model, model=with_graph(model.model, graph))
