"""Runtimes without a profile, whose arithmetic is compared with the operators on which a dump differs from a profile.

The installed runtimes on one model: which of them give the same outputs. The runtimes that a set of profiles describes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Thread

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.goldens.golden import Golden
from tflq.comparison.inspection.difference import digest_of
from tflq.comparison.results import Located, merge_samples
from tflq.diagnosis.hypotheses import reproduces
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes.device import Device
from tflq.diagnosis.mistakes.floats import mistaken_floats, name_of
from tflq.engine.api.many import Part
from tflq.engine.kernels.families.reals import Floats
from tflq.engine.profiles import Profile
from tflq.errors import RuntimeFailed, RuntimeMissing, TflqError
from tflq.model.ir import Model

#: Points of the grammar of float forms -> runtimes known to compute this way.
_POINTS = {
    Floats(): "TVM, ONNX QDQ",
    Floats(quotient="times reciprocal"): "OpenVINO",
    Floats("bfloat16"): "OpenVINO with bfloat16",
    Floats("bfloat16, results in float32"): "OpenVINO with bfloat16",
}
#: These runtimes by the name of the point.
RUNTIMES = {name_of(point): runtimes for point, runtimes in _POINTS.items()}
#: Number of compared operators of one kernel, those with most differing elements first; size of their largest results.
_OF_ONE_KIND, _LARGEST = 3, 1 << 20


def foreign_causes(
    model: Model, dumps: Sequence[Dump], by_sample: Sequence[Sequence[Located]], profile: Profile
) -> tuple[str, ...]:
    """Return the names that reproduce every element of the compared operators, in all samples.

    A runtime is identified as a whole: operators that the profile reproduces count, too. The result is empty if nothing
    differs, or if no operator has a float form to compare.
    """
    operators = [merge_samples(row) for row in zip(*by_sample, strict=True)]
    fitting, is_tried = set(RUNTIMES) if any(o.differs for o in operators) else set(), False
    for operator in _look_at(operators) if fitting else ():
        for dump in dumps:
            try:
                alone = operator_alone(model, dump, operator.index, profile)
                devices = dict(mistaken_floats(alone, profile)) if alone.got else {}
            except TflqError:
                continue
            if devices:
                fitting, is_tried = _reproducing(alone, devices, fitting), True
        if not fitting:
            break
    return tuple(name for name in RUNTIMES if name in fitting and is_tried)


def _look_at(operators: Sequence[Located]) -> list[Located]:
    """Return the operators of each type in which most elements differ; operators that differ come first."""
    chosen: dict[str, list[Located]] = {}
    for one in sorted(operators, key=lambda o: -sum(d.differing for d in o.differences.values())):
        of_type = chosen.setdefault(one.op, [])
        if (
            one.differences
            and len(of_type) < _OF_ONE_KIND
            and sum(d.elements for d in one.differences.values()) <= _LARGEST
        ):
            of_type.append(one)
    return [one for of_type in chosen.values() for one in of_type]


def _reproducing(alone: Part, devices: Mapping[str, Device], names: set[str]) -> set[str]:
    """Return those of the names whose devices reproduce every bit."""
    return {name for name in names if reproduces(devices[name], alone)}


#: Runtimes that may be installed in one Python, the usual device first.
NAMES = ("litert-xnnpack", "litert-opt", "litert-ref", "tflite-runtime-xnnpack", "tflite-runtime-ref", "tflm")


@dataclass(frozen=True, slots=True)
class RuntimesApart:
    """Groups of runtimes with the same output bits on the same inputs, and those that failed, with the reason."""

    groups: tuple[tuple[str, ...], ...]
    failed: Mapping[str, str] = field(default_factory=dict)

    def subject(self, base: str) -> str:
        """Return the runtime to explain: the first outside of the group of `base`'s runtime, else the first."""
        first = self.groups[0][0]
        home = next((group for group in self.groups if base in group), None)
        return first if home is None else next((group[0] for group in self.groups if group != home), first)


def runtimes_apart(record: Callable[[str], Golden], names: Iterable[str] = NAMES) -> RuntimesApart:
    """Record every installed runtime with `record`, and group those whose outputs have the same bits.

    They run side by side: `record` is called in threads, which wait for child processes.

    Raises:
        RuntimeMissing: None is installed.
        RuntimeFailed: None of those that are installed runs the model.
    """
    recorded = _side_by_side(record, tuple(names))
    groups: dict[bytes, list[str]] = {}
    failed: dict[str, str] = {}
    missing: RuntimeMissing | None = None
    failure: RuntimeFailed | None = None
    for name, one in recorded.items():
        if isinstance(one, RuntimeMissing):
            missing = missing or one
        elif isinstance(one, RuntimeFailed):
            failure = failure or one
            failed[name] = one.reason
        elif isinstance(one, BaseException):
            raise one
        else:
            groups.setdefault(one, []).append(name)
    if not groups:
        raise failure or missing or RuntimeMissing("any runtime", "no names are given")
    return RuntimesApart(tuple(map(tuple, groups.values())), failed)


def _side_by_side(record: Callable[[str], Golden], names: Sequence[str]) -> dict[str, bytes | BaseException]:
    """Return a digest of each recording, or the error that it ended with, in the order of the names.

    An interrupt does not wait for the threads; their child processes end with this one.
    """
    found: dict[str, bytes | BaseException] = {}

    def work(name: str) -> None:
        try:
            recorded = record(name)
            found[name] = digest_of(value for one in recorded.observations for value in one.outputs)
        except BaseException as error:
            found[name] = error

    threads = [Thread(target=work, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: found[name] for name in names}


@dataclass(frozen=True, slots=True)
class Compatible:
    """Runtimes of one package and resolver. `versions` are those that were compared with the dump, in order."""

    package: str
    resolver: str
    versions: tuple[str, ...]
    cpus: tuple[str, ...]


def compatible(profiles: Iterable[Profile]) -> tuple[Compatible, ...]:
    """Return profiles' runtimes, in the order of the profiles; variants that need a build option are left out."""
    groups: dict[tuple[str, str], list[Profile]] = {}
    for profile in profiles:
        if "+" not in profile.name and profile.source.package:
            groups.setdefault((profile.source.package, profile.source.resolver), []).append(profile)
    return tuple(
        Compatible(
            package,
            resolver,
            tuple(sorted({p.source.version for p in members}, key=_version)),
            tuple(dict.fromkeys(p.source.cpu for p in members)),
        )
        for (package, resolver), members in groups.items()
    )


def _version(text: str) -> tuple[tuple[int, str], ...]:
    """Return numbers before words, by value."""
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in text.split("."))
