"""One benchmark: a model's signatures, each a race of profiles and runtimes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from tflq.comparison.benchmark.race import Race
from tflq.comparison.benchmark.results import Benched, Case, OperatorTime, Side
from tflq.comparison.inspection.operators import macs_with_calls
from tflq.comparison.verification.feeding import Feed, Feeds, make_feeds
from tflq.comparison.verification.preparation import PLAIN, Preparation
from tflq.engine.api.files import Source, package
from tflq.engine.api.subject import Subject, subject
from tflq.engine.interpreter.limits import current_limits
from tflq.engine.microkernels.forms import choose
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import RUNTIMES, ProcessRuntime, Step
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.engine.runtimes import named as runtime_named
from tflq.engine.runtimes.children import temporary_folder
from tflq.engine.runtimes.timed import Contestant, Job, tflq_contestant
from tflq.errors import OptionError, RuntimeMissing
from tflq.model.ir import Model, Signed, signed, view
from tflq.progress import Progress, silent
from tflq.statements import Statement

#: Seconds that a process may take for one answer.
_TIMEOUT = 900.0
#: The share of a side's seconds that is spent on timing its operators.
_OF_OPERATORS = 0.5


class Benchmark:
    """A benchmark of a model: profiles of tflq and real runtimes, each in a process of its own, timed in turns.

    `run` fills `result`, which holds what is known even if `run` is interrupted.
    """

    def __init__(
        self,
        model: Source | Model,
        profiles: Sequence[str] = ("litert-ref",),
        against: Sequence[str] | None = None,
        *,
        inputs: Feed = None,
        samples: int = 1,
        seed: int = 0,
        signature: str | None = None,
        preparation: Preparation = PLAIN,
        seconds: float = 2.0,
        runs: int | None = None,
        threads: int = 1,
        python: str | None = None,
        progress: Progress = silent,
    ) -> None:
        """Read the model and its inputs.

        Args:
            model: A path, the bytes of a file, or a Model.
            profiles: Names of profiles, or paths of their files. All others are compared with the first.
            against: Names of real runtimes, which must be installed; none if it is empty. None: all that are installed.
            inputs, samples, seed, preparation: The inputs, as for `verify`; invokes take them in turn.
            signature: The only signature to time. None: every one, as a case of its own.
            seconds: Time of the invokes of each side.
            runs: The least number of invokes of each side, in place of `seconds`.
            threads: Threads of every runtime. A profile computes an operator in one.
            python: The Python in which runtimes are installed, if not this one.
            progress: Called as progress(what, done, total).

        Raises:
            FileAccessError, FormatError, ModelError: See `load`.
            UnknownNameError: There is no such profile, runtime or signature.
            InputError: The inputs do not fit.
        """
        if not profiles:
            raise OptionError("give at least one profile")
        for name in against or ():
            runtime_named(name)
        self._names = [str(name) for name in dict.fromkeys(profiles)]
        names = tuple(profile_by_name(name).name for name in self._names)
        self._subject = subject(model)
        self._parts = signed(self._subject.model, signature)
        self._feeds = make_feeds(self._parts, inputs, samples, seed, preparation)
        self._against = RUNTIMES if against is None else dict.fromkeys(against)
        self._is_asked = against is not None
        self._seconds, self._runs, self._threads, self._python, self._tell = seconds, runs, threads, python, progress
        form = choose(is_wide=False)
        self.result = Benched(self._subject.facts, names, threads, "none" if form is None else form.name)

    def run(self) -> Benched:
        """Time everything and return the result.

        Raises:
            RuntimeMissing: A runtime that was asked for is not installed.
            TflqError: tflq refused the model or failed under the first profile.
        """
        self.result.interrupted = True
        notes = []
        with temporary_folder() as folder, _file_of(self._subject, Path(folder)) as path:
            for part in self._parts:
                steps = _steps_of(part, self._feeds)
                if not steps:
                    text = f"{part.name}: not timed, since no inputs are given for it"
                    notes.append(Statement(text, "not-timed", signature=part.name))
                    self.result.notes = tuple(notes)
                    continue
                limits = current_limits()
                job = Job(path, steps, part.root.subgraph, Path(folder), (limits.memory, limits.work))
                case = Case(part.name, replace(self._feeds.facts, samples=len(steps)))
                self.result.cases.append(case)
                self._race(part, job, case)
        self.result.interrupted = False
        return self.result

    def _race(self, part: Signed, job: Job, case: Case) -> None:
        with ExitStack() as stack:
            race = Race(stack, job, self._tell)
            base: Contestant | None = None
            for number, (name, shown) in enumerate(zip(self._names, self.result.profiles, strict=True)):
                side = Side(shown, is_tflq=True)
                case.sides.append(side)
                runtime = tflq_contestant(name, _TIMEOUT)
                ready = race.enter(side, runtime)
                base = ready if number == 0 else base
            for name in self._against:
                if name not in self.result.missing:
                    self._enter(race, name, case)
            race.run(self._seconds, self._runs)
            if base is not None:
                self._tell("timing operators", 0, 0)
                self._finish(part, base, case)

    def _enter(self, race: Race, name: str, case: Case) -> None:
        """Start a real runtime; one that is not installed is named, unless it was asked for."""
        runtime = runtime_by_name(name, python=self._python, threads=self._threads, timeout=_TIMEOUT)
        assert isinstance(runtime, ProcessRuntime)  # it is one by name
        side = Side(name, is_tflq=False)
        try:
            race.enter(side, runtime)
        except RuntimeMissing as error:
            if self._is_asked:
                raise
            self.result.missing = {**self.result.missing, name: error.reason}
        else:
            case.sides.append(side)

    def _finish(self, part: Signed, base: Contestant, case: Case) -> None:
        """Time the operators of tflq."""
        times = base.operators(self._seconds * _OF_OPERATORS)
        ops = {op.index: op for op in view(part.model).ops}
        case.operators = tuple(
            OperatorTime(index, ops[index].name, seconds, macs_with_calls(ops[index])) for index, seconds in times
        )


def _steps_of(part: Signed, feeds: Feeds) -> list[Step]:
    """Return the steps of a signature, with all inputs: those that are carried over have their first values."""
    return [replace(fed, carried=()).step() for fed in feeds.steps if fed.part is part]


@contextmanager
def _file_of(given: Subject, folder: Path) -> Iterator[str]:
    """Yield the path of the model's file; one is written for a model that is none, or is in a package."""
    path = given.facts.path
    if path and os.path.isfile(path) and package(path) is None:
        yield os.path.abspath(path)
        return
    file = folder / "model.tflite"
    file.write_bytes(given.data)
    yield str(file)
