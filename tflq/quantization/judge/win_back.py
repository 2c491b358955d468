"""The gain from one operator in float, measured on models that are built for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tflq.errors import TflqError
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import Model
from tflq.quantization.build.build import build
from tflq.quantization.build.task import Task
from tflq.quantization.judge.comparison import Comparison, compare_models
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.recipe.stamp import finish
from tflq.quantization.runner import Sample

#: Less than this, in dB, is not worth an option.
_LEAST = 0.5
#: Number of costly operators that are tried.
_TRIED = 2


@dataclass(frozen=True, slots=True)
class WinBack:
    """An operator of the float model, by index and name, and what leaving it in float gives.

    `sqnr` is that of the outputs then, in dB; `gained` is how much more that is, and `added` are the bytes that the
    file has more. `tried` is the number of operators that were measured so.
    """

    operator: int
    op: str
    sqnr: float
    gained: float
    added: int
    tried: int


def win_back(
    source: Model,
    task: Task,
    result: Model,
    comparison: Comparison,
    judging: Iterable[Sample],
    costs: Sequence[Sensitivity],
) -> WinBack | None:
    """Build `result` again with one operator in float, and compare it on the same samples.

    The two most costly operators are tried, and those that make the outputs; the one that wins back most is returned,
    None if that is less than half a dB, or if there are no `costs`.
    """
    graph = task.floats.graph
    last = [index for index, op in enumerate(graph.ops) if set(op.outputs) & set(graph.outputs)]
    tried = list(dict.fromkeys([*(cost.operator for cost in costs[:_TRIED]), *last])) if costs else []
    wins, size = [], file_size(result) if tried else 0
    for done, operator in enumerate(tried):
        task.tell("what one operator in float wins back", done, len(tried))
        try:
            again = build(replace(task, kept_float={**task.kept_float, operator: "tried"}, progress=None))
            model = finish(again.integer.model, task.recipe)
            sqnr = compare_models(source, model, judging).leading
        except TflqError:  # such as kernels that do not take both forms of an operand
            continue
        origin, gained = task.floats.origins[operator], sqnr - comparison.leading
        wins.append(WinBack(origin, graph.op(operator).name, sqnr, gained, file_size(model) - size, len(tried)))
    best = max(wins, key=lambda win: win.gained, default=None)
    return best if best is not None and math.isfinite(best.gained) and best.gained >= _LEAST else None
