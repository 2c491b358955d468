"""Weights of eight bits in mode int8x4, for the operators that lose most by four.

Depthwise and first convolutions have few weights, and lose much by rounding them to four bits. An operator's loss is
the squared error of its results relative to their squares, which refinement computes on the way. Measuring the outputs
with one operator at a time in eight bits is slower, and its gains drown in the noise of all the others.

Without a share in the recipe, the first of SHARES counts, or the next one if distributions are not yet close ENOUGH
and eight bits everywhere would halve their distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tflq.errors import CalibrationError, TflqError
from tflq.model.flatbuf.writer import file_size
from tflq.quantization.build.build import Built, build
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import parted
from tflq.quantization.judge.journal import Journal, entry_key
from tflq.quantization.judge.scoring import judged
from tflq.quantization.judge.selection import is_far_behind
from tflq.quantization.recipe.recipe import Mode
from tflq.quantization.recipe.stamp import finish
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.float_graph import FloatModel

#: Shares of the bytes that four bits save, and the mean divergence on held-back samples, in nats, that is good enough.
SHARES, ENOUGH = (0.2, 0.5), 0.01


@dataclass(frozen=True, slots=True)
class Eights:
    """Operators of the float model whose weights keep eight bits, of `candidates` that could have four.

    `before` and `after` are the signal-to-noise ratios of the outputs on held-out samples with four bits alone and with
    these operators in eight, dB; `added` are the bytes that the file has more.
    """

    operators: frozenset[int]
    candidates: int
    before: float
    after: float
    added: int

    def numbered(self, origins: Sequence[int]) -> Eights:
        """Return the same with operators numbered as in the source of the float model."""
        return replace(self, operators=frozenset(origins[operator] for operator in self.operators))


def find_eights(task: Task, journal: Journal) -> Eights | None:
    """Choose operators, and judge one configuration with and without them; None if that is significantly worse.

    Applies to mode int8x4 without a budget, which chooses operators itself.
    """
    recipe, (fitting, judging) = task.recipe, parted(task.samples)
    if recipe.mode is not Mode.INT8X4 or recipe.budget is not None or recipe.eight_bits == 0:
        return None
    methods = next((m for m in recipe.candidates if m.equalize is not None), recipe.candidates[0])
    task = replace(task, samples=fitting, methods=methods, progress=None)
    key = entry_key("eight bits", methods)
    entry: Any = journal.get(key)
    if entry is None:
        try:
            found = _try(task, judging)
        except CalibrationError:
            raise
        except TflqError:  # the contest raises it, unless another candidate can be built
            found = None
        entry = {} if found is None else {**asdict(found), "operators": sorted(found.operators)}
        journal.note(key, entry)
    return Eights(**{**entry, "operators": frozenset(entry["operators"])}) if entry else None


def _try(task: Task, judging: Sequence[Sample]) -> Eights | None:
    four, share = build(task), task.recipe.eight_bits
    errors, shares = four.refinements.errors, SHARES if share is None else (share,)
    before = best = judged(task, four, judging)
    found: Eights | None = None
    for part in shares:
        chosen = costliest(task.floats, errors, part)
        if not chosen:
            continue
        mixed = build(replace(task, wide=chosen))
        after = judged(task, mixed, judging)
        if is_far_behind(after, best, 1.0):
            break
        added = _size(mixed, task) - _size(four, task)
        found, best = Eights(chosen, len(errors), before.sqnr, after.sqnr, added), after
        if part == shares[-1] or after.divergences is None or float(after.divergences.mean()) <= ENOUGH:
            break
        eight = judged(task, build(replace(task, wide=frozenset(errors))), judging)
        if 2 * float(eight.losses.mean()) > float(after.losses.mean()):  # four bits are not to blame
            break
    return found


def costliest(floats: FloatModel, errors: Mapping[int, float], share: float) -> frozenset[int]:
    """Return the operators with the largest errors for their weights, as many as a share of all weights allows."""
    sizes = {o: sum(floats.constants[t].size for t in floats.graph.op(o).inputs[1:2]) for o in errors}
    left, chosen = share * sum(sizes.values()), set[int]()
    for operator in sorted(errors, key=lambda o: (-errors[o] / max(sizes[o], 1), o)):
        if errors[operator] > 0 and sizes[operator] <= left:
            left -= sizes[operator]
            chosen.add(operator)
    return frozenset(chosen)


def _size(built: Built, task: Task) -> int:
    return file_size(finish(built.integer.model, task.recipe))
