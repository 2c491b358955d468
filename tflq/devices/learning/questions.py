"""Questions: models with chosen accumulators, and the subjects of learning.

Questions about a requantizer: models of one weight per channel whose biases are the accumulators.

The input is its zero point, so that a bias is the whole accumulator; or, to overflow it, a product is added. CONV_2D
has a weight scale per channel, FULLY_CONNECTED one for all, so that each of its models asks about one multiplier.

Subjects of learning: an operator with its operand types, and the drafts that ask about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.devices.grids import contracting, directed, elementwise, geometric, recurrent, rows
from tflq.devices.grids import contracting as extremes
from tflq.devices.grids import geometric as layout
from tflq.devices.suites.draft import CODES, KINDS, Draft, T, levels_of
from tflq.engine.numerics.multiplier import OperatorScales
from tflq.typing import Array

Ints = NDArray[np.int64]
Rng = np.random.Generator

#: How the aims of these questions end.
AIM = " accumulators"
#: Channels of a model.
CHANNELS = 256
#: Operators that have a scale per channel.
_PER_CHANNEL = ("CONV_2D", "DEPTHWISE_CONV_2D")
#: Codes that are left out at the ends of a type's range: no rounding and no mantissa moves one that far.
MARGIN = 4
#: Bits of registers after their sign, which questions overflow.
_REGISTERS = (15, 23, 31, 17, 19)
#: Exponents of the real multipliers that are asked about, and the largest accumulator.
EXPONENTS = (-16.0, 1.0)
LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A model's parameters: scales of input and output, their zero points, weight scales and biases by channel.

    `steps` is what the one input code lies above its zero point; weights are `weight`.
    """

    a: np.float32
    y: np.float32
    zero_in: int
    zero_out: int
    b: NDArray[np.float32]  # length C, or 1
    bias: NDArray[np.int32]  # length C
    steps: int = 0
    weight: int = 1

    @property
    def scales(self) -> OperatorScales:
        """The scales as the grammar takes them."""
        return OperatorScales(np.atleast_1d(self.a), self.b, np.atleast_1d(self.y))

    @property
    def total(self) -> Ints:
        """The accumulators by channel, without any limit."""
        return self.bias.astype(np.int64) + self.steps * self.weight

    def draft(self, op: str, kind: str) -> Draft:
        """Return the model with this operator and its input."""
        count = len(self.bias)
        x = T(kind, (1, 1) if op == "FULLY_CONNECTED" else (1, 1, 1, 1), float(self.a), self.zero_in)
        weights = {"FULLY_CONNECTED": (count, 1), "CONV_2D": (count, 1, 1, 1)}.get(op, (1, 1, 1, count))
        axis = 3 if op == "DEPTHWISE_CONV_2D" else 0
        several = len(self.b) > 1
        scale: Any = self.b.tolist() if several else float(self.b[0])
        zeros: Any = [0] * count if several else 0
        w = T("int8" if kind != "uint8" else kind, weights, scale, zeros, axis, self.weight)
        product = (np.float32(self.a) * self.b).astype(np.float32)
        biases = T("int32", (count,), product.tolist() if several else float(product[0]), zeros, 0, self.bias)
        y = T(kind, (1, count) if op == "FULLY_CONNECTED" else (1, 1, 1, count), float(self.y), self.zero_out)
        given = np.full(tuple(x.shape), self.zero_in + self.steps).astype(kind)
        aim = f"{count}{AIM}"
        return Draft(op, aim, (x, w, biases), (y,), ((given,),), _options(op), 5)


