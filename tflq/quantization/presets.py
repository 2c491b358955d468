"""Recipes by name: what is tried, from a few seconds' work to all that helps on some model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tflq.quantization.recipe import Methods, Recipe
from tflq.quantization.refine.methods import BiasCorrection, Refining, Rounding
from tflq.quantization.search.choices import Solving, Target, Watch
from tflq.quantization.search.methods import Ranging, Search
from tflq.quantization.search.objectives import Objective

_EQUAL = 0.5
_EXTREMES = Ranging()
_TYPICAL = Ranging(Watch.MOVING_AVERAGE)
_RELATIVE = Ranging(Watch.RELATIVE, activations=Search(Objective.L2))
_LEAST_NOISE = Ranging(Watch.HISTOGRAM, activations=Search(Objective.L2))
_LEAST_NOISE_BOTH = Ranging(
    Watch.HISTOGRAM,
    activations=Search(Objective.L2),
    weights=Search(Objective.L2, Solving.GOLDEN_SECTION, Target.OUTPUT),
)
_ROUNDED = Refining(Rounding.GPTQ)
_CORRECTED = Refining(bias=BiasCorrection.EMPIRICAL)
_BOTH = Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL)
_MATCHED = Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL, match_inputs=True)

_FAST = (Methods(_EQUAL, _EXTREMES), Methods(_EQUAL, _TYPICAL), Methods(None, _EXTREMES))
_BALANCED = (
    *_FAST,
    Methods(_EQUAL, _LEAST_NOISE),
    Methods(_EQUAL, _RELATIVE),
    Methods(_EQUAL, _EXTREMES, _BOTH),
    Methods(_EQUAL, _LEAST_NOISE, _BOTH),
    Methods(_EQUAL, _TYPICAL, _ROUNDED),
)
_BEST = (
    *_BALANCED,
    Methods(_EQUAL, _EXTREMES, _CORRECTED),
    Methods(_EQUAL, _LEAST_NOISE_BOTH, _CORRECTED),
    Methods(_EQUAL, _LEAST_NOISE_BOTH, _BOTH),
    Methods(_EQUAL, _EXTREMES, _MATCHED),
    Methods(_EQUAL, _LEAST_NOISE, _MATCHED),
    Methods(_EQUAL, _RELATIVE, _ROUNDED),
    Methods(None, _LEAST_NOISE, _MATCHED),
    Methods(None, _TYPICAL, _ROUNDED),
)

PRESETS: Mapping[str, Recipe] = MappingProxyType(
    {
        "fast": Recipe(candidates=_FAST),
        "balanced": Recipe(candidates=_BALANCED),
        "best": Recipe(candidates=_BEST),
    }
)
