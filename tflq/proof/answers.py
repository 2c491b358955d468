"""An input of a whole model on which two profiles choose another element of an output: another answer, not another bit.

The search is no proof: that nothing was found shows nothing about other inputs. It begins with inputs whose answer is
the least certain, and changes a part of them as long as the two best elements come nearer to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.comparison.inputs.read import InputSource, make_inputs
from tflq.engine.api.files import Source, subject
from tflq.engine.interpreter import Plan, make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, TflqError
from tflq.interrupts import Progress, silent
from tflq.model.ir import CARRIER, GraphView, Model, TensorType, only_signed, view
from tflq.texts import Documented, display_by
from tflq.typing import Array

Inputs = dict[int, Array]
#: Inputs that are drawn, and those of them that are changed on.
_DRAWN, _KEPT = 64, 8
#: Number of limits of drawn indices, each twice the one before.
_DOUBLINGS = 8
#: The largest share of an input's elements that one step changes.
_SHARE = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """An input on which two profiles answer otherwise. `row` is that of the output, by its last axis.

    `answers` are the elements that they choose, `values` the output's row under each.
    """

    inputs: Mapping[int, Array]
    output: int
    row: int
    answers: tuple[int, int]
    values: tuple[Array, Array]


@display_by("prove:answer_card", "answer_document")
@dataclass(frozen=True, slots=True, eq=False)
class AnswerSearch(Documented):
    """The result of a search: an input, if one was found, and the number of inputs that were run under both."""

    profiles: tuple[str, str]
    found: Changed | None
    tried: int
    names: Mapping[int, str]  # of inputs and outputs

    @property
    def named_inputs(self) -> dict[str, Array]:
        """The input that was found, by name."""
        return {} if self.found is None else {self.names[t]: value for t, value in self.found.inputs.items()}


def search_answer(
    model: Source | Model,
    between: tuple[str | Profile, str | Profile],
    inputs: InputSource = None,
    *,
    tries: int = 2000,
    seed: int = 0,
    signature: str | None = None,
    progress: Progress = silent,
) -> AnswerSearch:
    """Search an input on which two profiles choose another element (arg-max) of some output.

    Args:
        model: A path, the bytes of a file, or a Model.
        between: The two profiles.
        inputs: Inputs to begin with, as for `verify`. None: inputs drawn from `seed`.
        tries: The number of inputs that are run.
        seed: The seed of all draws.
        signature: The signature, if the model has several.
        progress: Called as progress(what, done, total).

    Raises:
        InputError: No output chooses: none has more than one number along its last axis.
        UnsupportedError: A profile does not take the model.

    Example:
        >>> between = "litert-ref", "litert-xnnpack"
        >>> found = tflq.search_answer("golden/models/digits_mobilenet_int8.tflite", between).found
        >>> found.answers[0] != found.answers[1]
        True
    """
    target = only_signed(subject(model).model, signature).model
    graph = view(target)
    first, second = (by_name(profile) for profile in between)
    plans = make_plan(target, first), make_plan(target, second)
    if all(graph.tensors[tensor].shape[-1:] in ((), (1,), (0,)) for tensor in graph.outputs):
        raise InputError("no output chooses among elements: each has one number along its last axis")
    names = {t: graph.tensors[t].name or f"t{t}" for t in (*graph.inputs, *graph.outputs)}
    random, tried = np.random.default_rng(seed), 0
    kept: list[tuple[float, Inputs]] = []
    refusal: TflqError | None = None
    if inputs is None:
        begin = [_draw(graph, random, k) for k in range(_DRAWN)]
    else:
        begin = [dict(zip(graph.inputs, one, strict=True)) for one in make_inputs(target, inputs, 1, seed).samples]
    for candidate in _candidates(begin, kept, random):
        if tried == tries:
            break
        tried += 1
        if tried % 100 == 1:
            progress("inputs", tried - 1, tries)
        try:
            margin, found = _compare(graph, plans, candidate)
        except TflqError as error:
            refusal = error
            continue
        if found is not None:
            return AnswerSearch((first.name, second.name), found, tried, names)
        kept.append((margin, candidate))
        kept.sort(key=lambda one: one[0])
        del kept[_KEPT:]
    if not kept and refusal is not None:
        raise refusal
    return AnswerSearch((first.name, second.name), None, tried, names)


def _candidates(
    begin: Sequence[Inputs], kept: Sequence[tuple[float, Inputs]], random: np.random.Generator
) -> Iterator[Inputs]:
    """Yield the first inputs, then changed forms of those that were kept, the nearest to a change of answer first."""
    yield from begin
    turn = 0
    while kept:
        inputs = dict(kept[turn % len(kept)][1])
        tensor = list(inputs)[int(random.integers(len(inputs)))]
        inputs[tensor] = _mutate(inputs[tensor], random)
        turn += 1
        yield inputs


def _mutate(value: Array, random: np.random.Generator) -> Array:
    """Return the value with other numbers in some of its elements, of the size that it has."""
    flat = value.reshape(-1).copy()
    count = max(1, int(random.random() ** 3 * _SHARE * flat.size))
    at = random.choice(flat.size, count, replace=False)
    if value.dtype.kind == "f":
        flat[at] += random.normal(0, float(np.abs(flat).max(initial=0)) * 0.2 + 1e-3, count).astype(value.dtype)
    elif value.dtype.kind in "iu":
        ends, moved = np.iinfo(value.dtype), flat[at].astype(np.int64) + random.integers(-24, 25, count)
        flat[at] = np.clip(moved, ends.min, ends.max).astype(value.dtype)
    return flat.reshape(value.shape)


def _draw(graph: GraphView, random: np.random.Generator, turn: int) -> Inputs:
    """Return inputs: uniform ones, and smooth ones in every other turn.

    Wide integers may be indices: they are drawn from 0 to a limit that changes by the turn, every fourth of any sign.
    """
    inputs = {}
    for tensor in graph.inputs:
        spec = graph.tensors[tensor]
        kind = CARRIER[TensorType(spec.type)]
        values = random.random(spec.shape)
        if turn % 2 and len(spec.shape) == 4:
            for axis in (1, 2):
                values = np.sort(values, axis)
        if kind.kind in "iu":
            low, high = _ends(kind, turn)
            values = np.floor(low + values * (high - low + 1)).clip(low, high)
        inputs[tensor] = values.astype(kind)
    return inputs


def _ends(kind: np.dtype[Any], turn: int) -> tuple[int, int]:
    """Return the smallest and the largest integer that are drawn in a turn."""
    if kind.itemsize <= 2:
        return int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    high = (1 << turn % _DOUBLINGS) - 1
    return (-high if turn % 4 == 3 and kind.kind == "i" else 0), high


def _compare(graph: GraphView, plans: tuple[Plan, Plan], inputs: Inputs) -> tuple[float, Changed | None]:
    """Return the least margin of an answer, as a share of its row's span, and an answer that differs, if one does."""
    one, other = (run(plan, inputs).values for plan in plans)
    least = np.inf
    for tensor in graph.outputs:
        before, after = one[tensor], other[tensor]
        if before.ndim == 0 or before.shape[-1] < 2 or before.shape != after.shape or before.dtype.kind not in "iuf":
            continue
        rows = [np.asarray(v).reshape(-1, v.shape[-1]) for v in (before, after)]
        answers = [np.argmax(v, axis=1) for v in rows]
        apart = np.flatnonzero(answers[0] != answers[1])
        if apart.size:
            row = int(apart[0])
            chosen = int(answers[0][row]), int(answers[1][row])
            return 0.0, Changed(inputs, tensor, row, chosen, (rows[0][row], rows[1][row]))
        best = np.sort(rows[0].astype(np.float64), axis=1)
        span = best[:, -1] - best[:, 0]
        margins = (best[:, -1] - best[:, -2]) / np.where(span > 0, span, np.inf)
        least = min(least, float(margins[span > 0].min(initial=np.inf)))
    return least, None
