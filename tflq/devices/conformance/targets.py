"""Systems under test: a command that takes a folder of cases, or one of tflq's own profiles."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tflq.devices.conformance.jobs import MODEL, REFUSED, Job, raw
from tflq.devices.conformance.printed import MOST_PRINTED, Printed
from tflq.devices.conformance.records import file_marks
from tflq.devices.conformance.suite import Case
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.engine.runtimes import foreign, is_named
from tflq.engine.runtimes.children import started
from tflq.errors import OptionError, RuntimeFailed, RuntimeMissing, TflqError
from tflq.model.ir import CARRIER

_SCRIPT = Path(__file__).with_name("runtime_target.py")
#: Targets that are programs in other languages: name -> the program that runs a script of `scripts`, and the script.
SCRIPTS = {"litertjs": ("node", "litertjs.mjs")}


class Target(Protocol):
    """A system that does the cases of a job, as far as it can."""

    @property
    def name(self) -> str:
        """The target's name in reports."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """Return the facts that identify this target, as JSON values."""
        ...

    def do(self, job: Job, cases: Sequence[Case]) -> str:
        """Do the cases that `job` lists, and leave outputs there; return a description of an abnormal end."""
        ...


def target_of(words: str, python: str | None = None, timeout: float = 600.0) -> Target:
    """Return the target for `profile:NAME`, a ready target or a command line.

    A ready target is the name of a runtime or a foreign system, maybe after `runtime:` and with settings after it, or
    a name of SCRIPTS. To call a program of such a name, give its path.

    Raises:
        OptionError: The words name no command, or a setting has no such value.
        UnknownNameError: No profile, runtime or setting has that name.
    """
    kind, _, name = words.partition(":")
    if kind == "profile":
        return ProfileTarget(by_name(name))
    if kind == "runtime" or is_named(words):
        return _make_runtime_target(words, python, timeout)
    if words in SCRIPTS:
        program, script = SCRIPTS[words]
        return CommandTarget(words, (program, str(_SCRIPT.parent / "scripts" / script)), timeout)
    try:
        split = tuple(shlex.split(words))
    except ValueError as error:
        raise OptionError(f"--target: {error}") from error
    if not split:
        raise OptionError("--target: expected a command, profile:NAME or the name of a ready target")
    return CommandTarget(words, split, timeout)


def _make_runtime_target(words: str, python: str | None, timeout: float) -> CommandTarget:
    """Return the target that runs a runtime or a foreign system with a Python.

    The command names the adapter's file, so that a folder of answers is not continued with another one.
    """
    chosen: Any = runtime_by_name(words.removeprefix("runtime:"), python=python)
    job = {name: getattr(chosen, name) for name in ("adapter", "resolver", "packages")}
    adapter = Path(foreign.__file__).with_name(f"{chosen.adapter}.py")
    described = json.dumps({**job, "settings": chosen.all_settings, "is_foreign": adapter.is_file()})
    command = (chosen.executable, str(_SCRIPT), described, *([str(adapter)] if adapter.is_file() else []))
    return CommandTarget(words, command, timeout, _version(chosen.packages[0], chosen.executable))


