"""Operators that a finite number of inputs decides: every combination of codes at every kind of place, or all sums.

docs/proof.md states the lemmas "Every code" and "Every sum of codes", whose hypotheses are checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.facts import OPERATORS
from tflq.proof.operator import Bound, compare
from tflq.proof.places import join, kinds, rounds_for, show
from tflq.proof.verdicts import Verdict, Word
from tflq.typing import Array

Ints = NDArray[np.int64]

#: Limits on elements that are computed in all, and on runs of an operator.
_MOST, _MOST_RUNS = 1 << 30, 1 << 16
#: Limit on combinations of codes.
_MOST_CODES = 1 << 16
#: Limit on the values of one input whose results are listed.
_MOST_OF_IMAGE = 256

#: Bits of the types whose codes are enumerated.
_BITS = {"int2": 2, "uint4": 4, "int4": 4, "uint8": 8, "int8": 8, "uint16": 16, "int16": 16}
#: Operators whose outputs each depend only on the elements at their own place.
ELEMENTWISE = frozenset(op for op, fact in OPERATORS.items() if fact.pointwise)
#: Operators whose outputs each depend only on the sum of the elements along axes, if these are codes.
SUMMING = frozenset(op for op, fact in OPERATORS.items() if fact.sums)


@dataclass(frozen=True, slots=True)
class Inputs:
    """A finite set of inputs that decides an operator; `what` names it. If it is too large, `feeds` is None."""

    what: str
    feeds: Iterator[dict[int, Array]] | None


def decide(first: Bound, second: Bound) -> Verdict | None:
    """Run both on every input; return None if the set is not finite.

    Raises:
        TflqError: One of the two refuses some of these values.
    """
    inputs = _inputs(first)
    if inputs is None:
        return None
    names, what = (first.profile, second.profile), inputs.what
    if inputs.feeds is None:
        return Verdict(*names, Word.UNDECIDED, f"other kernels, too many inputs to run {what}")
    for fed in inputs.feeds:
        witness = compare(first, second, fed)
        if witness is not None:
            return Verdict(*names, Word.DIFFERS, f"found among {what}", witness)
    return Verdict(*names, Word.EQUAL, f"run on {what}")


def _inputs(bound: Bound) -> Inputs | None:
    op, fed = bound.step.op, bound.inputs
    if op in SUMMING:
        return _sums(bound) if len(fed) == 1 and _label(bound, fed[0]) in _BITS else None
    domains = {tensor: domain for tensor in fed if (domain := _domain(bound, tensor)) is not None}
    if not fed or len(domains) != len(fed) or op not in ELEMENTWISE or len(bound.step.outputs) != 1:
        return None
    return _codes(bound, domains) if _combinations(domains, fed) <= _MOST_CODES else None


def _domain(bound: Bound, tensor: int) -> Array | None:
    """Return the values that an input can hold; None if there are too many to list."""
    if tensor in bound.held:
        return bound.held[tensor].values
    if _label(bound, tensor) not in _BITS:
        return None
    low, number = _span(bound, tensor)
    return np.arange(low, low + number).astype(bound.dtype(tensor))


def image(bound: Bound) -> Array | None:
    """Return the distinct values that an element-wise operator of one input gives; None if there may be more.

    Raises:
        TflqError: The operator refuses some inputs.
    """
    if len(bound.inputs) != 1 or bound.step.op not in ELEMENTWISE or len(bound.step.outputs) != 1:
        return None
    domain = _domain(bound, bound.inputs[0])
    is_empty = any(0 in bound.shape(tensor) for tensor in (*bound.inputs, *bound.step.outputs))
    if is_empty or domain is None or len(domain) > _MOST_OF_IMAGE:
        return None
    feeds = _codes(bound, {bound.inputs[0]: domain}, at_once=1).feeds
    if feeds is None:
        return None
    (output,) = bound.step.outputs
    return distinct(np.concatenate([distinct(bound.run(fed)[output]) for fed in feeds]))


def distinct(values: Array) -> Array:
    """Return values, each once. Floats are compared by their bits, so that -0 and all NaNs stay."""
    if values.dtype.kind != "f":
        return np.unique(values)
    bits = np.ascontiguousarray(values).reshape(-1).view(f"u{values.dtype.itemsize}")
    return np.unique(bits).view(values.dtype)


def _combinations(domains: Mapping[int, Array], tensors: Sequence[int]) -> int:
    return prod(len(domains[tensor]) for tensor in tensors)


def _codes(bound: Bound, domains: Mapping[int, Array], at_once: int = 256) -> Inputs:
    """Return every combination of codes, at every place if there are at most `at_once`, else at every kind of place.

    A broadcast input has no place of its own: all its elements have one code at a time.
    """
    output = bound.shape(bound.step.outputs[0])
    size, count = prod(output), _combinations(domains, bound.inputs)
    name = f"all {count:,} " + ("codes" if len(bound.inputs) == 1 else "combinations of codes") + _limit(bound)
    dealt = [tensor for tensor in bound.inputs if count > at_once and bound.shape(tensor) == output]
    filled = [tensor for tensor in bound.inputs if tensor not in dealt]
    labels = join([kinds(output), *_varying(bound, output)]) if dealt else np.zeros(size, np.int64)
    numbers = _combinations(domains, dealt), _combinations(domains, filled)
    feeds = (
        {**_split(bound, domains, filled, np.full(1, number)), **_split(bound, domains, dealt, at)}
        for number in range(numbers[1])
        for at in show(labels, numbers[0])
    )
    rounds = rounds_for(labels, numbers[0]) * numbers[1]
    fits = rounds * size <= _MOST and rounds <= _MOST_RUNS
    return Inputs(f"{name} at every {'kind of ' if dealt else ''}place", feeds if fits else None)


def _limit(bound: Bound) -> str:
    """Return the operators whose results limit the inputs, as an addition to a name."""
    makers = dict.fromkeys(maker for held in bound.held.values() for maker in held.makers)
    return f" that {' and '.join(makers)} can give" if makers else ""


def _varying(bound: Bound, output: tuple[int, ...]) -> Iterator[Array]:
    """Yield labels of places by everything except the codes that differs between places: constants and parameters."""
    node = bound.step.node
    for operand in (*node.inputs, *node.outputs):
        if operand is None:
            continue
        if operand.value is not None and operand.value.size > 1:
            yield _spread(operand.value, output)
        quantization = operand.quantization
        if quantization is not None and max(len(quantization.scale), len(quantization.zero_point)) > 1:
            axis, rank = quantization.quantized_dimension, len(operand.shape)
            along = np.arange(operand.shape[axis]) if 0 <= axis < rank else np.arange(int(np.prod(operand.shape)))
            yield _spread(along.reshape([-1] + [1] * (rank - 1 - axis)) if axis < rank else along, output)


def _spread(values: Array, output: tuple[int, ...]) -> Array:
    """Return each place's value; if it is unknown, each place is distinct."""
    try:
        return np.broadcast_to(values, output).reshape(-1)
    except ValueError:
        return np.arange(int(np.prod(output)))


