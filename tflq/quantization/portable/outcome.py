"""What became of a portable model: its rewrites, and the proof on the finished file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.ir import Model, OperatorView, view
from tflq.proof import Proof, Word, prove
from tflq.quantization.portable.forms.obstacles import obstacles
from tflq.quantization.portable.forms.rewrite import Obstacle, Rewrite, Rewritten
from tflq.quantization.portable.targets import portable_operators, targets
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


#: Operators that turn logits into probabilities, without which a model is useful.
_TAIL = frozenset({"SOFTMAX", "LOG_SOFTMAX"})


def outcome(
    source: Model, model: Model, form: Rewritten, tables: Sequence[Rewrite], origins: Sequence[int], recipe: Recipe
) -> Outcome:
    """Return the outcome for a finished model.

    `origins` are the operators of `source` that those of the finished model come from, -1 for new ones; `tables` and
    the rewrites of `form` number operators as `source` does.
    """
    proof = prove(model, ALL if ALL in recipe.portable else list(targets(recipe.portable)))
    unequal = {origins[o.index] for o in proof.operators if o.word != Word.EQUAL}
    known = tuple(o for o in obstacles(source, targets(recipe.portable)) if o.index in unequal)
    graph, (coverage, *_) = view(source), proof.coverage
    outside = {origins[index] for index in coverage.outside} & portable_operators(recipe, source)
    left = (i for i in sorted(outside) if not _is_tail(graph.op(i)))
    return Outcome((*form.rewrites, *tables), known, proof, tuple(left))


def _is_tail(operator: OperatorView) -> bool:
    return operator.name in _TAIL and set(operator.outputs) <= set(operator.graph.outputs)