def _version(package: str, python: str) -> str:
    """Return the version of a package in a Python installation; empty if it cannot be found."""
    words = [python, "-c", "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))", package]
    try:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()[:80] if done.returncode == 0 else ""


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """A program that is called with the folder as its last argument. `timeout` in seconds, for one call.

    `version` is that of the package that the program runs, if it is known.
    """

    name: str
    command: tuple[str, ...]
    timeout: float
    version: str = ""

    def identity(self) -> Mapping[str, Any]:
        """Return the command, digests of the files that it names, and the version; see Target.identity."""
        return {
            "name": self.name,
            "command": list(self.command),
            "version": self.version,
            "files": file_marks(self.command),
        }

    def do(self, job: Job, cases: Sequence[Case]) -> str:
        """Run the command on the job's folder; see Target.do.

        Raises:
            RuntimeMissing: There is no such program.
        """
        try:
            words = [*self.command, str(job.folder)]
            with started(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
                printed = Printed(child)
                status = printed.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return f"no end after {self.timeout:g} s"
        except OSError as error:
            raise RuntimeMissing(self.name, error.strerror or str(error)) from error
        if status is None:
            return f"ended because it printed more than {MOST_PRINTED >> 20} MiB"
        if status == 0:
            return ""
        last = printed.last_words()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"{how}: {last}" if last else how


@dataclass(frozen=True, slots=True, eq=False)
class ProfileTarget:
    """The results of a profile, computed in this process."""

    profile: Profile

    @property
    def name(self) -> str:
        """The target's name in reports: `profile:` and the profile's name."""
        return f"profile:{self.profile.name}"

    def identity(self) -> Mapping[str, Any]:
        """Return the profile's name and the version of this package; see Target.identity."""
        return {"name": self.name, "version": version("tflq")}

    def do(self, job: Job, cases: Sequence[Case]) -> str:
        """Run every case in this process; see Target.do."""
        for case in cases:
            place = job.folder / case.id
            try:
                self._do(place, len(case.samples))
            except TflqError as error:
                (place / REFUSED).write_text(str(error), encoding="utf-8")
        return ""

    def _do(self, place: Path, samples: int) -> None:
        plan = make_plan(load(place / MODEL), self.profile)
        outputs: dict[str, bytes] = {}
        for number in range(samples):
            inputs = {}
            for position, tensor in enumerate(plan.inputs):
                dtype = np.dtype(CARRIER[plan.operands[tensor].type])
                data = np.frombuffer((place / f"in{number}_{position}.bin").read_bytes(), dtype)
                inputs[tensor] = data.reshape(plan.operands[tensor].shape)
            values = run(plan, inputs).values
            for position, tensor in enumerate(plan.outputs):
                outputs[f"out{number}_{position}.bin"] = raw(values[tensor])
        for name, output in outputs.items():
            (place / name).write_bytes(output)


@dataclass(slots=True)
class Endings:
    """Abnormal ends of calls of a target: by case, and after every case of a call was answered."""

    by_case: dict[str, str] = field(default_factory=dict)
    afterwards: list[str] = field(default_factory=list)


def _calls(how: str) -> int:
    """Return how many first calls of a target may end in this way without an answer.

    A program that crashes may do so in these cases only; one that ends by itself rather gives up.
    """
    if how.startswith("exit status 127"):  # a shell found no program
        return 1
    return 2 if how.startswith("exit status") else 8


def finish(target: Target, job: Job, cases: Sequence[Case], batch: int, *, is_first: bool = False) -> Endings:
    """Have the target do all cases that are not done, `batch` of them in one call.

    A call that ends early is taken to have ended in the first case without outputs; the next call continues after it.
    Partial outputs of a case are removed before the next call. `is_first`: the target was not called before.

    Raises:
        RuntimeFailed: The target never starts: its first calls end alike and answer nothing.
    """
    endings, is_first = Endings(), is_first and not any(map(job.is_done, cases))
    ended = endings.by_case
    waiting = [case for case in cases if not job.is_done(case)]
    while waiting:
        part = waiting[:batch]
        job.ask_for(part)
        for case in part:
            job.forget(case)
        how = target.do(job, part)
        left = [case for case in part if not job.is_done(case)]
        if left and not how:
            ended |= {case.id: "the target neither refused it nor left outputs for it" for case in left}
            left = []
        elif left:
            ended[left[0].id] = how
            is_silent = len(left) == len(part)
            is_first &= is_silent and set(ended.values()) == {how}
            if is_first and len(ended) == _calls(how):
                raise RuntimeFailed(target.name, how)
            left = left[1:]
        elif how:
            endings.afterwards.append(how)
        waiting = [*left, *waiting[batch:]]
    return endings
