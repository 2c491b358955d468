"""Mistakes in bringing accumulators to codes: roundings, multipliers, shifts, channels, widths.

Each is expressed once, as what it makes of a way to make stages. It is then tried on all stages of an operator at once,
by preparing it with another arithmetic, and on each stage that its prepared data holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tflq.diagnosis.mistakes.division import DIVISIONS, ROUNDINGS
from tflq.diagnosis.mistakes.stages import FixedRounding, NarrowAccumulator, RealRounding
from tflq.inspection.parts import parts_of
from tflq.ir import Model, TensorType
from tflq.numerics.block_tail import BlockTail
from tflq.numerics.float32_stages import FloatRoundingEven
from tflq.numerics.float_rounding import FloatRounding
from tflq.numerics.stages import (
    DoubleRounding,
    HalfUpTwice,
    OutputPipeline,
    OutputStage,
    Reals,
    SingleRounding,
    StageOf,
    WideRounding,
)
from tflq.numerics.unscaled import Unscaled
from tflq.profiles import Profile
from tflq.surgery.part import Part

#: A wrong way to make stages of real multipliers, made of the right way.
Mistake = Callable[[StageOf], StageOf]


def _reals(real: ArrayLike) -> Reals:
    return np.atleast_1d(np.asarray(real, np.float64))


def _rounding(stage: StageOf) -> Mistake:
    """Another rounding, whatever the right one is."""
    return lambda right: stage


def _real(rounding: str, dtype: type[np.floating[Any]]) -> StageOf:
    return lambda real: RealRounding(_reals(real), ROUNDINGS[rounding], dtype)


def _multiplier(change: Callable[[Reals], Reals]) -> Mistake:
    """The right rounding of changed multipliers."""
    return lambda right: lambda real: right(change(_reals(real)))


def _accumulator(bits: int, *, wraps: bool) -> Mistake:
    return lambda right: lambda real: NarrowAccumulator(right(real), bits, wraps)


def _shortened(real: Reals) -> Reals:
    """The multipliers with mantissas of 15 bits and a sign, rounded to nearest."""
    fraction, exponent = np.frexp(real)
    rounded: Reals = np.ldexp(np.rint(fraction * 2**15), exponent - 15)
    return rounded


def _cut_short(real: Reals) -> Reals:
    """The multiplier cut off to 15 bits instead of rounded."""
    fraction, exponent = np.frexp(real)
    cut: Reals = np.ldexp(np.trunc(fraction * 2**15), exponent - 15)
    return cut


def _mistakes() -> Iterator[tuple[str, Mistake]]:
    for name in DIVISIONS:
        yield f"rounds {name}, in fixed point", _rounding(FixedRounding.of(None, DIVISIONS[name]))
    for name in ROUNDINGS:
        yield f"rounds {name}, in float64", _rounding(_real(name, np.float64))
    yield "multiplies in float32", _rounding(FloatRoundingEven.of)
    for name in ROUNDINGS:
        yield f"multiplies in float32, rounds {name}", _rounding(_real(name, np.float32))
    yield "rounds once", _rounding(SingleRounding.of)
    yield "rounds twice", _rounding(DoubleRounding.of)
    yield "rounds half up twice", _rounding(HalfUpTwice.of)
    for first in ("towards minus infinity", "towards zero", "half up"):
        for last in DIVISIONS:
            name = f"rounds twice: the product {first}, the shift {last}"
            yield name, _rounding(FixedRounding.of(DIVISIONS[first], DIVISIONS[last]))
    yield "multiplier rounded to float32", _multiplier(lambda real: real.astype(np.float32).astype(np.float64))
    yield "multiplier of 16 bits", _multiplier(_shortened)
    yield "multiplier of 16 bits, cut off", _multiplier(_cut_short)
    for cut in (False, True):
        for name in ("half up", "towards minus infinity", "towards zero"):
            ending = f"{', cut off' if cut else ''}, rounds {name}"
            yield f"multiplier of 16 bits{ending}", _rounding(FixedRounding.of(None, DIVISIONS[name], 15, cut=cut))
    yield "multiplier of 16 bits, below 1, rounds half up", _rounding(WideRounding.of)
    yield "multiplier of 16 bits, rounds twice", _rounding(lambda real: DoubleRounding.of(_shortened(_reals(real))))
    yield "shift off by one to the left", _multiplier(lambda real: real * 2)
    yield "shift off by one to the right", _multiplier(lambda real: real / 2)
    for bits in (16, 24, 32):
        yield f"accumulator of {bits} bits that saturates", _accumulator(bits, wraps=False)
        yield f"accumulator of {bits} bits that wraps", _accumulator(bits, wraps=True)


#: By name.
MISTAKES: dict[str, Mistake] = dict(_mistakes())

_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def mistaken_profiles(profile: Profile, model: Model) -> Iterator[tuple[str, Profile]]:
    """The profile with a mistake in every stage that its arithmetic makes, for a model of one operator."""
    for name, mistake in (*MISTAKES.items(), *_products_of_scales(model)):
        yield name, profile.derive(f"{profile.name}, {name}", arithmetic=profile.arithmetic.each_stage(mistake))


def stages_made(alone: Part, profile: Profile) -> int:
    """How many stages the operator's preparation makes by the profile's arithmetic; 2 at least if it holds others."""
    stages: list[OutputStage] = []

    def noting(right: StageOf) -> StageOf:
        def make(real: ArrayLike) -> OutputStage:
            stages.append(right(real))
            return stages[-1]

        return make

    plan = alone.plan(profile.derive(profile.name, arithmetic=profile.arithmetic.each_stage(noting)))
    prepared = plan.steps[0].prepared
    stored = [] if prepared is None else [part.value.stage for part in parts_of(prepared.data, OutputPipeline)]
    others = [stage for stage in stored if not any(stage is own for own in stages)]
    return max(len(stages), len(stored), 2 * len(others))


def _products_of_scales(model: Model) -> Iterator[tuple[str, Mistake]]:
    """Multipliers that are products of two inputs' scales over the output's, in other precisions."""
    graph = model.subgraphs[0]
    operator = graph.operators[0]
    specs = [graph.tensors[t] for t in (*operator.inputs, *operator.outputs[:1]) if t >= 0]
    scales = [
        q.scale for spec in specs if spec.type in _CODES and (q := spec.quantization) is not None and q.scale.size
    ]
    if len(scales) != 3:
        return
    a, b, y = scales
    wide_a, wide_b, wide_y = (scale.astype(np.float64) for scale in scales)
    with np.errstate(all="ignore"):
        products = {
            "multiplier computed in float32": a * b / y,
            "multiplier computed in float32, the product of scales last": a / y * b,
            "multiplier of a product of scales in float32": (a * b).astype(np.float64) / wide_y,
            "multiplier computed in float64": wide_a * wide_b / wide_y,
        }
    for name, product in products.items():
        yield name, _multiplier(partial(_in_place_of, np.asarray(product, np.float64)))


def _in_place_of(product: Reals, real: Reals) -> Reals:
    """The product, where the multipliers are meant to be it."""
    alike = product.size in (1, real.size) and np.allclose(real, product, rtol=1e-5, atol=0)
    return np.broadcast_to(product, real.shape).copy() if alike else real


def mistaken_stages(data: Any) -> Iterator[tuple[str, Any]]:
    """An operator's prepared data with a mistake in one of its stages; the name says which."""
    for part in parts_of(data, OutputPipeline):
        pipeline = part.value
        if isinstance(pipeline.stage, Unscaled):
            continue
        make, real = _maker(pipeline.stage), pipeline.stage.real
        for name, mistake in MISTAKES.items():
            yield f"{name} ({part.place})", part.rebuild(replace(pipeline, stage=mistake(make)(real)))


def _maker(stage: OutputStage) -> StageOf:
    """What makes stages like this one."""
    if isinstance(stage, BlockTail):
        return BlockTail.of(_maker(stage.whole), _maker(stage.tail), stage.size)
    if isinstance(stage, NarrowAccumulator):
        return _accumulator(stage.bits, wraps=stage.wraps)(_maker(stage.inner))
    if isinstance(stage, (FixedRounding, RealRounding)):
        return stage.again
    if isinstance(stage, FloatRounding) and not stage.wraps:
        return FloatRounding.of_wide
    maker: StageOf = type(stage).of  # type: ignore[attr-defined]  # of every stage that scales
    return maker
