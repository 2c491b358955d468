"""`why`: why a device's results differ, whose fault it is, and what to do."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tflq.comparison.evidence.dumps import load_dumps, recording_at
from tflq.comparison.evidence.inputs import given_inputs
from tflq.comparison.goldens.golden import Golden
from tflq.comparison.goldens.record import outputs_recorder
from tflq.comparison.goldens.stored import check_model
from tflq.comparison.inputs.prepare import InputPreparation, Numbers, preparation
from tflq.comparison.verification.verifying import record
from tflq.devices.suites.target import TargetRuntime, target_of
from tflq.diagnosis.linting.lint import lint
from tflq.diagnosis.linting.rules import Level
from tflq.diagnosis.runtimes import NAMES, runtimes_apart
from tflq.diagnosis.usage.search import Mistake, UserSide
from tflq.diagnosis.why import Answer, DeviceEvidence, answer, read_evidence, read_tensors
from tflq.engine.api.files import Source, Subject, subject
from tflq.engine.runtimes.process import FOREIGN
from tflq.errors import InputError, InputWarning, OptionError, RuntimeFailed, TflqError, UnsupportedError
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model, signed, view
from tflq.model.storage.arrays import write_arrays
from tflq.texts import Statement

#: Number of inputs that are drawn for a runtime or a device.
_SAMPLES = 4
#: The beginnings of a target that is a profile itself, and of evidence that is an installed runtime.
_OF_PROFILE, _OF_RUNTIME = "profile:", "runtime:"


def why(
    model: Source | Model,
    evidence: str | os.PathLike[str] | Mapping[int | str, ArrayLike] | None = None,
    profile: str = "litert-ref",
    *,
    inputs: str | os.PathLike[str] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    bgr: bool = False,
    target: str | None = None,
    sample: int | None = None,
    signature: str | None = None,
    python: str | None = None,
    progress: Progress = silent,
) -> Answer:
    """Find out why a device computes other results: the cause, whose fault it is, and what to do.

    The user's mistakes are causes, too: inputs prepared otherwise than the model expects, and dumps written otherwise
    than they are read. Without evidence and target, the installed runtimes are compared with each other, and the first
    that differs from the profile is the device; `evidence` of the answer names it.

    Args:
        model: A path, the bytes of a file, or a Model.
        evidence: A dump or golden of any form that `explain` reads, an .npy of the first output, or "runtime:NAME"; or
            arrays by tensor index or name.
        profile: The arithmetic that the device is compared with.
        inputs: The inputs that the user meant to feed: pixels, real values or codes.
        mean: With `std`: `inputs` are stored numbers, (number - mean) / std the real values. One, or one per channel.
        std: See `mean`.
        bgr: Channels of images are in the order blue, green, red.
        target: Instead of evidence, a ready target (docs/targets.md), a command that runs models
            (docs/target-protocol.md), or "profile:NAME".
        sample: The number of one of several samples. None: all of them.
        signature: The signature that the evidence is of, if the model has several.
        python: The Python in which runtimes are installed, if not this one.
        progress: Called as progress(what, done, total).

    Raises:
        GoldenError: The evidence is a recording of another model.
        InputError: The evidence fits the model in no known way.
        OptionError: Both evidence and target are given.
        RuntimeMissing: There is no such runtime, or none is installed.

    Example:
        >>> device = "golden/dumps/digits_mobilenet_int8.cmsis_single.npz"
        >>> tflq.why("golden/models/digits_mobilenet_int8.tflite", device).fault.name
        'RUNTIME'
    """
    if evidence is not None and target is not None:
        raise OptionError("give one of EVIDENCE, --target and --against")
    how, source = preparation(mean, std, bgr=bgr), None if inputs is None else os.fspath(inputs)
    fed = _Fed(subject(model), source, how, sample, signature, profile, python, progress)
    if target is not None:
        found = _of_target(fed, target)
    elif evidence is None:
        found = _of_installed(fed)
    elif isinstance(evidence, Mapping):
        found = _of_arrays(fed, evidence)
    elif str(evidence).startswith(_OF_RUNTIME):
        found = _of_runtime(fed, str(evidence).removeprefix(_OF_RUNTIME))
    else:
        path = os.fspath(evidence)
        found = replace(_of_evidence(fed, path), evidence=path, recorded=_foreign_origin(path))
    return _with_breaches(fed, found)


@dataclass(frozen=True, slots=True)
class _Fed:
    """The model, how its inputs are given, and what is asked of it."""

    model: Subject
    inputs: str | None
    how: InputPreparation
    sample: int | None
    signature: str | None
    profile: str
    python: str | None
    progress: Progress

    def record(self, against: Any, *, all_tensors: bool) -> Golden:
        """Return a golden of a runtime, on the inputs given or on generated ones."""
        self.progress(f"recording {against}" if isinstance(against, str) else "asking the target", 0, 0)
        scaling = self.how.scaling
        numbers: dict[str, Any] = {"mean": scaling.mean, "std": scaling.std} if scaling is not None else {}
        return record(
            bytes(self.model.data),
            against,
            self.inputs,
            all_tensors=all_tensors,
            samples=_SAMPLES,
            signature=self.signature,
            python=self.python,
            bgr=self.how.bgr,
            **numbers,
        )

    def recorder(self, against: str) -> Callable[[], Any]:
        """Return what runs an installed runtime, and returns its outputs."""
        return outputs_recorder(self.model, against, self.inputs, _SAMPLES, self.how, self.signature)


def _of_arrays(fed: _Fed, arrays: Mapping[int | str, ArrayLike]) -> Answer:
    """Return the answer for arrays by tensor, as if a file held them."""
    named: dict[str, Any] = {f"t{key}" if isinstance(key, int) else key: np.asarray(v) for key, v in arrays.items()}
    objects = next((key for key, value in named.items() if value.dtype.hasobject), None)
    if objects is not None:
        raise InputError("holds Python objects, not numbers", name=objects)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arrays.npz")
        write_arrays(path, named)
        return replace(_of_evidence(fed, path), evidence="arrays")


def _of_evidence(fed: _Fed, evidence: str) -> Answer:
    """Return the answer about a file."""
    whole = fed.model.model
    check_model(evidence, fed.model.facts.sha256)
    target, held = read_evidence(whole, evidence, fed.sample, fed.signature)
    if held.refusal is not None:
        return Answer(fed.profile, None, None, None, None, 0, refusal=held.refusal)
    several = len(signed(whole)) == 1 and len(view(target).inputs) > 1
    if fed.inputs is not None and held.dumps is not None and several:
        held = DeviceEvidence.of(load_dumps(target, evidence, fed.sample, fed.inputs, fed.how))
        return answer(target, held, fed.profile, progress=fed.progress)
    inputs = [] if fed.inputs is None else given_inputs(target, fed.inputs, bgr=fed.how.bgr)
    found = answer(target, held, fed.profile, inputs, fed.how.scaling, progress=fed.progress)
    return found if found.is_explained else _of_other_signature(fed, evidence, found)


def _of_other_signature(fed: _Fed, evidence: str, found: Answer) -> Answer:
    """Return that the results are those of another signature, if all that was compared agrees with it."""
    parts = signed(fed.model.model)
    own = next((p.name for p in signed(fed.model.model, fed.signature)), "") if len(parts) > 1 else ""
    for part in (p for p in parts if p.name != own) if own else ():
        try:
            held = read_tensors(part.model, evidence, fed.sample)
            inputs = [] if fed.inputs is None else given_inputs(part.model, fed.inputs, bgr=fed.how.bgr)
            other = answer(part.model, held, fed.profile, inputs, fed.how.scaling)
        except TflqError:
            continue
        compared = (
            [] if other.findings is None else [d for o in other.findings.operators for d in o.differences.values()]
        )
        elements = sum(d.elements for d in compared)
        if other.mistake is None and other.is_explained and elements and other.findings is not None:
            name = f"the outputs are those of signature {part.name}, not of {own}"
            mistake = Mistake(name, UserSide.DUMP, elements, 0, elements)
            return Answer(fed.profile, None, None, mistake, None, found.samples, found.warnings)
    return found


def _foreign_origin(path: str) -> str:
    """Return the foreign system, with its version and settings, that a recording names; "" for other evidence."""
    golden = recording_at(path)
    runtime = {} if golden is None else golden.runtime_facts
    name = str(runtime.get("name", ""))
    if name not in FOREIGN:
        return ""
    return " ".join(str(part) for part in (name, runtime.get("version"), runtime.get("resolver")) if part)


def _with_breaches(fed: _Fed, found: Answer) -> Answer:
    """Return the answer with the rule of the specification that the operator it names breaks, if there is one."""
    located = found.located
    if located is None or not located.differs:
        return found
    subgraph = next(p.root.subgraph for p in signed(fed.model.model, fed.signature))
    breaches = [
        f
        for f in lint(fed.model.model, "", fed.signature).findings
        if (f.subgraph, f.operator) == (subgraph, located.index) and f.level is not Level.NOTE and not f.fixable
    ]
    if not breaches:
        return found
    first = breaches[0]
    text = (
        f"operator {first.operator} {first.op} of the model breaks a rule, so devices need not agree on it: "
        f"{first.summary} ({first.rule}: required {first.required}, found {first.found})"
    )
    stated = Statement(text, "model-breach", operator=first.operator, rule=first.rule, breaches=len(breaches))
    return replace(found, breach=stated)


def _of_golden(fed: _Fed, golden: Golden, *, is_recorded: bool) -> Answer:
    """Return the answer about a recording, which holds the inputs. See `answer` for `is_recorded`."""
    target, held = read_evidence(fed.model.model, golden, fed.sample, fed.signature)
    return answer(target, held, fed.profile, is_recorded=is_recorded, progress=fed.progress)


def _of_runtime(fed: _Fed, name: str) -> Answer:
    """Return the answer about an installed runtime."""
    found = _of_golden(fed, fed.record(name, all_tensors=True), is_recorded=True)
    return replace(found, known=name, evidence=f"{_OF_RUNTIME}{name}")


def _of_target(fed: _Fed, words: str) -> Answer:
    """Return the answer about a device that is asked.

    A device that cannot run the model with all tensors as outputs is asked for the outputs only, with a warning.
    """
    device = TargetRuntime(target_of(words, fed.python))
    try:
        golden = fed.record(device, all_tensors=True)
    except (RuntimeFailed, TflqError, UnsupportedError) as error:
        golden = fed.record(device, all_tensors=False)
        text = f"only outputs are compared, not every operator: {error}"
        warnings.warn(InputWarning(Statement(text, "outputs-only", target=words)), stacklevel=2)
    found = _of_golden(fed, golden, is_recorded=words.startswith(_OF_PROFILE))
    return replace(found, known=words.removeprefix(_OF_PROFILE), evidence=words)


def _of_installed(fed: _Fed) -> Answer:
    """Return the answer about the first installed runtime that differs from the profile's.

    If none differs, it is about LiteRT's default runtime.

    Raises:
        RuntimeMissing: No runtime is installed.
    """
    fed.progress("recording the installed runtimes", 0, 0)
    ready = {name: fed.recorder(name) for name in NAMES}
    apart = runtimes_apart(lambda name: ready[name]())
    return replace(_of_runtime(fed, apart.subject(fed.profile)), runtimes=apart)
