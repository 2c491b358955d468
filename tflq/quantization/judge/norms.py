"""Normalizations with activations of 16 bits, or in float, if that wins back what 8 bits lose.

The variances of a layer norm's rows differ by orders of magnitude, and so do their reciprocal roots. With one scale of
8 bits, rows of little variance keep one or two digits. The operators around them, up to those with weights, hold few
multiply-accumulates. One configuration is built with and without 16 bits there, and judged on held-back samples.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import CalibrationError, OptionError, TflqError
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import OperatorView
from tflq.quantization.build.build import Built, build
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import parted
from tflq.quantization.judge.journal import Journal, entry_key
from tflq.quantization.judge.scoring import judged
from tflq.quantization.portable.forms.editing import Editing, compose, replaced
from tflq.quantization.portable.forms.rewrite import Rewrite, Rewritten, rewrite_of
from tflq.quantization.recipe.recipe import Mode, Norms
from tflq.quantization.recipe.stamp import finish
from tflq.quantization.scheme.float_graph import FloatModel, prepare
from tflq.quantization.scheme.modes import modes_of

#: Operators that a normalization begins with, squares, and those without weights that belong to it if connected.
_ROOTS = frozenset({"RSQRT", "SQRT"})
_SQUARES = frozenset({"SQUARED_DIFFERENCE", "SQUARE", "POW"})
_AROUND = _ROOTS | {"ADD", "SUB", "MUL", "DIV", "NEG", "MEAN", "SUM", "RESHAPE", "EXPAND_DIMS", "SQUEEZE"}
#: 16 bits must reduce the loss by this factor, a decibel: they cost bytes, and time on CPUs.
_WORTH = 1.25
#: The reason why operators of normalizations stay in float.
REASON = "part of a normalization (--norms float)"


@dataclass(frozen=True, slots=True)
class WideNorms:
    """The operators of normalizations that compute in `form`, by index in the source.

    `before` and `after` are the signal-to-noise ratios of the outputs on held-back samples with 8 bits and in this
    form, dB; `added` are the bytes that the file has more.
    """

    operators: tuple[int, ...]
    form: Norms
    before: float
    after: float
    added: int


def widen_norms(form: Rewritten, task: Task, journal: Journal) -> tuple[Rewritten, Task, WideNorms | None]:
    """Return the float model, its task and the figures, with normalizations as the recipe asks for them.

    Under AUTO nothing changes if there are none, in modes without activations of 8 bits, with a budget, in portable
    models, or if 16 bits are not worth it.

    Raises:
        OptionError: The form that the recipe asks for cannot be built, or has nothing to apply to.
    """
    recipe = task.recipe
    is_free = recipe.mode in (Mode.INT8, Mode.INT8X4) and not recipe.portable and recipe.budget is None
    around = normalizations(task.floats) if is_free and recipe.norms is not Norms.INT8 else frozenset()
    if not around:
        if recipe.norms in (Norms.INT16, Norms.FLOAT):
            lack = "the model has no normalization" if is_free else "for modes int8 and int8x4 without a budget"
            raise OptionError(f"--norms {recipe.norms.value}: {lack}")
        return form, task, None
    wide = _in_float(form, task, around) if recipe.norms is Norms.FLOAT else _in_16_bits(form, task, around)
    key = entry_key("norms", recipe.candidates[0])
    entry: Any = journal.get(key)
    if entry is None:
        try:
            found = _try(task, *wide)
        except CalibrationError:
            raise
        except TflqError as error:
            if recipe.norms is not Norms.AUTO:
                raise OptionError(f"--norms {recipe.norms.value} cannot be built: {error}") from error
            found = None
        entry = {} if found is None else {**asdict(found), "form": found.form.value}
        journal.note(key, entry)
    if not entry:
        return form, task, None
    return *wide, WideNorms(**{**entry, "operators": tuple(entry["operators"]), "form": Norms(entry["form"])})


def normalizations(floats: FloatModel) -> frozenset[int]:
    """Return the operators without weights that are connected with a root, without those at the graph's edges.

    Sums that a residual stream consists of are among them; operators that have no form of 16 bits are not, but squares
    are: they can be written as products.
    """
    graph = floats.graph
    modes, _ = modes_of(floats, Mode.INT16X8, {})
    edges = {*graph.inputs, *graph.outputs}
    free = {
        op.index
        for op in graph.ops
        if (op.name in _AROUND and modes[op.index] is not None) or (op.name in _SQUARES and _is_square(floats, op))
        if edges.isdisjoint((*op.inputs, *op.outputs)) and all(map(floats.is_float, op.outputs))
    }
    found, open_ = set[int](), [index for index in free if graph.op(index).name in _ROOTS]
    while open_:
        op = graph.op(open_.pop())
        if op.index in free and op.index not in found:
            found.add(op.index)
            open_ += [maker.index for t in op.inputs if (maker := graph.maker(t)) is not None]
            open_ += [reader.index for t in op.outputs for reader in graph.readers(t)]
    return frozenset(found)


def _is_square(floats: FloatModel, op: OperatorView) -> bool:
    if op.name == "POW":
        exponent = floats.constants.get(op.inputs[1])
        return exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]) == 2
    return floats.constants.keys().isdisjoint(op.inputs)


def _in_float(form: Rewritten, task: Task, around: Collection[int]) -> tuple[Rewritten, Task]:
    return form, replace(task, kept_float={**dict.fromkeys(around, REASON), **task.kept_float})


def _in_16_bits(form: Rewritten, task: Task, around: Collection[int]) -> tuple[Rewritten, Task]:
    """Return the model with its squares written as products, and the task with 16 bits around them."""
    squares = {task.floats.origins[i] for i in around if task.floats.graph.op(i).name in _SQUARES}
    changed = replaced(form.model, dict.fromkeys(_SQUARES, _product_form), squares)
    floats = prepare(changed.model)
    reasons = {task.floats.origins[i]: why for i, why in task.kept_float.items()}
    kept = {i: reasons[o] for i, n in enumerate(floats.origins) if (o := changed.origins[n]) in reasons}
    norms = normalizations(floats) - kept.keys()
    wide = Task(
        floats, task.samples, task.recipe, task.methods, kept, norms=norms, progress=task.progress, jobs=task.jobs
    )
    return compose(form, changed), wide


def _product_form(editing: Editing, operator: OperatorView) -> Rewrite:
    """Write a square, or the square of a difference, as MUL, which has a kernel of 16 bits."""
    inputs, result = [editing.new(t) for t in operator.inputs], editing.new(operator.outputs[0])
    if operator.name == "SQUARED_DIFFERENCE":
        difference = editing.tensor(operator.output(), "/difference")
        editing.operator("SUB", inputs, [difference], operator.index, "SubOptions", pot_scale_int16=False)
        inputs = [difference]
    editing.operator("MUL", [inputs[0], inputs[0]], [result], operator.index, "MulOptions")
    return rewrite_of(operator, ["MUL"], "squares have no kernel of 16 bits", 0)


def _try(task: Task, form: Rewritten, wide: Task) -> WideNorms | None:
    """Build one configuration in both forms; None if the other one is not worth it."""
    fitting, judging = parted(task.samples)
    methods = next((m for m in task.recipe.candidates if m.equalize is not None), task.recipe.candidates[0])
    pair = [replace(t, samples=fitting, methods=methods, progress=None) for t in (task, wide)]
    built = [build(t) for t in pair]
    make_plan(built[1].integer.model, by_name(task.recipe.profile))
    before, after = (judged(t, b, judging) for t, b in zip(pair, built, strict=True))
    losses = [float(np.mean(score.losses)) for score in (before, after)]
    if task.recipe.norms is Norms.AUTO and losses[0] < _WORTH * losses[1]:
        return None
    chosen = wide.norms or normalizations(wide.floats)
    sources = {form.origins[wide.floats.origins[index]] for index in chosen}
    what = Norms.FLOAT if task.recipe.norms is Norms.FLOAT else Norms.INT16
    sizes = [_size(t, b) for t, b in zip(pair, built, strict=True)]
    return WideNorms(tuple(sorted(sources)), what, before.sqnr, after.sqnr, sizes[1] - sizes[0])


def _size(task: Task, built: Built) -> int:
    return file_size(finish(built.integer.model, task.recipe))
