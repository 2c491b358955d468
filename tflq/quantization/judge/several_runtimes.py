"""Nudge scales so that several runtimes agree, as far as held-back samples show that it helps."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.quantization.build.build import Built
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import parted
from tflq.quantization.judge.scoring import judged
from tflq.quantization.judge.selection import is_even
from tflq.quantization.portable.nudging import Nudge, move, nudge
from tflq.quantization.portable.portability import Portability, portability


@dataclass(frozen=True, slots=True)
class Agreed:
    """Agreement of runtimes on the model as written, on held-back samples, and `before` scales were nudged."""

    portability: Portability
    before: Portability
    nudges: tuple[Nudge, ...]


def agreed(task: Task, built: Built) -> tuple[Built, Agreed | None]:
    """Return the model with scales nudged on three quarters of the samples, if the last quarter confirms them.

    They are confirmed if fewer elements differ there, and the scores are not significantly worse. All nudges are tried
    first, then only those that remove at least half of their disagreements. Without further runtimes, the model stays,
    and there is no report.
    """
    recipe, inputs = task.recipe, task.floats.graph.inputs
    if not recipe.runtimes:
        return built, None
    fitting, judging = parted(task.samples)

    nudges = nudge(
        built.assignment.scheme,
        built.activations,
        lambda activations: built.again(recipe, activations).integer,
        fitting,
        recipe.judges,
        task.progress,
    )
    before = portability(built.integer.model, inputs, judging, recipe.judges)
    score = judged(task, built, judging)
    for some in dict.fromkeys(filter(None, (nudges, tuple(n for n in nudges if n.is_strong)))):
        again = built.again(recipe, move(built.activations, some))
        if not is_even(judged(task, again, judging), score):
            continue
        after = portability(again.integer.model, inputs, judging, recipe.judges)
        if after.total < before.total:
            return again, Agreed(after, before, some)
    return built, Agreed(before, before, ())
