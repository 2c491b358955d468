"""Systems under test: commands, and ready targets.

Systems under test: a command that takes a folder of cases, or one of tflq's own profiles.

Skeletons of targets in several languages: complete programs that run one operator and refuse the rest.

A target as a runtime: it runs whole models through the protocol of targets (docs/target-protocol.md).
"""

from __future__ import annotations

import json
import platform
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tflq.devices.suites.jobs import MODEL, MOST_PRINTED, REFUSED, CaseFolder, MemoryUse, PrintedOutput, file_marks
from tflq.devices.suites.make import Case
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.engine.runtimes import Description, Invocation, RuntimeOutputs, Stepped, is_named
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.engine.runtimes.process import CHILD, started, temporary_folder
from tflq.engine.runtimes.runtime import Content, Sample
from tflq.errors import OptionError, RuntimeFailed, RuntimeMissing, TflqError, UnsupportedError
from tflq.model.ir import CARRIER, Model, TensorType, view
from tflq.model.storage.arrays import Archive, raw
from tflq.model.storage.output import check_outputs, write_file
from tflq.typing import Array

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

    def do(self, job: CaseFolder, cases: Sequence[Case]) -> str:
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
        return CommandTarget(words, (program, str(_SCRIPT.parent / "scripts" / script)), timeout, is_ready=True)
    try:
        split = tuple(shlex.split(words))
    except ValueError as error:
        raise OptionError(f"--target: {error}") from error
    if not split:
        raise OptionError("--target: expected a command, profile:NAME or the name of a ready target")
    return CommandTarget(words, split, timeout)


def _make_runtime_target(words: str, python: str | None, timeout: float) -> CommandTarget:
    """Return the target that runs a runtime or a foreign system with a Python.

    The command names the file of the adapters, so that a folder of answers is not continued with another one.
    """
    chosen: Any = runtime_by_name(words.removeprefix("runtime:"), python=python)
    job = {name: getattr(chosen, name) for name in ("adapter", "resolver", "packages")}
    described = json.dumps({**job, "settings": chosen.all_settings, "is_foreign": chosen.is_foreign})
    command = (
        chosen.executable,
        str(_SCRIPT),
        described,
        *([str(CHILD / "tflq_foreign.py")] if chosen.is_foreign else []),
    )
    return CommandTarget(words, command, timeout, _version(chosen.packages[0], chosen.executable), is_ready=True)


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

    `version` is that of the package that the program runs, if it is known. A program of tflq `is_ready`: it states no
    operators.
    """

    name: str
    command: tuple[str, ...]
    timeout: float
    version: str = ""
    is_ready: bool = False

    def identity(self) -> Mapping[str, Any]:
        """Return the command, digests of the files that it names, and the version; see Target.identity."""
        return {
            "name": self.name,
            "command": list(self.command),
            "version": self.version,
            "files": file_marks(self.command),
        }

    def do(self, job: CaseFolder, cases: Sequence[Case]) -> str:
        """Run the command on the job's folder; see Target.do.

        Raises:
            RuntimeMissing: There is no such program.
        """
        try:
            words = [*self.command, str(job.folder)]
            with started(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
                printed = PrintedOutput(child)
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

    def do(self, job: CaseFolder, cases: Sequence[Case]) -> str:
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


#: Number of cases that are asked at once, before it is known whether the target states its operators.
_FEW = 50


def finish(
    target: Target,
    job: CaseFolder,
    archive: Archive,
    cases: Sequence[Case],
    batch: int,
    *,
    is_first: bool = False,
    alone: bool = False,
) -> Endings:
    """Unpack all cases that are not done, and have the target do them, `batch` of them in one call.

    A call that ends early is taken to have ended in the first case without outputs; the next call continues after it.
    Partial outputs of a case are removed before the next call. `is_first`: the target was not called before. `alone`: a
    program is asked for one of many cases first, so that no case is unpacked of operators that it does not state.

    Raises:
        RuntimeFailed: The target never starts: its first calls end alike and answer nothing.
        UnknownNameError: The target states an operator that does not exist.
    """
    endings, is_first = Endings(), is_first and not any(map(job.is_done, cases))
    ended = endings.by_case
    waiting = [case for case in cases if not job.is_done(case)]
    alone &= isinstance(target, CommandTarget) and not target.is_ready and len(waiting) > _FEW
    while waiting:
        part, waiting = waiting[: 1 if alone else batch], waiting[1 if alone else batch :]
        alone = False
        job.ask_for(part)
        for case in part:
            job.add(case, archive)
            job.forget(case)
        how = target.do(job, part)
        job.read_statement()
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
        waiting = [case for case in (*left, *waiting) if job.is_asked(case)]
    return endings


_FOLDER = Path(__file__).with_name("scripts")
#: The word of skeletons that the target's name replaces, and the names that are allowed.
_PLACEHOLDER, _NAME = "my_target", re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
#: Language -> ending of its files, how to build one, how to call it.
LANGUAGES = {
    "python": (".py", "", "python {file}"),
    "c": (".c", "cc -std=c99 -O1 -o {stem} {file}", "{stem}"),
    "node": (".mjs", "", "node {file}"),
}


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A target that was written to `path`. `build` is the command that compiles it, if it needs one."""

    path: str
    build: str
    command: str


