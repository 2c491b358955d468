"""Two models side by side: operators, options, tensors, weights in LSB, scales and the constants derived from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from tflq.comparison.inspection.difference import difference
from tflq.comparison.inspection.operators import prepare_alone
from tflq.comparison.inspection.prepared import constants_of
from tflq.engine.api.files import ModelFacts, Source, subject
from tflq.engine.profiles import Profile
from tflq.engine.profiles import by_name as profile_by_name
from tflq.errors import TflqError
from tflq.model.ir import GraphView, Model, Operator, Signed, TensorSpec, signed, view
from tflq.model.ir.model import in_words
from tflq.texts import Tabular, display_by


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One difference. `first` and `second` are operator indices, None if a model lacks the operator.

    `what` is "operator", "version", "options.<name>", "input <n> maker", "<input|output> <n> <type, shape, scale, zero
    point or values>" or "derived <constant>". For a change of the model itself both indices are None, `op` is "" and
    `what` is "subgraphs", "signature", "model <input|output>s" or "model <input|output> <n> <...>". `signature` is the
    one that runs the operator, if a model has several.
    """

    first: int | None
    second: int | None
    op: str
    what: str
    before: str
    after: str
    signature: str = ""


@display_by("diff:diff_report", "diff_document", "changes")
@dataclass(frozen=True, slots=True)
class ModelDiff(Tabular):
    """Both models, and the differences between their signatures, in order."""

    first: ModelFacts
    second: ModelFacts
    changes: tuple[ModelChange, ...]


def diff(
    first: Source | Model, second: Source | Model, profile: str | Profile = "litert-ref", signature: str | None = None
) -> ModelDiff:
    """Compare the signatures of two models, by name, or one of them; operators are matched by type, in order.

    Derived constants are those with which `profile` prepares both operators.

    Raises:
        FileAccessError, FormatError, ModelError: See `load`.
        UnknownNameError: There is no profile or signature of that name.

    Example:
        >>> model = tflq.load("golden/models/digits_lstm_int8.tflite")
        >>> tflq.diff(model, model)
        first and second: no difference
        same operators, options, tensors and constants
        Next: .first, .second
    """
    one, two, chosen = subject(first), subject(second), profile_by_name(profile)
    changes: list[ModelChange] = []
    for name, a, b in _pairs(signed(one.model, signature), signed(two.model, signature)):
        if a is None or b is None:
            before, after = ("none" if part is None else "present" for part in (a, b))
            changes.append(ModelChange(None, None, "", "signature", before, after, name))
        else:
            found = _changes(view(a.model), view(b.model), chosen)
            changes += [replace(change, signature=name) for change in found]
    return ModelDiff(one.facts, two.facts, tuple(changes))


def _pairs(first: Sequence[Signed], second: Sequence[Signed]) -> Iterator[tuple[str, Signed | None, Signed | None]]:
    """Yield the signatures of both models by name; models with one each are a pair without a name."""
    if len(first) == 1 == len(second):
        yield first[0].name or second[0].name, first[0], second[0]
        return
    one, two = ({str(part.root): part for part in some} for some in (first, second))
    for name in {**one, **two}:
        yield name, one.get(name), two.get(name)


