"""Questions to a device through the protocol of targets: drafts of single operators in, answers out.

docs/target-protocol.md describes the protocol. Nothing is expected of a device: it may crash, hang, refuse, or leave
outputs of any size, and each costs its own question only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.conformance.draft import Draft, Sample
from tflq.conformance.jobs import Job
from tflq.conformance.memory import Memory
from tflq.conformance.suite import Case
from tflq.conformance.targets import Target, finish
from tflq.ir import CARRIER, TensorType
from tflq.runtimes.children import temporary_folder

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A device's answer to a draft: outputs by sample, or the reason why there are none.

    `refused` is true if the device stated that it does not support the model.
    """

    draft: Draft
    outputs: tuple[tuple[Array, ...], ...] = ()
    reason: str = ""
    refused: bool = False

    @property
    def elements(self) -> int:
        """The number of output elements."""
        return sum(output.size for sample in self.outputs for output in sample)

    @property
    def is_answered(self) -> bool:
        """True if the device left outputs."""
        return bool(self.outputs)

    def same(self, other: Answer) -> bool:
        """Return whether the outputs of both answers have the same bits."""
        return _bits(self.outputs) == _bits(other.outputs)


def _bits(outputs: Sequence[Sequence[Array]]) -> list[bytes]:
    return [output.tobytes() for sample in outputs for output in sample]


@dataclass(slots=True)
class Tally:
    """Counts of what a device was asked: models, samples of inputs, output elements, calls, seconds in the device."""

    questions: int = 0
    samples: int = 0
    elements: int = 0
    calls: int = 0
    refused: int = 0
    failed: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Asker:
    """A device that is asked drafts in batches. `most` is the number of questions after which no more are asked."""

    target: Target
    most: int = 100_000
    progress: Callable[[str, int, int], None] = lambda what, done, total: None
    tally: Tally = field(default_factory=Tally)

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
        with temporary_folder() as folder:
            answers = self._asked(Job(folder), drafts)
        self.tally.questions += len(drafts)
        self.tally.calls += 1
        self.tally.samples += sum(len(draft.samples) for draft in drafts)
        self.tally.elements += sum(answer.elements for answer in answers)
        self.tally.refused += sum(answer.refused for answer in answers)
        self.tally.failed += sum(not answer.refused and not answer.is_answered for answer in answers)
        self.tally.seconds += time.monotonic() - started
        return answers

    def _asked(self, job: Job, drafts: Sequence[Draft]) -> list[Answer]:
        job.create()
        memory = Memory()
        cases = [_case(number, draft, memory) for number, draft in enumerate(drafts)]
        job.ask_for(cases)
        for case in cases:
            job.add(case, memory)  # type: ignore[arg-type]  # reads arrays by name, as an archive
        ended = finish(self.target, job, cases, len(cases)).by_case
        return [_answer(job, case, draft, ended.get(case.id, "")) for case, draft in zip(cases, drafts, strict=True)]


def empty_outputs(draft: Draft) -> tuple[Array, ...]:
    """Return zeros of the types and shapes of a draft's outputs."""
    return tuple(np.zeros(tuple(t.shape), CARRIER[TensorType[t.type.upper()]]) for t in draft.outputs)


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
