"""Operators that a finite number of inputs decides: every code, every pair of codes, every sum, at every kind of place.

Vector code treats whole blocks of elements in one way and what is left over in another. So each input is shown to an
element in whole blocks and to each of those left over, blocks being at most `BLOCK` long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.proof.operator import Bound, compare
from tflq.proof.verdicts import Verdict, Word

Array = NDArray[Any]
Ints = NDArray[np.int64]

#: The longest blocks of elements that a kernel takes at a time.
BLOCK = 32
#: Elements that may be computed in all.
_MOST = 1 << 30

#: Operators each of whose outputs hangs on the elements at its own place only.
ELEMENTWISE = frozenset(
    (
        "ABS",
        "ADD",
        "CAST",
        "CEIL",
        "COS",
        "DEQUANTIZE",
        "DIV",
        "ELU",
        "EQUAL",
        "EXP",
        "FLOOR",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "GELU",
        "GREATER",
        "GREATER_EQUAL",
        "HARD_SWISH",
        "LEAKY_RELU",
        "LESS",
        "LESS_EQUAL",
        "LOG",
        "LOGISTIC",
        "MAXIMUM",
        "MINIMUM",
        "MUL",
        "NEG",
        "NOT_EQUAL",
        "PRELU",
        "QUANTIZE",
        "RELU",
        "RELU6",
        "RELU_0_TO_1",
        "RELU_N1_TO_1",
        "RSQRT",
        "SIGN",
        "SIN",
        "SQRT",
        "SQUARE",
        "SQUARED_DIFFERENCE",
        "SUB",
        "TANH",
    )
)
#: Operators each of whose outputs hangs on the sum of the elements along axes only, where these are codes.
SUMMING = frozenset(("MEAN", "SUM"))


def decide(first: Bound, second: Bound) -> Verdict | None:
    """Run both on everything; None where that is no finite set, or too large."""
    inputs = _inputs(first)
    if inputs is None:
        return None
    names, (what, feeds) = (first.profile, second.profile), inputs
    for fed in feeds:
        witness = compare(first, second, fed)
        if witness is not None:
            return Verdict(*names, Word.DIFFERS, f"found among {what}", witness)
    return Verdict(*names, Word.EQUAL, f"run on {what}")


def _inputs(bound: Bound) -> tuple[str, Iterator[dict[int, Array]]] | None:
    op, fed = bound.step.op, bound.inputs
    if op in SUMMING:
        return _sums(bound) if len(fed) == 1 else None
    if op not in ELEMENTWISE or not fed or len(bound.step.outputs) != 1:
        return None
    widths = [bound.dtype(tensor) for tensor in fed]
    if any(dtype.kind not in "iu" or dtype.itemsize > 2 for dtype in widths):
        return None
    shapes = {bound.shape(tensor) for tensor in fed}
    count = 1 << 8 * sum(dtype.itemsize for dtype in widths)
    size = max(int(np.prod(shape)) for shape in shapes)
    if count == 256 and count * size <= _MOST:  # every code at every place
        return "all 256 codes at every place", ({fed[0]: _filled(bound, fed[0], code)} for code in range(256))
    if count > 1 << 16 or len(shapes) > 1 or not _is_plain(bound, size):
        return None
    order = _placed(count, size)
    if order is None:
        return None
    what = f"all {count:,} " + ("codes" if len(fed) == 1 else "pairs of codes")
    return what, (_split(bound, at) for at in order)


def _is_plain(bound: Bound, size: int) -> bool:
    """Whether every operand is either as large as the output, or one element: nothing is repeated in runs."""
    operands = [o for o in bound.step.node.inputs if o is not None]
    elements = int(np.prod(bound.shape(bound.step.outputs[0])))
    return elements == size and all(int(np.prod(o.shape)) in (1, size) for o in operands)


def _filled(bound: Bound, tensor: int, code: int) -> Array:
    return np.full(bound.shape(tensor), code, np.uint8).view(bound.dtype(tensor))


def _split(bound: Bound, at: Ints) -> dict[int, Array]:
    """Inputs whose codes, as unsigned, are the digits of `at`: the first input has the highest."""
    fed, rest = {}, at
    for tensor in reversed(bound.inputs):
        dtype = bound.dtype(tensor)
        digits = (rest & ((1 << 8 * dtype.itemsize) - 1)).astype(f"u{dtype.itemsize}").view(dtype)
        fed[tensor] = digits.reshape(bound.shape(tensor))
        rest = rest >> 8 * dtype.itemsize
    return fed


def _placed(count: int, size: int) -> Iterator[Ints] | None:
    """Numbers below `count` spread over `size` elements, until each was in whole blocks and at each place left over."""
    left = size % BLOCK
    body = size - left
    rounds = max(-(-count // body) if body else 0, count if left else 0)
    if not size or rounds * size > _MOST:
        return None
    return _orders(count, body, left, rounds)


def _orders(count: int, body: int, left: int, rounds: int) -> Iterator[Ints]:
    for number in range(rounds):
        blocks = number * body + np.arange(body, dtype=np.int64)
        rest = number + np.arange(left, dtype=np.int64) * 7919
        yield np.concatenate([blocks, rest]) % count


def _sums(bound: Bound) -> tuple[str, Iterator[dict[int, Array]]] | None:
    """Inputs with every sum of codes that the axes can give, in every channel's kind of place."""
    (tensor,), node = bound.inputs, bound.step.node
    shape, dtype, axes = bound.shape(tensor), bound.dtype(tensor), node.optional(1)
    if dtype.kind not in "iu" or dtype.itemsize != 1 or axes is None or axes.value is None or not shape:
        return None
    reduced = sorted({int(a) % len(shape) for a in axes.value.reshape(-1)})
    kept = [a for a in range(len(shape)) if a not in reduced]
    terms, outputs = int(np.prod([shape[a] for a in reduced])), int(np.prod([shape[a] for a in kept]))
    if not terms or not outputs:
        return None
    count = 255 * terms + 1
    order = _placed(count, outputs)
    if order is None or -(-count // max(1, outputs - outputs % BLOCK)) * terms * outputs > _MOST:
        return None
    back = np.argsort([*reduced, *kept])

    def feeds() -> Iterator[dict[int, Array]]:
        low = int(np.iinfo(dtype).min)
        for sums in order:
            share, more = sums // terms, sums % terms
            codes = share + (np.arange(terms)[:, None] < more) + low
            sizes = [shape[a] for a in (*reduced, *kept)]
            yield {tensor: np.ascontiguousarray(codes.astype(dtype).reshape(sizes).transpose(back))}

    return f"all {count:,} sums of {terms} codes", feeds()
