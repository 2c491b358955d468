"""Questions to a device through the protocol of targets, and answers kept.

An answer of a device to a question, as a value.

Answers of a device in a folder, so that learning that was interrupted goes on without asking them again.

The learner draws its questions from a seed, so that a question is found again by its model and inputs. Failures are not
kept: a device that crashed or hung is asked again.

Questions to a device through the protocol of targets: drafts of single operators in, answers out.

docs/target-protocol.md describes the protocol. Nothing is expected of a device: it may crash, hang, refuse, or leave
outputs of any size, and each costs its own question only.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tflq.comparison.inspection.difference import digest_of
from tflq.devices.suites.draft import Draft, Sample
from tflq.devices.suites.jobs import UNSTATED, CaseFolder, MemoryUse, apart
from tflq.devices.suites.make import Case, arrays
from tflq.devices.suites.target import Target, finish
from tflq.engine.runtimes.process import temporary_folder
from tflq.errors import FileAccessError, InputError
from tflq.interrupts import Progress, silent
from tflq.model.ir import CARRIER, TensorType
from tflq.model.storage.arrays import digest, opened, write_arrays
from tflq.model.storage.documents import read_document, read_json
from tflq.model.storage.output import write_file
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class DeviceAnswer:
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

    def same(self, other: DeviceAnswer) -> bool:
        """Return whether the outputs of both answers have the same bits."""
        return _digest(self) == _digest(other)


def _digest(answer: DeviceAnswer) -> bytes:
    return digest_of(output for sample in answer.outputs for output in sample)


def empty_outputs(draft: Draft) -> tuple[Array, ...]:
    """Return zeros of the types and shapes of a draft's outputs."""
    return tuple(np.zeros(tuple(t.shape), CARRIER[TensorType[t.type.upper()]]) for t in draft.outputs)


SCHEMA = "tflq/learn-work/1"
_RECORD, _LIST, _PATTERN = "record.json", "answers", "answers-*.npz"


class KeptAnswers:
    """A folder of answers. Equal questions that a course asks twice have two answers.

    Raises:
        InputError: It holds answers of another target or version of tflq, or damaged ones.
        FileAccessError: It cannot be read or written, or holds something else.
    """

    def __init__(self, folder: str, target: Mapping[str, Any]) -> None:
        self.folder, self._turns = Path(folder), Counter[str]()
        self._answers: dict[str, tuple[str | None, tuple[tuple[Array, ...], ...]]] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(self.folder.iterdir())
        except OSError as error:
            raise FileAccessError(folder, error.strerror or str(error)) from error
        record = {"schema": SCHEMA, "tflq": version("tflq"), "target": json.loads(json.dumps(target))}
        if is_empty:
            write_file(self.folder / _RECORD, json.dumps(record, indent=1).encode())
        self._check(record)
        self._files = sorted(self.folder.glob(_PATTERN))
        for file in self._files:
            self._read(file)

    def __len__(self) -> int:
        return len(self._answers)

    def answer(self, draft: Draft) -> tuple[str, DeviceAnswer | None]:
        """Return the key of a question that is asked now, and its answer if there is one."""
        key = _key_of(draft)
        self._turns[key] += 1
        key = f"{key}-{self._turns[key]}"
        if key not in self._answers:
            return key, None
        refusal, outputs = self._answers[key]
        like = empty_outputs(draft)
        fits = refusal is not None or (
            len(outputs) == len(draft.samples)
            and all([(o.dtype, o.shape) for o in one] == [(o.dtype, o.shape) for o in like] for one in outputs)
        )
        if not fits:
            raise InputError("holds outputs of other shapes; remove the folder", name=str(self.folder))
        return key, DeviceAnswer(draft, outputs, refusal or "", refusal is not None)

    def keep(self, answers: Sequence[tuple[str, DeviceAnswer]]) -> None:
        """Write answers, the failures among them left out, as one file: whole or not at all."""
        told = [(key, answer) for key, answer in answers if answer.is_answered or answer.refused]
        if not told:
            return
        data = {digest(output): output for _, a in told for sample in a.outputs for output in sample}
        listed = [
            {
                "key": key,
                "refused": a.reason if a.refused else None,
                "outputs": [list(map(digest, s)) for s in a.outputs],
            }
            for key, a in told
        ]
        text = json.dumps({"schema": SCHEMA, _LIST: listed}).encode()
        named = {f"data/{name}": value for name, value in data.items()}
        file = self.folder / f"answers-{len(self._files):05d}.npz"
        write_arrays(file, {_LIST: np.frombuffer(text, np.uint8), **named}, compress=True)
        self._files.append(file)

    def remove(self) -> None:
        """Remove the folder's answers, and the folder if nothing else is in it."""
        try:
            for path in (*self.folder.glob(_PATTERN), self.folder / _RECORD):
                path.unlink()
            self.folder.rmdir()
        except OSError:
            return

    def _check(self, record: Mapping[str, Any]) -> None:
        place = self.folder / _RECORD
        if not place.is_file():
            raise FileAccessError(str(self.folder), "is a folder that holds something else; name a new one")
        found = read_document(place)
        if not isinstance(found, dict) or found.get("schema") != SCHEMA or not isinstance(found.get("target"), dict):
            raise InputError("is not a record of a learner's answers", name=str(place), expected=SCHEMA)
        if found.get("tflq") != record["tflq"]:
            why = f"holds answers to questions of tflq {found.get('tflq')!s:.40}"
        elif found["target"] != record["target"]:
            why = f"holds answers of another target ({apart(found['target'], record['target'])})"
        else:
            return
        raise InputError(f"{why}: name another folder with --work, or remove this one", name=str(self.folder))

    def _read(self, file: Path) -> None:
        try:
            with opened(file) as archive:
                document = read_json(archive[_LIST].tobytes(), str(file))
                for one in document[_LIST]:
                    outputs = tuple(tuple(arrays(archive, sample)) for sample in one["outputs"])
                    self._answers[str(one["key"])] = (one["refused"], outputs)
        except (InputError, KeyError, TypeError, AttributeError) as error:
            why = "is damaged; remove it, and its questions are asked again"
            raise InputError(why, name=str(file), got=str(error)[:120]) from error


