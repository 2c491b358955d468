"""Learn a device: the courses of all its operators side by side, so that each round is one call of the target."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from tflq.devices.conformance.draft import Draft
from tflq.devices.conformance.targets import Target
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.asking import Asker
from tflq.devices.learning.candidates import Effort, Shared
from tflq.devices.learning.findings import Findings, Learned, State
from tflq.devices.learning.form import Form
from tflq.devices.learning.kept import Kept
from tflq.devices.learning.operators import can_be_probed, learned_operator
from tflq.devices.learning.requantizing import learned_requantizer
from tflq.devices.learning.subjects import Subject
from tflq.errors import RuntimeFailed, RuntimeMissing
from tflq.progress import Progress, silent

#: Rounds without any answer after which the target is taken for broken.
_SILENT = 3


@dataclass(slots=True)
class _Running:
    """A course of questions, and the batch that it waits for."""

    name: Any
    course: Generator[list[Draft], list[Answer], Any]
    batch: list[Draft] = field(default_factory=list)
    result: Any = None
    is_done: bool = False

    def send(self, answers: list[Answer] | None) -> None:
        """Continue the course up to its next batch or its end."""
        try:
            self.batch = next(self.course) if answers is None else self.course.send(answers)
        except StopIteration as end:
            self.result, self.batch, self.is_done = end.value, [], True


def learn(
    target: Target,
    subjects: Sequence[Subject],
    effort: Effort | None = None,
    *,
    most: int = 100_000,
    progress: Progress = silent,
    kept: Kept | None = None,
) -> Findings:
    """Learn some operators of a target. Ctrl-C ends it with what is known by then.

    Args:
        target: The device.
        subjects: The operators with their types.
        effort: Numbers of models, and the seed.
        most: The number of models after which nothing more is asked.
        progress: Called before each call of the target with what is learned, operators that are done, and all.
        kept: Answers of an earlier run, which are not asked again, and the place of new ones.

    Raises:
        RuntimeMissing: There is no such program.
        RuntimeFailed: The program cannot be started.
    """
    effort = effort or Effort()
    asker, shared = Asker(target, most, progress, kept=kept), Shared()
    started, reason = time.monotonic(), ""
    # Requantizers first: all other operators are asked with them in mind.
    contractions = [s for s in subjects if can_be_probed(s) and s.kind != "int16" and s.op != "DEPTHWISE_CONV_2D"]
    first = [_Running((s.op, s.kind), learned_requantizer(s.op, s.kind, effort.seed)) for s in contractions]
    second = [_Running(s, learned_operator(s, shared, effort)) for s in subjects]
    try:
        _rounds(asker, first, "requantizers")
        for one in first:
            shared.requantizers[one.name] = one.result
        _rounds(asker, second, "operators")
    except KeyboardInterrupt:
        reason = "interrupted"
    except Exception as error:  # what is learned by now is kept
        if not asker.tally.elements:
            raise
        is_targets = isinstance(error, (RuntimeFailed, RuntimeMissing))
        reason = str(error) if is_targets else f"an error in tflq: {type(error).__name__}: {error}"
    operators = jointly([one.result if one.is_done else Learned(one.name, note=reason) for one in second])
    return Findings(
        target.name,
        _version(target),
        date.today().isoformat(),
        operators,
        tuple(shared.requantizers.values()),
        asker.tally,
        time.monotonic() - started,
        any(one.state is State.OPEN for one in operators),
        reason,
    )


def _rounds(asker: Asker, courses: Sequence[_Running], what: str) -> None:
    """Run courses side by side to their ends."""
    for one in courses:
        one.send(None)
    silent = 0
    while waiting := [one for one in courses if not one.is_done]:
        drafts = [draft for one in waiting for draft in one.batch]
        done = len(courses) - len(waiting)
        asker.progress(f"{what}: asking {len(drafts)} models", done, len(courses))
        answers = asker.ask(drafts)
        silent = 0 if any(a.is_answered or a.refused for a in answers) else silent + 1
        if silent == _SILENT:
            raise RuntimeFailed(asker.target.name, f"no answers in {_SILENT} rounds: {answers[0].reason}"[:200])
        at = 0
        for one in waiting:
            asker.progress(f"{what}: comparing {_said(one.name)}", done, len(courses))
            mine = answers[at : at + len(one.batch)]
            at += len(one.batch)
            one.send(mine)
            done += one.is_done


def _said(name: Subject | tuple[str, str]) -> str:
    """Return an operator and its types in words."""
    return " ".join(name) if isinstance(name, tuple) else str(name)


def jointly(operators: Sequence[Learned]) -> tuple[Learned, ...]:
    """Return the findings with as few profiles named as possible: of forms that fit, those of the commonest profile.

    Every form that is left of an operator reproduces all its answers, so that a choice among them is free.
    """
    left = {id(one): set(one.plain) for one in operators if one.plain}
    chosen: dict[int, str] = {}
    while left:
        counts: dict[str, int] = {}
        for one in operators:
            for name in dict.fromkeys(one.plain) if id(one) in left else ():
                counts[name] = counts.get(name, 0) + 1
        best = max(counts, key=lambda name: counts[name])
        for key in [key for key, names in left.items() if best in names]:
            chosen[key] = best
            del left[key]
    return tuple(_name(one, chosen[id(one)]) if id(one) in chosen else one for one in operators)


def _name(one: Learned, profile: str) -> Learned:
    """Return the finding with a profile as its form; the others stay beside it."""
    forms = [other for other in (one.form, *one.also) if other is not None]
    own = next(
        form for form in forms if not form.kind and not form.more and profile in one.alike.get(form.like, [form.like])
    )
    return replace(one, form=Form(profile), also=tuple(form for form in forms if form != own))


def _version(target: Target) -> str:
    """Return the version line of a target, if it is known."""
    identity = target.identity()
    return str(identity.get("version") or "")