def _span(bound: Bound, tensor: int) -> tuple[int, int]:
    """Return the lowest code of a tensor's type, and the number of codes."""
    label = _label(bound, tensor)
    number = 1 << _BITS[label]
    return (0 if label.startswith("u") else -number // 2), number


def _label(bound: Bound, tensor: int) -> str:
    return bound.plan.operands[tensor].type.label


def _split(bound: Bound, domains: Mapping[int, Array], tensors: Sequence[int], at: Ints) -> dict[int, Array]:
    """Return inputs whose codes, counted in their domains, are the digits of `at`: the first input has the highest.

    `at` has one number for each place, or one for all.
    """
    fed, rest = {}, at
    for tensor in reversed(tensors):
        codes = domains[tensor][rest % len(domains[tensor])]
        shape = bound.shape(tensor)
        fed[tensor] = codes.reshape(shape) if codes.size > 1 else np.full(shape, codes[0])
        rest = rest // len(domains[tensor])
    return fed


def _sums(bound: Bound) -> Inputs | None:
    """Yield inputs with every sum that the axes can give, in every channel's kind of place.

    Kernels of SUM may read signed codes as unsigned ones, so SUM gets every pair of sums.
    """
    (tensor,), node = bound.inputs, bound.step.node
    shape, dtype, axes = bound.shape(tensor), bound.dtype(tensor), node.optional(1)
    if _span(bound, tensor)[1] != 256 or axes is None or axes.value is None or not shape:
        return None
    reduced = sorted({int(a) % len(shape) for a in axes.value.reshape(-1)})
    kept = [a for a in range(len(shape)) if a not in reduced]
    sizes = [shape[a] for a in (*reduced, *kept)]
    terms, places = int(np.prod([shape[a] for a in reduced])), [shape[a] for a in kept]
    both = bound.step.op == "SUM"
    low, count = int(np.iinfo(dtype).min), (terms + 1) * (127 * terms + 1) if both else 255 * terms + 1
    labels = kinds(places, last_apart=True) if kept else np.zeros(1, np.int64)
    rounds = rounds_for(labels, count)
    what = f"all {count:,} sums of {terms:,} codes" + (", signed and unsigned" if both else "")
    if rounds * terms * labels.size > _MOST or rounds > _MOST_RUNS:
        return Inputs(what, None)
    back = np.argsort([*reduced, *kept])

    def feeds() -> Iterator[dict[int, Array]]:
        for at in show(labels, count):
            codes = _with_both_sums(at, terms).astype(np.int8).view(dtype) if both else _with_sum(at, terms) + low
            yield {tensor: np.ascontiguousarray(codes.astype(dtype).reshape(sizes).transpose(back))}

    return Inputs(what, feeds())


def _with_sum(sums: Ints, terms: int) -> Ints:
    """Return `terms` numbers (rows), as equal as possible, with each of the sums."""
    return _shares(sums, np.full_like(sums, terms), np.arange(terms)[:, None])


def _with_both_sums(numbers: Ints, terms: int) -> Ints:
    """Return int8 codes (terms, N): n of them negative, and any sum that codes with n negative ones can have."""
    negative, rest = numbers // (127 * terms + 1), numbers % (127 * terms + 1)
    positive = terms - negative
    upper = np.minimum(rest, 127 * positive)
    rows = np.arange(terms)[:, None]
    below = _shares(rest - upper, negative, rows) - 128
    return np.where(rows < negative, below, _shares(upper, positive, rows - negative))


def _shares(sums: Ints, terms: Ints, rows: Ints) -> Ints:
    """Return each row's share of a sum that `terms` rows share: the first rows get one more than the others."""
    share, more = np.divmod(sums, np.maximum(terms, 1))
    return share + (rows < more)
