"""Operators that a finite number of inputs decides: every combination of codes at every kind of place, or all sums.

Places of an output, grouped by how a kernel may compute them, and inputs that give every value to every group.

A kernel that processes elements in blocks goes through *runs*: the elements of some of the last dimensions, at most the
whole tensor. In a run it processes whole blocks, then the rest. Two places are of one kind if they have equal positions
in the runs of every length, for blocks of every size.

docs/proof.md states the lemmas "Every code" and "Every sum of codes", whose hypotheses are checked here.

Inputs that may distinguish two profiles if nothing decides: random, directed, extreme.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.facts import OPERATORS
from tflq.errors import TflqError
from tflq.proof.operator import BoundOperator, ProfileVerdict, Witness, Word, compare
from tflq.typing import Array

#: Sizes of the blocks in which kernels process elements.
BLOCKS = (4, 8, 16, 32)


def kinds(shape: Sequence[int], *, last_apart: bool = False) -> Ints:
    """Return the number of its kind for each place of an output of that shape, flat.

    `last_apart` is set if a loop may process a run's last block separately even if it is whole.
    """
    size = int(np.prod(shape))
    at, found = np.arange(size, dtype=np.int64), np.zeros(size, np.int64)
    for run in sorted(set(accumulate(reversed(shape), mul))):
        place = at % run
        for block in BLOCKS:
            found = 2 * found + (place >= run - run % block)
            if last_apart:
                found = 2 * found + (place >= run - 1 - (run - 1) % block)
    return found


def join(labels: Sequence[Array]) -> Ints:
    """Return one number per place that differs if any of the labels differs."""
    joint: Ints = np.zeros(len(labels[0]), np.int64)
    for label in labels:
        numbers = np.unique(label, return_inverse=True)[1].reshape(-1)
        joint = np.unique(joint * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True)[1].reshape(-1)
    return joint


def rounds_for(labels: Ints, count: int) -> int:
    """Return how often all places must be filled until every label has had `count` values."""
    sizes = np.bincount(labels)
    return -(-count // int(sizes[sizes > 0].min()))


def show(labels: Ints, count: int) -> Iterator[Ints]:
    """Yield numbers below `count`, one per place, until each label has had each number at one of its places."""
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    rank = np.empty(labels.size, np.int64)
    rank[order] = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    step = sizes[labels]
    for number in range(rounds_for(labels, count)):
        yield (rank + number * step) % count


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
class CodeInputs:
    """A finite set of inputs that decides an operator; `what` names it. If it is too large, `feeds` is None."""

    what: str
    feeds: Iterator[dict[int, Array]] | None


def decide(first: BoundOperator, second: BoundOperator) -> ProfileVerdict | None:
    """Run both on every input; return None if the set is not finite.

    Raises:
        TflqError: One of the two refuses some of these values.
    """
    inputs = _inputs(first)
    if inputs is None:
        return None
    names, what = (first.profile, second.profile), inputs.what
    if inputs.feeds is None:
        return ProfileVerdict(*names, Word.UNDECIDED, f"other kernels, too many inputs to run {what}")
    for fed in inputs.feeds:
        witness = compare(first, second, fed)
        if witness is not None:
            return ProfileVerdict(*names, Word.DIFFERS, f"found among {what}", witness)
    return ProfileVerdict(*names, Word.EQUAL, f"run on {what}")


def _inputs(bound: BoundOperator) -> CodeInputs | None:
    op, fed = bound.step.op, bound.inputs
    if op in SUMMING:
        return _sums(bound) if len(fed) == 1 and _label(bound, fed[0]) in _BITS else None
    domains = {tensor: domain for tensor in fed if (domain := _domain(bound, tensor)) is not None}
    if not fed or len(domains) != len(fed) or op not in ELEMENTWISE or len(bound.step.outputs) != 1:
        return None
    return _codes(bound, domains) if _combinations(domains, fed) <= _MOST_CODES else None


def _domain(bound: BoundOperator, tensor: int) -> Array | None:
    """Return the values that an input can hold; None if there are too many to list."""
    if tensor in bound.held:
        return bound.held[tensor].values
    if _label(bound, tensor) not in _BITS:
        return None
    low, number = _span(bound, tensor)
    return np.arange(low, low + number).astype(bound.dtype(tensor))


def image(bound: BoundOperator) -> Array | None:
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


def _codes(bound: BoundOperator, domains: Mapping[int, Array], at_once: int = 256) -> CodeInputs:
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
    return CodeInputs(f"{name} at every {'kind of ' if dealt else ''}place", feeds if fits else None)


def _limit(bound: BoundOperator) -> str:
    """Return the operators whose results limit the inputs, as an addition to a name."""
    makers = dict.fromkeys(maker for held in bound.held.values() for maker in held.makers)
    return f" that {' and '.join(makers)} can give" if makers else ""


def _varying(bound: BoundOperator, output: tuple[int, ...]) -> Iterator[Array]:
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


def _span(bound: BoundOperator, tensor: int) -> tuple[int, int]:
    """Return the lowest code of a tensor's type, and the number of codes."""
    label = _label(bound, tensor)
    number = 1 << _BITS[label]
    return (0 if label.startswith("u") else -number // 2), number


def _label(bound: BoundOperator, tensor: int) -> str:
    return bound.plan.operands[tensor].type.label


def _split(bound: BoundOperator, domains: Mapping[int, Array], tensors: Sequence[int], at: Ints) -> dict[int, Array]:
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


def _sums(bound: BoundOperator) -> CodeInputs | None:
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
        return CodeInputs(what, None)
    back = np.argsort([*reduced, *kept])

    def feeds() -> Iterator[dict[int, Array]]:
        for at in show(labels, count):
            codes = _with_both_sums(at, terms).astype(np.int8).view(dtype) if both else _with_sum(at, terms) + low
            yield {tensor: np.ascontiguousarray(codes.astype(dtype).reshape(sizes).transpose(back))}

    return CodeInputs(what, feeds())


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


#: Limits on fed elements in all, and on inputs.
_MOST_ELEMENTS, _MOST_ROUNDS = 1 << 22, 1000
_KINDS = 5


def search(first: BoundOperator, second: BoundOperator, seed: int = 0, rounds: int = _MOST_ROUNDS) -> Witness | None:
    """Return the first of several inputs on which the two differ; inputs that one of them refuses are skipped."""
    for inputs in trials(first, seed, rounds):
        try:
            witness = compare(first, second, inputs)
        except TflqError:
            continue
        if witness is not None:
            return witness
    return None


def trials(bound: BoundOperator, seed: int = 0, rounds: int = _MOST_ROUNDS) -> Iterator[dict[int, Array]]:
    """Yield inputs of an operator: uniform values, extremes, near the zero point, runs, one different element."""
    rng = np.random.default_rng(seed)
    size = max(1, sum(int(np.prod(bound.shape(t))) for t in bound.inputs))
    for number in range(min(rounds, max(4, _MOST_ELEMENTS // size))):
        yield {t: _nearest(bound, t, _values(rng, bound, t, number % _KINDS)) for t in bound.inputs}


def _nearest(bound: BoundOperator, tensor: int, values: Array) -> Array:
    """Return each value, or the next one that the tensor can hold."""
    if tensor not in bound.held:
        return values
    known = np.sort(bound.held[tensor].values)
    return known[np.minimum(np.searchsorted(known, values), len(known) - 1)]


def _values(rng: np.random.Generator, bound: BoundOperator, tensor: int, kind: int) -> Array:
    shape, dtype = bound.shape(tensor), bound.dtype(tensor)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), np.bool_)
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, (1, 8, 0.05, 100, 3)[kind], shape), dtype)
    if dtype.kind not in "iu":
        return np.zeros(shape, dtype)
    info = np.iinfo(dtype)
    low, high = (int(info.min), int(info.max)) if dtype.itemsize < 4 else (-8, 8)
    zero = min(max(int(bound.plan.operands[tensor].zero_point), low), high)
    if kind == 0:
        return np.asarray(rng.integers(low, high + 1, shape), dtype)
    if kind == 1:
        return np.asarray(rng.choice(np.array([low, zero, high]), shape), dtype)
    if kind == 2:
        return np.clip(zero + rng.integers(-12, 13, shape), low, high).astype(dtype)
    if kind == 3:
        return np.full(shape, rng.integers(low, high + 1)).astype(dtype)
    return np.asarray(np.clip(rng.integers(low, high + 1) + rng.integers(-3, 4, shape), low, high), dtype)