def _key_of(draft: Draft) -> str:
    mark = hashlib.sha256(draft.model())
    for sample in draft.samples:
        for value in sample:
            mark.update(digest(value).encode())
    return mark.hexdigest()[:40]


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

    `kept` are answers of earlier runs, which are not asked again, and the place of new ones. `stated` are the operators
    that the device stated in an earlier call; it refuses all others, and is not asked about them.
    """

    target: Target
    most: int = 100_000
    progress: Progress = silent
    tally: Tally = field(default_factory=Tally)
    kept: KeptAnswers | None = None
    stated: frozenset[str] | None = None

    def ask(self, drafts: Sequence[Draft]) -> list[DeviceAnswer]:
        """Return an answer for each draft, in order, from one call if the device does not crash.

        Raises:
            RuntimeMissing: There is no such program.
            RuntimeFailed: The program cannot be started.
        """
        if not drafts:
            return []
        if self.tally.questions + len(drafts) > self.most:
            return [DeviceAnswer(draft, reason="not asked: the limit on questions is reached") for draft in drafts]
        started = time.monotonic()
        known = [self._known(draft) for draft in drafts]
        new = [(key, draft) for (key, answer), draft in zip(known, drafts, strict=True) if answer is None]
        if new:
            with temporary_folder() as folder:
                told = iter(self._asked(CaseFolder(folder), new))
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

    def _known(self, draft: Draft) -> tuple[str, DeviceAnswer | None]:
        """Return the key of a question, and the answer that is known without asking."""
        if self.stated is not None and draft.op not in self.stated:
            return "", DeviceAnswer(draft, reason=UNSTATED, refused=True)
        return ("", None) if self.kept is None else self.kept.answer(draft)

    def _asked(self, job: CaseFolder, keyed: Sequence[tuple[str, Draft]]) -> list[DeviceAnswer]:
        drafts = [draft for _, draft in keyed]
        job.create()
        job.stated, memory = self.stated, MemoryUse()
        cases = [_case(number, draft, memory) for number, draft in enumerate(drafts)]
        alone = not self.tally.calls
        try:  # an archive reads arrays by name, as this memory does
            ended = finish(self.target, job, memory, cases, len(cases), alone=alone).by_case  # type: ignore[arg-type]
        except BaseException:
            # The target may have been writing the last of those that are done.
            done = [(key, case, draft) for (key, draft), case in zip(keyed, cases, strict=True) if job.is_done(case)]
            self._keep([(key, _answer(job, case, draft, "")) for key, case, draft in done[:-1]])
            raise
        self.stated = job.stated
        answers = [_answer(job, case, draft, ended.get(case.id, "")) for case, draft in zip(cases, drafts, strict=True)]
        self._keep([(key, answer) for (key, _), answer in zip(keyed, answers, strict=True)])
        return answers

    def _keep(self, answers: Sequence[tuple[str, DeviceAnswer]]) -> None:
        if self.kept is not None:
            self.kept.keep(answers)


def _case(number: int, draft: Draft, memory: MemoryUse) -> Case:
    def put(sample: Sample) -> tuple[str, ...]:
        return tuple(memory.put(value) for value in sample)

    model = memory.put(np.frombuffer(draft.model(), np.uint8))
    samples, expected = tuple(map(put, draft.samples)), put(empty_outputs(draft))
    name = f"{number % 100_000:05d}-{draft.op.lower()}"
    return Case(name, draft.op, draft.types, "smoke", draft.aim, (), model, samples, (expected,) * len(samples))


def _answer(job: CaseFolder, case: Case, draft: Draft, how: str) -> DeviceAnswer:
    refusal = job.refusal(case)
    if refusal is not None:
        return DeviceAnswer(draft, reason=refusal or "refused without a reason", refused=True)
    if not job.is_done(case):
        return DeviceAnswer(draft, reason=how or "no outputs")
    outputs = []
    like = empty_outputs(draft)
    for sample in job.outputs(case, [like] * len(draft.samples)):
        wrong = next((one for one in sample if isinstance(one, str)), None)
        if wrong is not None:
            return DeviceAnswer(draft, reason=wrong)
        outputs.append(tuple(one for one in sample if not isinstance(one, str)))
    return DeviceAnswer(draft, tuple(outputs))
