"""The runtimes that a portable model is for, and the float model that it is made from."""

from __future__ import annotations

from functools import cache

from tflq.errors import UnknownNameError
from tflq.ir import Model, view
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


def portable_operators(recipe: Recipe, source: Model) -> frozenset[int]:
    """Return the operators of the float model that are to be portable: all, or those that a tensor depends on.

    Raises:
        UnknownNameError: No operator makes a tensor of the recipe's name.
    """
    graph = view(source)
    if not recipe.portable:
        return frozenset()
    if not recipe.portable_until:
        return frozenset(range(len(graph.ops)))
    made = {graph.tensors[t].name or "": t for op in graph.ops for t in op.outputs}
    if recipe.portable_until not in made:
        raise UnknownNameError("tensor", recipe.portable_until, tuple(made))
    found, open_ = set[int](), [made[recipe.portable_until]]
    while open_:
        maker = graph.maker(open_.pop())
        if maker is not None and maker.index not in found:
            found.add(maker.index)
            open_.extend(t for t in maker.inputs if t >= 0)
    return frozenset(found)


def written_for(recipe: Recipe, source: Model) -> Rewritten:
    """Return the float model that a recipe quantizes: in portable form if the recipe asks for it."""
    if not recipe.portable:
        return Rewritten(source, (), tuple(range(len(source.subgraphs[0].operators))))
    inside = portable_operators(recipe, source)
    form = portable_form(source, targets(recipe.portable), inside, drop_softmax=recipe.drop_softmax)
    return Rewritten(with_biases(form.model), form.rewrites, form.origins)