def _changes(a: GraphView, b: GraphView, profile: Profile) -> tuple[ModelChange, ...]:
    """Return the differences between two graphs."""
    ops = [op.name for op in a.ops], [op.name for op in b.ops]
    changes: list[ModelChange] = []
    pairs: dict[int, int] = {}
    for tag, i0, i1, j0, j1 in SequenceMatcher(None, *ops, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs |= dict(zip(range(i0, i1), range(j0, j1), strict=True))
            continue
        changes += [ModelChange(i, None, ops[0][i], "operator", ops[0][i], "none") for i in range(i0, i1)]
        changes += [ModelChange(None, j, ops[1][j], "operator", "none", ops[1][j]) for j in range(j0, j1)]
    for i, j in pairs.items():
        details = (*_operators(a, b, i, j, pairs), *_derive(a.model, b.model, i, j, profile))
        changes += [ModelChange(i, j, ops[0][i], *change) for change in details]
    edges = (ModelChange(None, None, "", *change) for change in _edges(a, b, pairs))
    return (*edges, *sorted(changes, key=_place))


_Found = tuple[str, str, str]


def _place(change: ModelChange) -> tuple[int, int]:
    return (change.first if change.first is not None else change.second or 0, change.second or 0)


def _edges(a: GraphView, b: GraphView, pairs: dict[int, int]) -> Iterator[_Found]:
    """Yield differences of the graphs' inputs and outputs."""
    counts = len(a.model.subgraphs), len(b.model.subgraphs)
    if counts[0] != counts[1]:
        yield "subgraphs", str(counts[0]), str(counts[1])
    for kind, first, second in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        if len(first) != len(second):
            yield f"model {kind}s", str(len(first)), str(len(second))
        for position, (x, y) in enumerate(zip(first, second, strict=False)):
            yield from ((f"model {kind} {position} {what}", p, q) for what, p, q in _tensors(a, b, x, y))
            makers = _maker(a, x), _maker(b, y)
            if pairs.get(makers[0], makers[0]) != makers[1]:
                yield f"model {kind} {position} maker", str(makers[0]), str(makers[1])


def _operators(a: GraphView, b: GraphView, i: int, j: int, pairs: dict[int, int]) -> Iterator[_Found]:
    one, two = a.op(i), b.op(j)
    if one.version != two.version:
        yield "version", str(one.version), str(two.version)
    yield from _options(one.record, two.record)
    for kind, first, second in (("input", one.inputs, two.inputs), ("output", one.outputs, two.outputs)):
        if len(first) != len(second):
            yield f"{kind}s", str(len(first)), str(len(second))
        for position, (x, y) in enumerate(zip(first, second, strict=False)):
            yield from ((f"{kind} {position} {what}", before, after) for what, before, after in _tensors(a, b, x, y))
            makers = _maker(a, x), _maker(b, y)
            if kind == "input" and pairs.get(makers[0], makers[0]) != makers[1]:
                yield f"input {position} maker", str(makers[0]), str(makers[1])


def _maker(graph: GraphView, tensor: int) -> int:
    """Return the operator that makes the tensor, -1 if none does."""
    maker = graph.maker(tensor)
    return -1 if maker is None else maker.index


def _options(one: Operator, two: Operator) -> Iterator[_Found]:
    first, second = (dict(o.options.fields) if o.options is not None else {} for o in (one, two))
    for name in {**first, **second}:
        before, after = first.get(name), second.get(name)
        if not np.array_equal(np.asarray(before, object), np.asarray(after, object)):
            yield f"options.{name}", _in_words(one, name, before), _in_words(two, name, after)


def _in_words(operator: Operator, name: str, value: object) -> str:
    return "none" if operator.options is None else str(in_words(operator.options.table, name, value))


def _tensors(a: GraphView, b: GraphView, x: int, y: int) -> Iterator[_Found]:
    if x < 0 or y < 0:
        if x != y:
            yield "present", str(x >= 0), str(y >= 0)
        return
    one, two = a.tensors[x], b.tensors[y]
    if one.type != two.type:
        yield "type", getattr(one.type, "label", str(one.type)), getattr(two.type, "label", str(two.type))
    if one.shape != two.shape:
        yield "shape", str(list(one.shape)), str(list(two.shape))
    yield from _quantization(one, two)
    before, after = a.constant(x), b.constant(y)
    if before is None or after is None:
        if (before is None) != (after is None):
            yield "stored", str(before is not None), str(after is not None)
        return
    values = difference(before, after)
    if not values.same:
        text = values.problem or f"{values.differing} of {values.elements} differ, up to {values.largest} {values.unit}"
        yield "values", "", text


def _quantization(one: TensorSpec, two: TensorSpec) -> Iterator[_Found]:
    for name in ("scale", "zero_point"):
        first, second = (np.zeros(0) if s.quantization is None else getattr(s.quantization, name) for s in (one, two))
        if first.shape != second.shape:
            yield name.replace("_", " "), f"{first.size} entries", f"{second.size} entries"
        elif not np.array_equal(first, second):
            where = int(np.argmax(first != second))
            at = f" at {where} of {first.size}" if first.size > 1 else ""
            yield name.replace("_", " "), f"{first[where]}{at}", f"{second[where]}{at}"


def _derive(a: Model, b: Model, i: int, j: int, profile: Profile) -> Iterator[_Found]:
    one, two = _constants(a, i, profile), _constants(b, j, profile)
    for name in {**one, **two}:
        if one.get(name) != two.get(name):
            yield f"derived {name}", *_first_unequal(one.get(name), two.get(name))


def _first_unequal(before: Any, after: Any) -> tuple[str, str]:
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after) > 1:
        where = next(k for k, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1])
        count = sum(x != y for x, y in zip(before, after, strict=True))
        return f"{before[where]} at {where}", f"{after[where]} at {where} ({count} such)"
    plain = [v[0] if isinstance(v, tuple) and len(v) == 1 else v for v in (before, after)]
    return str(plain[0]), str(plain[1])


def _constants(model: Model, index: int, profile: Profile) -> dict[str, Any]:
    try:
        prepared = prepare_alone(model, index, profile).prepared
    except TflqError as error:
        return {"refusal": str(error)}
    if prepared is None:
        return {}
    constants = constants_of(prepared)
    stages = {
        f"{stage.field} {name}": getattr(stage, name)
        for stage in constants.stages
        for name in ("kind", "mantissa", "shift", "low", "high")
    }
    return {**stages, **dict(constants.scalars)}
