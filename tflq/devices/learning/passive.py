"""Learn from dumps alone: no questions, only what a device computed of whole models.

Each operator of a dump is an answer to a question that was not chosen. Half of the answers of an operator and its types
select the forms, the other half confirms them, so that at least two answers are needed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from tflq.comparison.verification.dump import Dump
from tflq.devices.conformance.draft import Draft
from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.asking import Tally
from tflq.devices.learning.candidates import Effort, Shared, choose_by
from tflq.devices.learning.findings import Findings, Learned
from tflq.devices.learning.learner import jointly
from tflq.devices.learning.subjects import Subject
from tflq.diagnosis.localization import operator_alone
from tflq.engine.api.part import Part
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.flatbuf import write
from tflq.model.ir import Model, TensorType, view

#: The profile under which tensors that a dump lacks are computed.
_BASE = "litert-ref"


@dataclass(frozen=True, slots=True, eq=False)
class Dumped(Draft):
    """An operator of a model as a draft: the file of the operator alone."""

    file: bytes = b""

    def model(self) -> bytes:
        """Return the `.tflite` file."""
        return self.file


def learn_from_dumps(sources: Sequence[tuple[Model, Sequence[Dump]]], name: str) -> Findings:
    """Learn operators from dumps of models; `name` is the source that the profile names."""
    started = time.monotonic()
    answers: dict[Subject, list[Answer]] = {}
    for model, dumps in sources:
        for dump in dumps:
            for subject, answer in _answers(model, dump):
                answers.setdefault(subject, []).append(answer)
    shared, effort = Shared(), Effort()
    operators = jointly([_learn(subject, found, shared, effort) for subject, found in answers.items()])
    tally = Tally(samples=sum(len(found) for found in answers.values()))
    tally.elements = sum(answer.elements for found in answers.values() for answer in found)
    spent = time.monotonic() - started
    return Findings(name, "", date.today().isoformat(), operators, (), tally, spent)


def _answers(model: Model, dump: Dump) -> list[tuple[Subject, Answer]]:
    found = []
    base = by_name(_BASE)
    for op in view(model).ops:
        try:
            part = operator_alone(model, dump, op.index, base)
            answer = answer_of([part])
        except TflqError:
            continue
        if answer is not None:
            found.append(answer)
    return found


def answer_of(parts: Sequence[Part]) -> tuple[Subject, Answer] | None:
    """Return an operator on one dump's inputs or several as a question with its answer; None if it is not of codes."""
    first = parts[0]
    graph, op = first.graph, first.op
    types = [None if t < 0 else graph.tensors[t].type for t in op.inputs]
    results = [graph.tensors[t].type for t in op.outputs]
    if not all(t is None or isinstance(t, TensorType) for t in (*types, *results)):
        return None
    left = " ".join("none" if t is None else t.label for t in types if t is None or isinstance(t, TensorType))
    right = " ".join(t.label for t in results if isinstance(t, TensorType))
    outputs = [tuple(part.got.get(part.tensors[t]) for t in graph.outputs) for part in parts]
    given = tuple(tuple(part.inputs[t] for t in graph.inputs) for part in parts)
    got = tuple(tuple(value for value in values if value is not None) for values in outputs)
    if not set(f"{left} {right}".split()) & set(KINDS) or any(
        len(a) < len(b) for a, b in zip(got, outputs, strict=True)
    ):
        return None
    draft = Dumped(op.name, "a dump", (_Key(),), (), given, file=write(first.model))  # type: ignore[arg-type]
    return Subject(op.name, f"{left} -> {right}"), Answer(draft, got)


class _Key:
    """The place of a draft's operands, which its file holds."""


def _learn(subject: Subject, answers: Sequence[Answer], shared: Shared, effort: Effort) -> Learned:
    first, fresh = list(answers[::2]), list(answers[1::2])
    course = choose_by(subject, first, shared, effort)
    return course.confirm_by(fresh)
