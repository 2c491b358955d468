"""The runtimes that a portable model is for, and its outcome.

The runtimes that a portable model is for, and the float model that it is made from.

The outcome of a quantization to a portable model: rewrites, obstacles, and the proof on the finished file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.errors import UnknownNameError
from tflq.model.ir import GraphView, Model, OperatorView, TensorType, view
from tflq.model.surgery.cut import upstream
from tflq.proof import Proof, Word, prove
from tflq.quantization.frontier import Sample
from tflq.quantization.portable.editing import Obstacle, Rewrite, Rewritten
from tflq.quantization.portable.floats import PROBABILITIES, obstacles, portable_form
from tflq.quantization.portable.grid import with_biases
from tflq.quantization.portable.tables import LOOKUPS, takes
from tflq.quantization.ranges.observers import MinMax
from tflq.quantization.ranges.watching import Observations, observe
from tflq.quantization.recipe import ALL, Recipe


def targets(names: tuple[str, ...]) -> tuple[Profile, ...]:
    """Return the profiles of these names, each once; for ALL, those that take int8 tables, which excludes no other."""
    if ALL in names:
        return tuple(p for p in PROFILES.values() if any(takes(form, p) for form in LOOKUPS))
    return tuple(dict.fromkeys(by_name(name) for name in names))


#: The ratio of ranges from which on a mean counts as shrinking.
_SHRINKING = 8


@dataclass(frozen=True, slots=True)
class Aim:
    """The float model's operators that are to be portable, and for which runtimes; `stopped` are obstacles.

    Operators behind an obstacle are not among them: their inputs differ anyway.
    """

    runtimes: tuple[Profile, ...] = ()
    operators: frozenset[int] = frozenset()
    stopped: tuple[Obstacle, ...] = ()


def aim_of(recipe: Recipe, source: Model) -> Aim:
    """Return what a recipe wants to be portable in a float model; nothing if it does not ask for it.

    Raises:
        UnknownNameError: No operator makes a tensor of the recipe's name.
    """
    if not recipe.portable:
        return Aim()
    graph, runtimes = view(source), targets(recipe.portable)
    wanted = _upstream(graph, recipe.portable_until) if recipe.portable_until else {op.index for op in graph.ops}
    stopped = tuple(obstacle for obstacle in obstacles(source, runtimes) if obstacle.index in wanted)
    lost, left = set[int](), set[int]()
    stops = {obstacle.index for obstacle in stopped}
    for op in graph.ops:
        if op.index in stops or lost.intersection(op.inputs):
            lost.update(op.outputs)
            left.add(op.index)
    return Aim(runtimes, frozenset(wanted - left), stopped)


def is_tail(operator: OperatorView) -> bool:
    """Return whether an operator turns logits into probabilities at the end, without which a model is useful."""
    return operator.name in PROBABILITIES and set(operator.outputs) <= set(operator.graph.outputs)


def _upstream(graph: GraphView, name: str) -> set[int]:
    """Return the operators that the tensor of a name depends on."""
    made = {graph.tensors[t].name or "": t for op in graph.ops for t in op.outputs}
    if name not in made:
        raise UnknownNameError("tensor", name, tuple(made))
    return {op.index for op in upstream(graph.ops, [made[name]])}


def write_for(recipe: Recipe, aim: Aim, source: Model, samples: Sequence[Sample]) -> Rewritten:
    """Return the float model that a recipe quantizes: in portable form if the recipe asks for it."""
    if not recipe.portable:
        return Rewritten(source, (), tuple(range(len(source.subgraphs[0].operators))))
    shrinking = _shrinking(source, samples)
    form = portable_form(source, aim.runtimes, aim.operators, shrinking, drop_softmax=recipe.drop_softmax)
    return Rewritten(with_biases(form.model), form.rewrites, form.origins)


def _shrinking(source: Model, samples: Sequence[Sample]) -> frozenset[int]:
    """Return the MEANs whose results span less than 1 / _SHRINKING of the range of their inputs.

    A pool gives results the scale of its inputs, and so would leave them few codes.
    """
    graph = view(source)
    means = [op for op in graph.ops if op.name == "MEAN" and graph.tensors[op.inputs[0]].type == TensorType.FLOAT32]
    if not means:
        return frozenset()
    tensors = dict.fromkeys(t for op in means for t in (op.inputs[0], op.outputs[0]))
    seen = observe(source, samples, Observations.begin(tensors, MinMax())).of
    spans = {t: ends.range for t, (ends,) in seen.items() if isinstance(ends, MinMax)}
    widths = {t: float(np.max(span.high)) - float(np.min(span.low)) for t, span in spans.items()}
    return frozenset(op.index for op in means if _SHRINKING * widths[op.outputs[0]] < widths[op.inputs[0]])


@dataclass(frozen=True, slots=True, eq=False)
class PortableOutcome:
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
) -> PortableOutcome:
    """Return the outcome for a finished model.

    `origins` are the operators of `source` that those of the finished model come from, -1 for new ones; `rewrites`
    number operators as `source` does.
    """
    proof = prove(model, ALL if ALL in recipe.portable else list(aim.runtimes))
    unequal = {origins[o.index] for o in proof.operators if o.subgraph == 0 and o.word != Word.EQUAL}
    (coverage, *_), graph = proof.coverage, view(source)
    left = {origins[index] for index in coverage.outside} & (aim.operators | {o.index for o in aim.stopped})
    left -= {op.index for op in graph.ops if is_tail(op)}
    return PortableOutcome(
        tuple(rewrites), tuple(o for o in aim.stopped if o.index in unequal), proof, tuple(sorted(left))
    )
