"""The runtimes that a portable model is for, and the float model that it is made from."""

from __future__ import annotations

from functools import cache

from tflq.ir import Model
from tflq.profiles import PROFILES, Profile, by_name
from tflq.quantization.portable.biases import with_biases
from tflq.quantization.portable.forms.floats import portable_form
from tflq.quantization.portable.forms.lookups import LOOKUPS, takes
from tflq.quantization.portable.forms.rewrite import Rewritten
from tflq.quantization.recipe.recipe import ALL, Recipe


@cache
def targets(names: tuple[str, ...]) -> tuple[Profile, ...]:
    """Return the profiles of these names, each once; for ALL, those that take int8 tables, which excludes no other."""
    if ALL in names:
        return tuple(p for p in PROFILES.values() if any(takes(form, p) for form in LOOKUPS))
    return tuple(dict.fromkeys(by_name(name) for name in names))


def written_for(recipe: Recipe, source: Model) -> Rewritten:
    """Return the float model that a recipe quantizes: in portable form if the recipe asks for it."""
    if not recipe.portable:
        return Rewritten(source, (), tuple(range(len(source.subgraphs[0].operators))))
    form = portable_form(source, targets(recipe.portable))
    return Rewritten(with_biases(form.model), form.rewrites, form.origins)