def _options(op: str) -> tuple[str, dict[str, Any]]:
    if op == "FULLY_CONNECTED":
        return "FullyConnectedOptions", {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": False}
    options = dict.fromkeys(("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor"), 1)
    whole = {**options, "padding": 1, "fused_activation_function": 0}
    if op == "DEPTHWISE_CONV_2D":
        return "DepthwiseConv2DOptions", {**whole, "depth_multiplier": CHANNELS}
    return "Conv2DOptions", whole


def is_per_channel(op: str, kind: str) -> bool:
    """Return whether one model of the operator and type asks about many multipliers."""
    return op in _PER_CHANNEL and kind == "int8"


def draw(rng: Rng, op: str, kind: str, count: int, reach: int = LARGEST) -> list[Probe]:
    """Return random models, with accumulators up to `reach` next to the edges between codes and on ties."""
    return [_drawn(rng, op, kind, turn, reach) for turn in range(count)]


def lowest_exponent(reach: int) -> float:
    """Return the exponent of the smallest multiplier that is asked about if accumulators go up to `reach`."""
    return max(EXPONENTS[0], 7.0 - math.log2(reach + 1))


def _drawn(rng: Rng, op: str, kind: str, turn: int, reach: int) -> Probe:
    a, y = (np.float32(2.0 ** rng.uniform(-7, -3)) for _ in range(2))
    size = CHANNELS if is_per_channel(op, kind) else 1
    style = turn % 4
    if style == 1:  # powers of two
        a, y = (np.float32(2.0 ** np.round(np.log2(v))) for v in (a, y))
    exponents = rng.uniform(lowest_exponent(reach), EXPONENTS[1], size)
    reals = 2.0**exponents
    if style == 1:
        reals = 2.0 ** np.round(exponents)
    elif style == 2:  # few bits: products that are ties
        reals = rng.choice([3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0], size) * 2.0 ** np.round(exponents - 3)
    elif style == 3:  # one float32 above or below a few bits
        reals = rng.choice([1.0, 3.0, 5.0, 7.0, 255.0], size) * 2.0 ** np.round(exponents - 3)
        reals = reals * (1 + rng.choice([-1, 1, 2, -2], size) * 2.0**-23)
    b = (reals * float(y) / float(a)).astype(np.float32)
    zero_in, zero_out = (int(v) for v in rng.integers(CODES[kind][0], CODES[kind][1] + 1, 2))
    found = Probe(a, y, zero_in, zero_out, b, np.zeros(CHANNELS, np.int32))
    return with_edges(rng, found, kind, reach)


def with_edges(rng: Rng, probe: Probe, kind: str, reach: int = LARGEST) -> Probe:
    """Return the probe with accumulators at random edges between codes, or one to their side."""
    codes = rng.integers(*inner_codes(probe.zero_out, kind), CHANNELS)
    places = codes + 0.5 + rng.choice([0.0, 0.0, -0.5, 0.5], CHANNELS, p=[0.45, 0.45, 0.05, 0.05])
    totals = np.round(places / probe.scales.real) + rng.choice([-1, 0, 0, 0, 1], CHANNELS)
    return with_totals(probe, inner_totals(totals, probe.scales.real, probe.zero_out, kind, reach))


def inner_totals(totals: Array, real: Array, zero_point: int, kind: str, reach: int) -> Array:
    """Return accumulators up to `reach` inside the range of `inner_codes`, or one LSB beyond; others become 0."""
    least, most = inner_codes(zero_point, kind)
    scaled = totals * real
    is_inside = (scaled >= least - 1) & (scaled <= most + 1) & (np.abs(totals) <= reach)
    return np.asarray(np.where(is_inside, totals, 0))


def inner_codes(zero_point: int, kind: str) -> tuple[int, int]:
    """Return the range of codes less their zero point that no treatment of results beyond the type's range changes."""
    low, high = CODES[kind]
    least, most = max(low - zero_point, low) + MARGIN, min(high - zero_point, high) - MARGIN
    return (least, most) if least < most else (0, 1)


def with_totals(probe: Probe, totals: Array) -> Probe:
    """Return the probe with these accumulators, inside 32 bits."""
    bias = np.clip(totals, -LARGEST, LARGEST).astype(np.int32)
    return Probe(probe.a, probe.y, probe.zero_in, probe.zero_out, probe.b, bias, probe.steps, probe.weight)


def wide(rng: Rng, op: str, kind: str, count: int) -> list[Probe]:
    """Return models whose accumulators leave their registers while their codes stay inside the output's range."""
    found = []
    for turn in range(count):
        bits = _REGISTERS[turn % len(_REGISTERS)]
        size = CHANNELS if is_per_channel(op, kind) else 1
        exponents = 6.0 - bits + rng.uniform(-0.5, 0.5, size)
        totals = rng.choice([-1, 1], CHANNELS) * 2.0 ** (bits + rng.uniform(-0.7, 0.9, CHANNELS))
        found.append(_beyond(rng, kind, exponents, totals, turn))
    return found


def extreme(rng: Rng, op: str, kind: str, count: int) -> list[Probe]:
    """Return models whose accumulators, shifted accumulators or results leave 16, 24 or 32 bits."""
    found = []
    for turn in range(count):
        size = CHANNELS if is_per_channel(op, kind) else 1
        exponents = rng.uniform(-16, -6, size) if turn % 2 else rng.uniform(-6, 6, size)
        widths = rng.choice([5, 7, 9, 14, 15, 16, 17, 22, 23, 24, 25, 29, 30, 31], CHANNELS)
        totals = rng.choice([-1, 1], CHANNELS) * np.floor(2.0**widths * rng.uniform(0.5, 1.0, CHANNELS))
        found.append(_beyond(rng, kind, exponents, totals, turn))
    return found


def _beyond(rng: Rng, kind: str, exponents: Array, totals: Array, turn: int) -> Probe:
    """Return a model with these multipliers and accumulators, some of which need a product beside the bias."""
    low, high = CODES[kind]
    a, y = (np.float32(2.0 ** rng.uniform(-7, -3)) for _ in range(2))
    b = (2.0**exponents * float(y) / float(a)).astype(np.float32)
    zero_in = low if turn % 2 else high
    steps = (high - low) * (1 if turn % 2 else -1)
    zero_out = int(rng.integers(low, high + 1)) if turn % 3 else (low + high + 1) // 2
    totals = np.where(rng.random(CHANNELS) < 0.1, np.sign(totals) * LARGEST, totals)
    return with_totals(Probe(a, y, zero_in, zero_out, b, np.zeros(CHANNELS, np.int32), steps, 127), totals)


#: Families of drafts that a device may run.
_FAMILIES = (contracting.drafts, elementwise.drafts, recurrent.summing_drafts, rows.drafts, directed.drafts)
#: Families of drafts that a form must reproduce, too, before it is claimed: geometries and options, extreme sums, tails
#: behind vectors up to wide rows, and ties in every channel.
_COVERING: tuple[Callable[[int, int, str], Iterable[Draft]], ...] = (
    geometric.drafts,
    extremes.extremes_drafts,
    partial(layout.layout_drafts, tails=(*layout.TAILS, 6, 65)),
)
#: Draws of drafts that are kept; the seed of those that cover operators without geometries, and their number.
_KEPT, _COVERED, _ALL = 6, 60, 40


@dataclass(frozen=True, slots=True, order=True)
class LearnSubject:
    """An operator and its operand types, such as "int8 int8 int32 -> int8"."""

    op: str
    types: str

    def __str__(self) -> str:
        return f"{self.op} {self.types}"

    @property
    def kind(self) -> str:
        """The type of the codes that it takes."""
        words = self.types.split()
        return next((word for word in words if word in KINDS), words[0])

    def drafts(self, seed: int, most: int) -> list[Draft]:
        """Return at most `most` drafts, spread over all aims; another seed draws other scales, codes and weights."""
        found = [draft for family in _families_of(self) for draft in _draws(seed, family).get(self, ())]
        return spread(found, most)

    def covering(self, seed: int, turn: int = 0) -> list[Draft]:
        """Return drafts of geometries, extreme sums and layouts, and of all aims where there are no geometries.

        Each has samples near every level of codes, too. Another turn has other geometries and other numbers.
        """
        found = list(_covering(seed, turn, self.op).get(self, ()))
        if not any(draft.aim.startswith(geometric.AIM) for draft in found):
            found += self.drafts(seed + _COVERED + turn, _ALL)
        rng = np.random.default_rng([seed, turn, 31])
        return [replace(d, samples=(*d.samples, *levels_of(rng, d.inputs))) for d in found]


@lru_cache(_KEPT * len(_FAMILIES))
def _draws(seed: int, family: int) -> Mapping[LearnSubject, tuple[Draft, ...]]:
    return _by_subject(_FAMILIES[family](seed))


@lru_cache(_KEPT * len(_FAMILIES))
def _covering(seed: int, turn: int, op: str) -> Mapping[LearnSubject, tuple[Draft, ...]]:
    return _by_subject(draft for drafts in _COVERING for draft in drafts(seed + _COVERED * turn, turn, op))


def _by_subject(drafts: Iterable[Draft]) -> Mapping[LearnSubject, tuple[Draft, ...]]:
    found: dict[LearnSubject, list[Draft]] = {}
    for draft in drafts:
        found.setdefault(LearnSubject(draft.op, draft.types), []).append(draft)
    return {subject: tuple(drafts) for subject, drafts in found.items()}


def _families_of(subject: LearnSubject) -> list[int]:
    return [family for family in range(len(_FAMILIES)) if subject in _draws(0, family)]


def _known() -> list[LearnSubject]:
    """Return every subject, in the order of the families."""
    return list(dict.fromkeys(subject for family in range(len(_FAMILIES)) for subject in _draws(0, family)))


def spread(drafts: Sequence[Draft], most: int) -> list[Draft]:
    """Return at most `most` drafts at equal distances, first those with different aims."""
    by_aim: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_aim.setdefault(draft.aim, []).append(draft)
    ordered = [draft for row in _turns(list(by_aim.values())) for draft in row]
    if len(by_aim) >= most > 0:
        firsts = ordered[: len(by_aim)]
        return [firsts[i * len(firsts) // most] for i in range(most)]
    return ordered[:most]


def _turns(lists: Sequence[Sequence[Draft]]) -> Iterator[list[Draft]]:
    """Yield the first of each list, then the middle ones, and so on."""
    for turn in range(max(map(len, lists), default=0)):
        yield [_mix(drafts)[turn] for drafts in lists if turn < len(drafts)]


def _mix(drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts in an order that jumps through them, so that a short beginning covers their geometries."""
    step = next((n for n in (7, 5, 11, 13, 1) if len(drafts) % n), 1)
    return [drafts[i * step % len(drafts)] for i in range(len(drafts))]


def subjects(kinds: Sequence[str], operators: Sequence[str] = ()) -> list[LearnSubject]:
    """Return the subjects whose codes are of one of the types, all operators or those named."""
    others = {kind for kind in KINDS if kind not in kinds}
    found = []
    for subject in _known():
        words = set(subject.types.split())
        is_meant = words & set(kinds) and not words & others
        if is_meant and (not operators or subject.op in operators):
            found.append(subject)
    return found


def known_operators() -> tuple[str, ...]:
    """Return the operators that can be learned, in alphabetical order."""
    return tuple(sorted({subject.op for subject in _known()}))
