"""Questions to a device through the protocol of targets: drafts of single operators in, answers out.

docs/target-protocol.md describes the protocol. Nothing is expected of a device: it may crash, hang, refuse, or leave
outputs of any size, and each costs its own question only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tflq.devices.conformance.draft import Draft, Sample
from tflq.devices.conformance.jobs import Job
from tflq.devices.conformance.memory import Memory
from tflq.devices.conformance.suite import Case
from tflq.devices.conformance.targets import Target, finish
from tflq.devices.learning.answer import Answer, empty_outputs
from tflq.devices.learning.kept import Kept
from tflq.engine.runtimes.children import temporary_folder
from tflq.progress import Progress, silent


@dataclass(slots=True)
class Tally:
    """Counts of what a device was asked: models, samples of inputs, output elements, calls, seconds in the device.

    `kept` are the models whose answers an earlier run left.
    """

    questions: int = 0
    samples: int = 0
    elements: int = 0
    calls: int = 0
    refused: int = 0
    failed: int = 0
    kept: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Asker:
    """A device that is asked drafts in batches. `most` is the number of questions after which no more are asked.

    `kept` are answers of earlier runs, which are not asked again, and the place of new ones.
    """

    target: Target
    most: int = 100_000
    progress: Progress = silent
    tally: Tally = field(default_factory=Tally)
    kept: Kept | None = None

    def ask(self, drafts: Sequence[Draft]) -> list[Answer]:
        """Return an answer for each draft, in order, from one call if the device does not crash.

        Raises:
            RuntimeMissing: There is no such program.
            RuntimeFailed: The program cannot be started.
        """
        if not drafts:
            return []
        if self.tally.questions + len(drafts) > self.most:
            return [Answer(draft, reason="not asked: the limit on questions is reached") for draft in drafts]
        started = time.monotonic()
        known = [("", None) if self.kept is None else self.kept.answer(draft) for draft in drafts]
        new = [(key, draft) for (key, answer), draft in zip(known, drafts, strict=True) if answer is None]
        if new:
            with temporary_folder() as folder:
                told = iter(self._asked(Job(folder), new))
            self.tally.calls += 1
        answers = [next(told) if answer is None else answer for _, answer in known]
        self.tally.questions += len(drafts)
        self.tally.kept += len(drafts) - len(new)
        self.tally.samples += sum(len(draft.samples) for draft in drafts)
        self.tally.elements += sum(answer.elements for answer in answers)
        self.tally.refused += sum(answer.refused for answer in answers)
        self.tally.failed += sum(not answer.refused and not answer.is_answered for answer in answers)
        self.tally.seconds += time.monotonic() - started
        return answers

    def _asked(self, job: Job, keyed: Sequence[tuple[str, Draft]]) -> list[Answer]:
        drafts = [draft for _, draft in keyed]
        job.create()
        memory = Memory()
        cases = [_case(number, draft, memory) for number, draft in enumerate(drafts)]
        job.ask_for(cases)
        for case in cases:
            job.add(case, memory)  # type: ignore[arg-type]  # reads arrays by name, as an archive
        try:
            ended = finish(self.target, job, cases, len(cases)).by_case
        except BaseException:
            # The target may have been writing the last of those that are done.
            done = [(key, case, draft) for (key, draft), case in zip(keyed, cases, strict=True) if job.is_done(case)]
            self._keep([(key, _answer(job, case, draft, "")) for key, case, draft in done[:-1]])
            raise
        answers = [_answer(job, case, draft, ended.get(case.id, "")) for case, draft in zip(cases, drafts, strict=True)]
        self._keep([(key, answer) for (key, _), answer in zip(keyed, answers, strict=True)])
        return answers

    def _keep(self, answers: Sequence[tuple[str, Answer]]) -> None:
        if self.kept is not None:
            self.kept.keep(answers)


def _case(number: int, draft: Draft, memory: Memory) -> Case:
    def put(sample: Sample) -> tuple[str, ...]:
        return tuple(memory.put(value) for value in sample)

    model = memory.put(np.frombuffer(draft.model(), np.uint8))
    samples, expected = tuple(map(put, draft.samples)), put(empty_outputs(draft))
    name = f"{number % 100_000:05d}-{draft.op.lower()}"
    return Case(name, draft.op, draft.types, "smoke", draft.aim, (), model, samples, (expected,) * len(samples))


def _answer(job: Job, case: Case, draft: Draft, how: str) -> Answer:
    refusal = job.refusal(case)
    if refusal is not None:
        return Answer(draft, reason=refusal or "refused without a reason", refused=True)
    if not job.is_done(case):
        return Answer(draft, reason=how or "no outputs")
    outputs = []
    like = empty_outputs(draft)
    for sample in job.outputs(case, [like] * len(draft.samples)):
        wrong = next((one for one in sample if isinstance(one, str)), None)
        if wrong is not None:
            return Answer(draft, reason=wrong)
        outputs.append(tuple(one for one in sample if not isinstance(one, str)))
    return Answer(draft, tuple(outputs))
