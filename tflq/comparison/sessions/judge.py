"""Compare one step of two sessions: outputs by name, results of operators, logits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tflq.comparison.inspection.difference import Difference, difference, unequal
from tflq.comparison.inspection.fidelity import decibels, divergences, log_shares
from tflq.comparison.sessions.bands import bands_of
from tflq.comparison.sessions.engines import Observed
from tflq.comparison.sessions.plan import Plan
from tflq.comparison.sessions.results import Band, ComparedStep, FirstDifference, Logits
from tflq.model.ir import GraphView, Model, TensorSpec, TensorType, view
from tflq.model.ir.signatures import choose_roots, signature_of
from tflq.typing import Array


class Judge:
    """One signature of two models, whose tensors are matched by index if they are the same model, else by name."""

    def __init__(self, first: Model, second: Model, plan: Plan, signature: str | None) -> None:
        self._plan, self._signature = plan, signature
        self._graph, self._outputs = _graph(first, signature)
        self._other, self._others = _graph(second, signature)
        self._specs = {name: self._graph.tensors[t] for name, t in self._outputs.items()}
        self._other_specs = {name: self._other.tensors[t] for name, t in self._others.items()}
        self._bands = bands_of(first, signature, plan.carried)
        self._pairs = list(_pairs(self._graph, self._other, same=first is second))

    def compared(self, number: int, one: Observed, two: Observed) -> ComparedStep:
        """Compare a step of both sides."""
        outputs, noise = dict[str, Difference](), dict[str, float]()
        for name in (name for name in one.outputs if name in two.outputs):
            first, second = one.outputs[name], two.outputs[name]
            outputs[name] = difference(first, second)
            noise[name] = _noise(first, self._specs.get(name), second, self._other_specs.get(name))
        return ComparedStep(
            number=number,
            signature=self._signature or "",
            position=self._plan.positions[number],
            tokens=self._tokens(one),
            outputs=outputs,
            noise=noise,
            logits=self._logits(number, one, two),
            bands=tuple(self._compared_bands(one, two)),
            lacking=tuple(sorted(set(one.outputs) ^ set(two.outputs))),
        )

    def first(self, step: ComparedStep, one: Observed, two: Observed) -> FirstDifference:
        """Return where a step first differs."""
        operator, band = None, ""
        for index, position, other in self._pairs:
            if _differs(one.tensors.get(index), two.tensors.get(other)):
                operator = position, self._graph.op(position).name
                band = self._bands.names[self._bands.of_operator[position]]
                break
        output = next((name for name, found in step.outputs.items() if not found.same), "")
        found = step.outputs[output].first if output else None
        return FirstDifference(
            step.number, step.signature, step.position, operator, band, output, found.index if found else ()
        )

    def _tokens(self, one: Observed) -> tuple[int, ...]:
        roles = self._plan.roles(self._signature)
        return () if roles is None else tuple(map(int, one.inputs[roles.tokens].ravel()))

    def _logits(self, number: int, one: Observed, two: Observed) -> Logits | None:
        roles = self._plan.roles(self._signature)
        name = None if roles is None else roles.logits
        if name is None or name not in one.outputs or name not in two.outputs:
            return None
        first = _real(one.outputs[name], self._specs[name])
        second = _real(two.outputs[name], self._other_specs[name])
        first, second = first.reshape(-1, first.shape[-1]), second.reshape(-1, second.shape[-1])
        if first.shape != second.shape:
            return None
        known = self._plan.following(number)
        losses = None
        if known is not None:
            losses = float(-log_shares(first[-1])[known]), float(-log_shares(second[-1])[known])
        return Logits(
            noise=decibels(first, second),
            divergence=float(divergences(first[-1], second[-1])),
            choices=(int(first[-1].argmax()), int(second[-1].argmax())),
            losses=losses,
        )

    def _compared_bands(self, one: Observed, two: Observed) -> Iterator[Band]:
        if not one.tensors or not two.tensors:
            return
        counts = [[0, 0, math.inf] for _ in self._bands.names]
        for index, position, other in self._pairs:
            first, second = one.tensors.get(index), two.tensors.get(other)
            if first is None or second is None or first.shape != second.shape:
                continue
            row = counts[self._bands.of_operator[position]]
            row[0] += 1
            if _differs(first, second):
                row[1] += 1
                noise = _noise(first, self._graph.tensors[index], second, self._other.tensors[other])
                row[2] = min(row[2], noise)
        for name, (compared, differing, noise) in zip(self._bands.names, counts, strict=True):
            yield Band(name, int(compared), int(differing), noise)


def _graph(model: Model, signature: str | None) -> tuple[GraphView, Mapping[str, int]]:
    """Return a signature's graph, and its outputs by name."""
    (root, *_) = choose_roots(model, signature)
    graph, named = view(model, root.subgraph), signature_of(model, root)
    outputs = {str(k): t for k, t in enumerate(graph.outputs)} if named is None else dict(named.outputs)
    return graph, outputs


def _pairs(first: GraphView, second: GraphView, *, same: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the results of operators that both graphs have: tensor, operator, and tensor of the second graph."""
    names = {spec.name or "": k for k, spec in enumerate(second.tensors) if spec.name}
    for operator in first.ops:
        for tensor in operator.writes:
            other = tensor if same else names.get(first.tensors[tensor].name or "")
            if other is not None:
                yield tensor, operator.index, other


def _differs(first: Array | None, second: Array | None) -> bool:
    if first is None or second is None or first.shape != second.shape:
        return False
    return first.dtype != second.dtype or bool(unequal(first, second).any())


def _noise(first: Array, spec: TensorSpec | None, second: Array, other: TensorSpec | None) -> float:
    """Return signal to noise in dB of real values; -inf if shapes differ or there are no numbers."""
    if first.shape != second.shape or "O" in (first.dtype.kind, second.dtype.kind):
        return -math.inf
    return decibels(_real(first, spec), _real(second, other))


def _real(value: Array, spec: TensorSpec | None) -> Array:
    """Return the real values of codes that have one scale; other values are returned unchanged."""
    quantization = None if spec is None else spec.quantization
    if quantization is None or value.dtype.kind not in "iu" or np.size(quantization.scale) != 1:
        return value
    if spec is not None and spec.type not in (TensorType.INT8, TensorType.UINT8, TensorType.INT16):
        return value
    zero = np.float64(quantization.zero_point[0]) if np.size(quantization.zero_point) else 0.0
    real: Array = np.float64(quantization.scale[0]) * (value.astype(np.float64) - zero)
    return real
