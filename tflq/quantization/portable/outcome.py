"""The outcome of a quantization to a portable model: rewrites, obstacles, and the proof on the finished file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.model.ir import Model, view
from tflq.proof import Proof, Word, prove
from tflq.quantization.portable.forms.rewrite import Obstacle, Rewrite
from tflq.quantization.portable.targets import Aim, is_tail
from tflq.quantization.recipe.recipe import ALL, Recipe


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A portable model: what was rewritten so that it is, what keeps it from being, and the proof of how far it is.

    Indices of `rewrites` and `obstacles` are those of the float model's operators. `left` are the operators that were
    to be portable and are not, except for a SOFTMAX at the end.
    """

    rewrites: tuple[Rewrite, ...]
    obstacles: tuple[Obstacle, ...]
    proof: Proof
    left: tuple[int, ...] = ()


def outcome(
    source: Model, model: Model, aim: Aim, rewrites: Sequence[Rewrite], origins: Sequence[int], recipe: Recipe
) -> Outcome:
    """Return the outcome for a finished model.

    `origins` are the operators of `source` that those of the finished model come from, -1 for new ones; `rewrites`
    number operators as `source` does.
    """
    proof = prove(model, ALL if ALL in recipe.portable else list(aim.runtimes))
    unequal = {origins[o.index] for o in proof.operators if o.subgraph == 0 and o.word != Word.EQUAL}
    (coverage, *_), graph = proof.coverage, view(source)
    left = {origins[index] for index in coverage.outside} & (aim.operators | {o.index for o in aim.stopped})
    left -= {op.index for op in graph.ops if is_tail(op)}
    return Outcome(tuple(rewrites), tuple(o for o in aim.stopped if o.index in unequal), proof, tuple(sorted(left)))
