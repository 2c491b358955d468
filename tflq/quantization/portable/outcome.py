"""What became of a portable model: its rewrites, and the proof on the finished file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflq.ir import Model
from tflq.proof import Proof, prove
from tflq.quantization.portable.forms.rewrite import Rewrite, Rewritten
from tflq.quantization.portable.targets import targets
from tflq.quantization.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A portable model: what was rewritten so that it is, and the proof of how far it is.

    Indices of `rewrites` are those of the float model's operators.
    """

    rewrites: tuple[Rewrite, ...]
    proof: Proof


def outcome(
    model: Model, form: Rewritten, tables: Sequence[Rewrite], origins: Sequence[int], recipe: Recipe
) -> Outcome:
    """Return the outcome for a finished model; `tables` number operators by the float model, of these `origins`."""
    in_source = (replace(table, index=form.origins[origins[table.index]]) for table in tables)
    return Outcome((*form.rewrites, *in_source), prove(model, targets(recipe.portable)))
