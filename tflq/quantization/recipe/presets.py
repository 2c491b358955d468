"""Recipes by name, from a few seconds' work to an exhaustive search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tflq.quantization.recipe.ranging import Objective, Ranging, Search, Solving, Target, Watch
from tflq.quantization.recipe.recipe import TYPES, Methods, Mode, Recipe
from tflq.quantization.recipe.refining import BiasCorrection, Refining, Rounding

_EQUAL = 0.5
_EXTREMES = Ranging()
_TYPICAL = Ranging(Watch.MOVING_AVERAGE)
_RELATIVE = Ranging(Watch.RELATIVE, activations=Search(Objective.L2, target=Target.SCORES))
_LEAST_NOISE = Ranging(Watch.HISTOGRAM, activations=Search(Objective.L2, target=Target.SCORES))
_WEIGHTS_TOO = Search(Objective.L2, Solving.GOLDEN_SECTION, Target.OUTPUT)

#: Samples for second moments; means need fewer.
MANY = 256
_ROUNDED = Refining(Rounding.GPTQ, samples=MANY)
_CORRECTED = Refining(bias=BiasCorrection.EMPIRICAL)
_BOTH = Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL, samples=MANY)
_MATCHED = Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL, match_inputs=True, samples=MANY)

#: Ranges that each rescue some model: heavy tails, one loud sample, channels of different magnitudes.
_FAST = (
    Methods(None, _EXTREMES),
    *(Methods(_EQUAL, ranging) for ranging in (_EXTREMES, _TYPICAL, _RELATIVE, _LEAST_NOISE)),
    *(Methods(_EQUAL, ranging, _CORRECTED) for ranging in (_EXTREMES, _RELATIVE)),
)
_BALANCED = (
    *_FAST,
    *(Methods(_EQUAL, ranging, _BOTH) for ranging in (_EXTREMES, _RELATIVE, _LEAST_NOISE)),
    *(Methods(_EQUAL, ranging, _ROUNDED) for ranging in (_TYPICAL, _RELATIVE)),
    Methods(_EQUAL, _RELATIVE, _MATCHED),
    Methods(_EQUAL, replace(_RELATIVE, weights=_WEIGHTS_TOO), _CORRECTED),
)
_BEST = (
    *_BALANCED,
    Methods(_EQUAL, _LEAST_NOISE, _CORRECTED),
    Methods(_EQUAL, replace(_EXTREMES, weights=_WEIGHTS_TOO), _CORRECTED),
    Methods(_EQUAL, replace(_LEAST_NOISE, weights=_WEIGHTS_TOO), _BOTH),
    Methods(None, _LEAST_NOISE, _MATCHED),
    *(Methods(_EQUAL, ranging, _MATCHED) for ranging in (_EXTREMES, _LEAST_NOISE)),
    *(Methods(None, ranging, _BOTH) for ranging in (_EXTREMES, _RELATIVE)),
    Methods(None, _TYPICAL, _ROUNDED),
)

PRESETS: Mapping[str, Recipe] = MappingProxyType(
    {
        "fast": Recipe(candidates=_FAST),
        "balanced": Recipe(candidates=_BALANCED, turns=2),
        "best": Recipe(candidates=_BEST, turns=4),
    }
)


def distinct(recipe: Recipe) -> tuple[Methods, ...]:
    """Return the recipe's candidates without those that its mode does not distinguish.

    If activations stay float, nothing depends on their ranges. Weights of four bits use GPTQ instead of rounding to
    nearest, and match inputs where biases are corrected; those with block scales use GPTQ alone.
    """
    if recipe.mode is Mode.INT8X4:  # rounding to nearest is too coarse
        return tuple(dict.fromkeys(replace(m, refining=_for_four_bits(m.refining)) for m in recipe.candidates))
    if recipe.mode is Mode.DYNAMICX4:
        refining = Refining(Rounding.GPTQ)
        return tuple(dict.fromkeys(replace(m, ranging=Ranging(), refining=refining) for m in recipe.candidates))
    if TYPES[recipe.mode].data is not None:
        return recipe.candidates
    return tuple(dict.fromkeys(replace(m, ranging=Ranging(weights=m.ranging.weights)) for m in recipe.candidates))


def _for_four_bits(refining: Refining) -> Refining:
    rounding = Rounding.GPTQ if refining.rounding is Rounding.NEAREST else refining.rounding
    matches = refining.match_inputs or refining.bias is not BiasCorrection.NONE
    return replace(refining, rounding=rounding, match_inputs=matches, samples=max(refining.samples, MANY))
