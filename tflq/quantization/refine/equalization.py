"""Equalize channels of activations; weights absorb the factors, so the float function stays the same.

With one scale per tensor, a channel with small values gets few codes. Channel c is divided by

    s[c] = a[c] ** strength / w[c] ** (1 - strength), rescaled to a geometric mean of 1

where a[c] is its largest magnitude over the calibration data and w[c] the largest weight that any consumer applies to
it, each relative to its row's largest (rows have scales of their own). If no consumer sums over channels (depthwise
only), dividing by a[c] itself loses nothing.

Sources: Nagel et al. 2019, "Data-free quantization through weight equalization and bias correction" (strength 1/2, with
ranges of the producer's weights for a); Xiao et al. 2023, "SmoothQuant" (folding into next weights and norm layers).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import with_graph
from tflq.quantization.refine.groups import Group, channel_groups
from tflq.quantization.scheme.float_graph import FloatModel, with_constants
from tflq.typing import Array

Reals = NDArray[np.float64]
#: Channels are scaled by at most this factor either way.
LIMIT = 2.0**12
#: The suffix of the names of divided tensors.
EQUALIZED = "/equalized"


def equalized(model: FloatModel, magnitudes: Mapping[int, Reals], strength: float = 0.5) -> FloatModel:
    """Return the model with the channels of all free groups equalized.

    `magnitudes` are the largest |values| of each channel of activations, by tensor; `strength` lies in 0 to 1.
    """
    return scaled(model, [(group, factors(model, group, magnitudes, strength)) for group in channel_groups(model)])


def factors(model: FloatModel, group: Group, magnitudes: Mapping[int, Reals], strength: float) -> Reals:
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


def _column_magnitudes(model: FloatModel, group: Group) -> Reals | None:
    """Return the largest weight on each channel relative to its row's largest; None if nothing sums over channels."""
    columns = []
    for factor in group.factors:
        if factor.reads:
            rows = np.abs(np.moveaxis(model.constants[factor.constant].astype(np.float64), factor.axis, -1))
            largest = rows.max(axis=tuple(range(1, rows.ndim)), keepdims=True)
            columns.append((rows / np.where(largest > 0, largest, 1)).reshape(-1, rows.shape[-1]).max(axis=0))
    return np.max(columns, axis=0) if columns else None


def scaled(model: FloatModel, groups: list[tuple[Group, Reals]]) -> FloatModel:
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