def write_skeleton(name: str, language: str, folder: str = ".", *, replace: bool = False) -> Skeleton:
    """Write a target's skeleton into a folder that exists.

    Raises:
        OptionError: The name is not a word of letters, digits, - and _, or there is no skeleton in that language.
        FileAccessError: The file exists and `replace` is false, or it cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"{name!r:.80}: name the target by a letter, then letters, digits, - and _")
    if language not in LANGUAGES:
        raise OptionError(f"{language!r:.80} is no language of skeletons: {', '.join(LANGUAGES)}")
    ending, build, command = LANGUAGES[language]
    path = Path(folder) / f"{name}{ending}"
    check_outputs([str(path)], [], replace=replace)
    text = (_FOLDER / f"skeleton{ending}").read_text(encoding="utf-8").replace(_PLACEHOLDER, name)
    write_file(str(path), text.encode())
    stem = str(path.with_suffix("")) if path.parent != Path() else f"./{name}"
    words = {"file": shlex.quote(str(path)), "stem": shlex.quote(stem)}
    return Skeleton(str(path), build.format(**words), command.format(**words))


@dataclass(frozen=True, slots=True)
class TargetRuntime:
    """A target that is asked for the outputs of whole models, all of them in one call."""

    target: Target

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    def describe(self) -> Description:
        """Return the target's name and version, and this computer."""
        version = str(self.target.identity().get("version") or "")
        system = f"{platform.system()} {platform.machine()}"
        return Description(self.name, "", version, "", 0, platform.python_version(), np.__version__, system)

    def run(self, models: Sequence[Content], samples: Sequence[Sample]) -> RuntimeOutputs:
        """Run every model on every sample.

        Raises:
            RuntimeMissing: There is no such program.
            RuntimeFailed: It refuses a model, crashes, or leaves outputs of other sizes.
            UnsupportedError: An output has no plain elements.
        """
        memory = MemoryUse()
        expected = [list(_outputs(load(bytes(model)))) for model in models]
        cases = [
            _case(number, model, samples, like, memory)
            for number, (model, like) in enumerate(zip(models, expected, strict=True))
        ]
        with temporary_folder() as folder:
            job = CaseFolder(folder)
            job.create()
            # An archive reads arrays by name, as this memory does.
            ended = finish(self.target, job, memory, cases, len(cases)).by_case  # type: ignore[arg-type]
            outputs = tuple(
                self._answer(job, case, [like] * len(samples), ended.get(case.id, ""))
                for case, like in zip(cases, expected, strict=True)
            )
        return RuntimeOutputs(self.describe(), outputs)

    def run_steps(self, models: Sequence[Content], sequences: Sequence[Sequence[Invocation]]) -> Stepped:
        """Refuse: the protocol has no signatures, and no steps that follow each other.

        Raises:
            RuntimeFailed: Always.
        """
        raise RuntimeFailed(self.name, "the protocol of targets runs models without signatures and variables only")

    def _answer(
        self, job: CaseFolder, case: Case, like: Sequence[Sequence[Array]], how: str
    ) -> tuple[tuple[Array | None, ...], ...]:
        refusal = job.refusal(case)
        if refusal is not None:
            raise RuntimeFailed(self.name, f"refuses {case.aim}: {refusal or 'no reason is given'}")
        if not job.is_done(case):
            raise RuntimeFailed(self.name, f"{case.aim}: {how or 'no outputs'}")
        found = job.outputs(case, like)
        wrong = next((one for sample in found for one in sample if isinstance(one, str)), None)
        if wrong is not None:
            raise RuntimeFailed(self.name, f"{case.aim}: {wrong}")
        return tuple(tuple(one for one in sample if not isinstance(one, str)) for sample in found)


#: Names of the first and the second model of an observation.
_NAMES = ("the model", "the model with every tensor as an output")


def _case(number: int, model: Content, samples: Sequence[Sample], like: Sequence[Array], memory: MemoryUse) -> Case:
    fed = tuple(tuple(memory.put(np.asarray(value)) for value in sample) for sample in samples)
    expected = tuple(map(memory.put, like))
    name = _NAMES[min(number, 1)]
    file = memory.put(np.frombuffer(model, np.uint8))
    return Case(f"{number:05d}-model", "", "", "smoke", name, (), file, fed, (expected,) * len(samples))


def _outputs(model: Model) -> Iterator[Array]:
    """Yield zeros of the types and shapes of a model's outputs."""
    graph = view(model)
    for tensor in graph.outputs:
        spec = graph.tensors[tensor]
        if not isinstance(spec.type, TensorType) or CARRIER[spec.type] == np.dtype(object):
            raise UnsupportedError("output for a target", reason=f"{spec.name!r} has no plain elements")
        yield np.zeros(spec.shape, CARRIER[spec.type])
