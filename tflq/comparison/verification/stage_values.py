"""Every stage of one operator's requantization: accumulators, products after the first rounding, scaled values, codes.

Hardware that scales in fixed point is compared stage by stage. Codes are those of a recording; a profile's stages are
written only if they end in the recorded codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.api.many import part_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.requantizer import NAMED, Requantizer, limit
from tflq.engine.numerics.rounding import OF_HARDWARE
from tflq.engine.numerics.stages import Ints32, OutputStage, Reals, StageOf
from tflq.engine.profiles import Profile
from tflq.engine.profiles.building import names
from tflq.errors import UnsupportedError
from tflq.model.ir import Model, view
from tflq.typing import Array

Ints = NDArray[np.int64]
#: Bits of a mantissa that can be exported.
_BITS = 31
#: Operators whose accumulators are sums of products with constant weights.
OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


@dataclass(frozen=True, slots=True, eq=False)
class StageValues:
    """One operator's stages, an element each, with channels innermost.

    `mantissa` (Q31) and `shift` (left if above 0) are per channel. `accumulator` holds the bias. `shifted` is it after
    the left shift; `high` the product after the first rounding, empty if there is none; `scaled` after the right shift.
    `codes` have zero point and clamp. `recorded` is true if a runtime's recording gave the codes.
    """

    op: str
    stage: str
    mantissa: Ints
    shift: Ints
    accumulator: Ints
    shifted: Ints
    high: Ints
    scaled: Ints
    codes: Ints
    zero_point: int
    clamp: Clamp
    recorded: bool

    @property
    def channel(self) -> Ints:
        """The channel of each element."""
        return np.arange(self.accumulator.size) % len(self.mantissa)

    @property
    def coverage(self) -> Mapping[str, int]:
        """Elements that show each case of rounding, by name; a case with 0 elements is not tested by them."""
        shift, total = self.shift[self.channel], self.shifted
        right = np.maximum(-shift, 0)
        product = total * self.mantissa[self.channel]
        low, half = product & np.int64(2**31 - 1), np.int64(1) << 30
        first = self.high if self.high.size else product >> 31
        rest = first & ((np.int64(1) << right) - 1)
        is_tie = (right > 0) & (rest == np.int64(1) << np.maximum(right - 1, 0))
        inner = self.scaled + self.zero_point
        cases = {
            "accumulator 0": self.accumulator == 0,
            "accumulator below 0": self.accumulator < 0,
            "accumulator beyond 16 bits": np.abs(self.accumulator) >= 2**15,
            "accumulator beyond 24 bits": np.abs(self.accumulator) >= 2**23,
            "left shift": shift > 0,
            "left shift that leaves 32 bits": total != self.accumulator << np.maximum(shift, 0),
            "no shift": shift == 0,
            "right shift above 8": right > 8,
            "first rounding up": low > half,
            "first rounding down": (low > 0) & (low < half),
            "first rounding, tie": low == half,
            "second rounding, tie above 0": is_tie & (first > 0),
            "second rounding, tie below 0": is_tie & (first < 0),
            "second rounding, one below a tie": (right > 1) & (rest == (np.int64(1) << np.maximum(right - 1, 0)) - 1),
            "below the lowest code": inner < self.clamp.low,
            "the lowest code exactly": inner == self.clamp.low,
            "above the highest code": inner > self.clamp.high,
            "the highest code exactly": inner == self.clamp.high,
            "scaled value beyond 16 bits": np.abs(self.scaled) >= 2**15,
        }
        return {name: int(np.count_nonzero(shows)) for name, shows in cases.items()}


@dataclass(slots=True)
class _Noting(OutputStage):
    """A stage that notes its accumulators."""

    real: Reals
    inner: OutputStage
    noted: list[Ints] = field(default_factory=list)

    def __call__(self, accumulator: Array) -> Ints32:
        """Note and scale; see OutputStage.__call__."""
        self.noted.append(accumulator.astype(np.int64))
        return self.inner(accumulator)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Note and scale; see OutputStage.narrow."""
        channels = accumulator.shape[1]
        added = bias[:channels] if len(bias) >= channels else bias[:1]
        self.noted.append(limit(accumulator.astype(np.int64) + added.astype(np.int64), "32 bits, wraps"))
        self.inner.narrow(accumulator, out, bias, zero_point, low, high)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Note and scale; see OutputStage.narrow_flat."""
        self.noted.append(accumulator.astype(np.int64))
        self.inner.narrow_flat(accumulator, out, zero_point, low, high)


def stage_values(
    model: Model, profile: Profile, index: int, inputs: Mapping[int, Array], recorded: Mapping[int, Array | None]
) -> StageValues:
    """Return the stages of operator `index` of the first subgraph for one sample.

    Args:
        model: The model.
        profile: The arithmetic; its stages must be in fixed point.
        index: The operator.
        inputs: The sample, by tensor index.
        recorded: A runtime's results, by tensor index, as far as they are known.

    Raises:
        UnsupportedError: The operator has no such stages, or the profile's stages do not end in the recorded codes.
    """
    graph = view(model)
    if not 0 <= index < len(graph.ops) or graph.op(index).builtin not in OPERATORS:
        known = [f"{i} {op.name}" for i, op in enumerate(graph.ops) if op.builtin in OPERATORS]
        raise UnsupportedError(f"operator {index}", reason=f"has no accumulators to export; these have: {known}")
    op = graph.op(index)
    values = run(make_plan(model, profile), inputs, keep_all=True).values
    part = part_of(model, [index], {**values, **{t: v for t, v in recorded.items() if v is not None}})
    made: list[_Noting] = []

    def note(stage: OutputStage) -> OutputStage:
        made.append(_Noting(stage.real, stage))
        return made[-1]

    noted = profile.derive(profile.name, arithmetic=profile.arithmetic.each_made_stage(note))
    tensor = op.outputs[0]
    computed = part.run(part.plan(noted))[tensor]
    seen = [stage for stage in made if stage.noted]
    point, name = _point(profile, type(seen[0].inner) if len(seen) == 1 else None, op.name)
    (stage,) = seen
    total = np.concatenate([one.reshape(-1) for one in stage.noted])
    got = recorded.get(tensor)
    codes = (computed if got is None else got).astype(np.int64).reshape(-1)
    found = StageValues(
        **_stages(point, stage.real[: computed.shape[-1]], total),
        op=op.name,
        stage=name,
        accumulator=total,
        codes=codes,
        zero_point=int(graph.zero_point(tensor)),
        clamp=_clamp(part, noted),
        recorded=got is not None,
    )
    final = np.clip(found.scaled + found.zero_point, *found.clamp)
    if not np.array_equal(final, codes):
        wrong = int(np.count_nonzero(final != codes))
        where = "recorded" if got is not None else "computed"
        raise UnsupportedError(
            op.name, reason=f"{wrong} {where} codes are not those of {profile.name}'s stages: {name}"
        )
    return found


def _clamp(part: Any, profile: Profile) -> Clamp:
    data: Any = part.plan(profile).steps[0].prepared.data
    return Clamp(*map(int, data.output.pipeline.clamp))


def _point(profile: Profile, kind: type | None, op: str) -> tuple[Requantizer, str]:
    """Return the point of the grammar that a stage is, and its name."""
    stages = {str(name) for name in names(profile.arithmetic).values() if name in NAMED}
    for name in sorted(stages, key=list(NAMED).index):
        made = next(v for f, v in _stage_fields(profile) if names(profile.arithmetic)[f] == name)
        if kind is type(made(np.ones(1))) and NAMED[name].is_fixed and NAMED[name].mantissa == _BITS:
            return NAMED[name], name
    raise UnsupportedError(op, reason=f"{profile.name} does not scale it by one stage in fixed point of {_BITS} bits")


def _stage_fields(profile: Profile) -> list[tuple[str, StageOf]]:
    return [(f, getattr(profile.arithmetic, f)) for f, name in names(profile.arithmetic).items() if name in NAMED]


def _stages(point: Requantizer, real: Reals, total: Ints) -> dict[str, Ints]:
    """Return the values of each stage for accumulators, channels innermost."""
    mantissa, shift = (values.astype(np.int64) for values in point.factors(np.asarray(real, np.float64), None))
    at = np.arange(total.size) % len(mantissa)
    left, right = np.maximum(shift, 0)[at], np.maximum(-shift, 0)[at]
    shifted = total << left if point.left == "exact" else limit(total << left, "32 bits, wraps")
    product, bits = shifted * mantissa[at], np.full_like(total, _BITS)
    if point.first == "none":
        high, scaled = np.zeros(0, np.int64), OF_HARDWARE[point.last](product, bits + right)
    else:
        high = OF_HARDWARE[point.first](product, bits)
        scaled = OF_HARDWARE[point.last](high, right)
    return {"mantissa": mantissa, "shift": shift, "shifted": shifted, "high": high, "scaled": scaled}


@dataclass(frozen=True, slots=True, eq=False)
class TapOperands:
    """The products of an operator as matrices: rows (R, taps) and weights (C, taps), centred; biases (C).

    Accumulator r * C + c is the sum of rows[r] * weights[c], plus bias[c].
    """

    rows: Ints
    weights: Ints
    bias: Ints


def operands_of(model: Model, index: int, inputs: Mapping[int, Array], found: StageValues) -> TapOperands | None:
    """Return the operands of FULLY_CONNECTED, or of CONV_2D of single pixels; None for others.

    They are given only if their accumulators are those of `found`.
    """
    graph = view(model)
    op = graph.op(index)
    weights, x = graph.constant(op.inputs[1]), inputs.get(op.inputs[0])
    if op.builtin not in ("FULLY_CONNECTED", "CONV_2D") or weights is None or x is None:
        return None
    taps, zero = weights.reshape(len(weights), -1).shape[1], graph.zero_point(op.inputs[0])
    if x.size % max(taps, 1) or x.shape[-1] != taps:
        return None
    bias = graph.constant(op.inputs[2]) if len(op.inputs) > 2 and op.inputs[2] >= 0 else None
    rows = x.reshape(-1, taps).astype(np.int64) - zero
    centred = weights.reshape(len(weights), taps).astype(np.int64)
    added = np.zeros(len(weights), np.int64) if bias is None else bias.astype(np.int64)
    total = rows @ centred.T + added
    return TapOperands(rows, centred, added) if np.array_equal(total.reshape(-1), found.accumulator) else None
