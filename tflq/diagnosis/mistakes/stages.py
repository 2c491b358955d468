"""Mistakes in the conversion of accumulators to codes: roundings, multipliers, shifts, channels, widths.

Output stages that devices use instead of the runtime's: points of the grammar, and narrower accumulators.

Each mistake is defined once, as a change of the function that makes stages. It is then tried on all stages of an
operator at once, by preparing it with another arithmetic, and on each stage in its prepared data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.comparison.inspection.prepared import PreparedPart as Place
from tflq.comparison.inspection.prepared import parts_of
from tflq.diagnosis.mistakes.device import reals_of
from tflq.engine.api.many import Part
from tflq.engine.numerics.requantizer import GrammarStage, Requantizer
from tflq.engine.numerics.rounding import DIVISIONS, OF_HARDWARE, ROUNDINGS, Ints
from tflq.engine.numerics.stage_roundings import (
    BlockTail,
    DoubleRounding,
    FloatRounding,
    FloatRoundingEven,
    HalfUpTwice,
    SingleRounding,
    Unscaled,
    WideRounding,
)
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, Reals, StageOf
from tflq.engine.profiles import Profile
from tflq.model.ir import Model
from tflq.typing import Array


def fix(last: str, first: str = "none", mantissa: int = 31, *, cut: bool = False) -> StageOf:
    """Return stages in fixed point: a mantissa of `mantissa` bits, then one rounding or two.

    Accumulators that are shifted to the left saturate in 32 bits.
    """
    shortened = "cut off" if cut else "to nearest"
    point = Requantizer("given", "fixed point", mantissa, shortened, first, last, left="saturates", accumulator=_ANY)
    return at_point(point)


def real(last: str, product: str = "float64") -> StageOf:
    """Return stages that multiply in a float type and round once."""
    return at_point(Requantizer(product=product, last=last, accumulator=_ANY))


def at_point(point: Requantizer) -> StageOf:
    """Return the function that makes stages of a point of the grammar."""

    def make(multipliers: ArrayLike) -> OutputStage:
        return GrammarStage.of(point, multipliers)

    return make


#: Accumulators are as wide as the kernel makes them.
_ANY = "64 bits"


def _per_channel(values: Array, channels: int) -> Array:
    """Return `values`, of length 1, C or repeated, as one per channel or as one for all."""
    return values[:channels] if len(values) >= channels else values[:1]


@dataclass(frozen=True, slots=True, eq=False)
class NarrowAccumulator(OutputStage):
    """Another stage whose accumulators, bias included, have only `bits` bits: they wrap or saturate."""

    real: Reals
    inner: OutputStage
    bits: int
    wraps: bool

    @classmethod
    def of(cls, inner: OutputStage, bits: int, *, wraps: bool) -> NarrowAccumulator:
        """Return the stage before `inner`, whose real multipliers it has."""
        return cls(inner.real, inner, bits, wraps)

    def __call__(self, accumulator: Array) -> NDArray[np.int32]:
        """Limit the accumulators, then scale them; see OutputStage.__call__."""
        return self.inner(self._limit(accumulator.astype(np.int64)))

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Limit the accumulators with their bias, then scale and clamp; see OutputStage.narrow."""
        total = accumulator.astype(np.int64) + _per_channel(bias, accumulator.shape[1]).astype(np.int64)
        none = np.zeros(accumulator.shape[1], np.int32)
        self.inner.narrow(self._limit(total), out, none, zero_point, low, high)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Limit the accumulators, then scale and clamp; see OutputStage.narrow_flat."""
        self.inner.narrow_flat(self._limit(accumulator.astype(np.int64)), out, zero_point, low, high)

    def _limit(self, total: Ints) -> Ints:
        half = np.int64(1) << np.int64(self.bits - 1)
        if self.wraps:
            return ((total + half) & (2 * half - 1)) - half
        return np.clip(total, -half, half - 1)


#: A function from the right way to make stages of real multipliers to a wrong one.
Mistake = Callable[[StageOf], StageOf]


def _reals(real: ArrayLike) -> Reals:
    return np.atleast_1d(np.asarray(real, np.float64))


def _rounding(stage: StageOf) -> Mistake:
    """Return another rounding that ignores the right one."""
    return lambda right: stage


def _multiplier(change: Callable[[Reals], Reals]) -> Mistake:
    """Return the right rounding of changed multipliers."""
    return lambda right: lambda real: right(change(_reals(real)))


def _changed(change: Callable[[Reals], Reals], stage: StageOf) -> Mistake:
    """Return a stage of changed multipliers that ignores the right rounding."""
    return lambda right: lambda real: stage(change(_reals(real)))


def _in_float16(real: Reals) -> Reals:
    return real.astype(np.float16).astype(np.float64)


#: How multipliers become powers of two.
_POWERS: dict[str, Callable[[Reals], Reals]] = {
    "rounded": lambda real: np.exp2(np.rint(np.log2(np.abs(real)))),
    "rounded up": lambda real: np.exp2(np.ceil(np.log2(np.abs(real)))),
    "cut off": lambda real: np.exp2(np.floor(np.log2(np.abs(real)))),
}


def _accumulator(bits: int, *, wraps: bool) -> Mistake:
    return lambda right: lambda real: NarrowAccumulator.of(right(real), bits, wraps=wraps)


def _shorten(real: Reals) -> Reals:
    """Return the multipliers with mantissas of 15 bits and a sign, rounded to nearest."""
    fraction, exponent = np.frexp(real)
    rounded: Reals = np.ldexp(np.rint(fraction * 2**15), exponent - 15)
    return rounded


def _cut_short(real: Reals) -> Reals:
    """Return the multiplier cut off to 15 bits instead of rounded."""
    fraction, exponent = np.frexp(real)
    cut: Reals = np.ldexp(np.trunc(fraction * 2**15), exponent - 15)
    return cut


def _without_far_shifts(real: Reals) -> Reals:
    """Return 0 in place of multipliers whose shift empties a 32-bit register."""
    _, exponent = np.frexp(real)
    return np.where(exponent >= 32, 0.0, real)


def _shift_modulo_32(real: Reals) -> Reals:
    """Return the multipliers under scalar shifts of 32-bit registers."""
    fraction, exponent = np.frexp(real)
    return np.asarray(np.ldexp(fraction, np.where(exponent >= 32, exponent % 32, exponent)))


#: Rounding modes of RISC-V's vector fixed-point instructions (vxrm), which a kernel uses for product and shift alike.
_MODES = {"half up": "rnu", "half to even": "rne", "towards minus infinity": "rdn", "to odd": "rod"}


#: First roundings that are combined with any last one.
_FIRST = ("towards minus infinity", "towards zero", "half up")


def _mistakes() -> Iterator[tuple[str, Mistake]]:
    for name in OF_HARDWARE:
        yield f"rounds {name}, in fixed point", _rounding(fix(name))
    for name in ROUNDINGS:
        yield f"rounds {name}, in float64", _rounding(real(name))
    yield "multiplies in float32", _rounding(FloatRoundingEven.of)
    for name in ROUNDINGS:
        yield f"multiplies in float32, rounds {name}", _rounding(real(name, "float32"))
    yield "rounds once", _rounding(SingleRounding.of)
    yield "rounds twice", _rounding(DoubleRounding.of)
    yield "rounds half up twice", _rounding(HalfUpTwice.of)
    for first in OF_HARDWARE:
        for last in DIVISIONS if first in _FIRST else (first,):
            mode = f" (RISC-V's vxrm {_MODES[first]})" if first == last and first in _MODES else ""
            yield f"rounds twice: the product {first}, the shift {last}{mode}", _rounding(fix(last, first))
    yield "multiplier rounded to float32", _multiplier(lambda real: real.astype(np.float32).astype(np.float64))
    for name in ("half to even", "half up", "half away from zero"):
        narrow = f"multiplier rounded to float16, multiplies in float32, rounds {name}"
        yield narrow, _changed(_in_float16, real(name, "float32"))
    for way, change in _POWERS.items():
        for name in ("half up", "towards minus infinity"):
            yield f"multiplier {way} to a power of two, rounds {name}", _changed(change, fix(name))
    for name in ("half up", "towards minus infinity"):
        yield f"multiplier of 24 bits, rounds {name}", _rounding(fix(name, mantissa=24))
        both = f"two multiplications, of 24 and of 16 bits, each rounds {name}"
        yield both, _rounding(fix(name, name, mantissa=24))
    yield "multiplier of 16 bits", _multiplier(_shorten)
    yield "multiplier of 16 bits, cut off", _multiplier(_cut_short)
    for cut in (False, True):
        for name in DIVISIONS:
            ending = f"{', cut off' if cut else ''}, rounds {name}"
            yield f"multiplier of 16 bits{ending}", _rounding(fix(name, mantissa=15, cut=cut))
    yield "multiplier of 16 bits, below 1, rounds half up", _rounding(WideRounding.of)
    yield "multiplier of 16 bits, rounds twice", _rounding(lambda real: DoubleRounding.of(_shorten(_reals(real))))
    yield "shift of 32 or more to the left gives 0", _multiplier(_without_far_shifts)
    yield "shift to the left taken modulo 32", _multiplier(_shift_modulo_32)
    yield "shift off by one to the left", _multiplier(lambda real: real * 2)
    yield "shift off by one to the right", _multiplier(lambda real: real / 2)
    for bits in (16, 24, 32):
        yield f"accumulator of {bits} bits that saturates", _accumulator(bits, wraps=False)
        yield f"accumulator of {bits} bits that wraps", _accumulator(bits, wraps=True)


#: Mistakes by name.
MISTAKES: dict[str, Mistake] = dict(_mistakes())


def mistaken_profiles(profile: Profile, model: Model) -> Iterator[tuple[str, Profile]]:
    """Yield profiles with a mistake in every stage of their arithmetic, for a model of one operator."""
    for name, mistake in (*MISTAKES.items(), *_products_of_scales(model)):
        yield name, profile.derive(f"{profile.name}, {name}", arithmetic=profile.arithmetic.each_stage(mistake))


def stages_made(alone: Part, profile: Profile) -> int:
    """Return the number of stages that the operator's preparation makes by the profile's arithmetic.

    It is at least 2 if it holds others.
    """
    stages: list[OutputStage] = []

    def note(stage: OutputStage) -> OutputStage:
        stages.append(stage)
        return stage

    plan = alone.plan(profile.derive(profile.name, arithmetic=profile.arithmetic.each_made_stage(note)))
    prepared = plan.steps[0].prepared
    stored = [] if prepared is None else [part.value.stage for part in parts_of(prepared.data, OutputPipeline)]
    others = [stage for stage in stored if not any(stage is own for own in stages)]
    return max(len(stages), len(stored), 2 * len(others))


def _products_of_scales(model: Model) -> Iterator[tuple[str, Mistake]]:
    """Yield the one arithmetic field that defines the precision of multipliers computed from scales."""
    reals = reals_of(model)
    names = dict.fromkeys(name for forms in reals for name in forms)
    for name in names:
        yield name, _multiplier(partial(_in_place_of, [forms[name] for forms in reals if name in forms]))


def _in_place_of(products: Sequence[Reals], real: Reals) -> Reals:
    """Return the product that the multipliers represent, if there is one."""
    for product in products:
        alike = product.size in (1, real.size) and np.allclose(np.abs(real), np.abs(product), rtol=1e-6, atol=0)
        if alike:
            return np.copysign(np.abs(np.broadcast_to(product, real.shape)), real)
    return real


def mistaken_stages(data: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield mistakes in one of an operator's stages: a name with its place, and a function that builds the data."""
    for part in parts_of(data, OutputPipeline):
        pipeline = part.value
        if isinstance(pipeline.stage, Unscaled):
            continue
        make, real = _maker(pipeline.stage), pipeline.stage.real
        for name, mistake in MISTAKES.items():
            yield f"{name} ({part.place})", partial(_with_stage, part, mistake(make), real)


def _with_stage(part: Place[OutputPipeline], make: StageOf, real: Reals) -> Any:
    """Return the operator's prepared data with another stage in that place."""
    return part.rebuild(replace(part.value, stage=make(real)))


def _maker(stage: OutputStage) -> StageOf:
    """Return the function that makes stages like this one."""
    if isinstance(stage, BlockTail):
        return BlockTail.of(_maker(stage.whole), _maker(stage.tail), stage.size)
    if isinstance(stage, NarrowAccumulator):
        return _accumulator(stage.bits, wraps=stage.wraps)(_maker(stage.inner))
    if isinstance(stage, GrammarStage):
        return at_point(stage.point)
    if isinstance(stage, FloatRounding) and not stage.flag:
        return FloatRounding.of_wide
    maker: StageOf = type(stage).of  # type: ignore[attr-defined]  # every stage that scales has it
    return maker
