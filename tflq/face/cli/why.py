"""`tflq why`: why a device's results differ, whose fault it is, and what to do."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_page
from tflq.face.cli.options import (
    PROFILE_HELP,
    from_stdin,
    html_option,
    json_option,
    limit_options,
    model_argument,
    reading_words,
    sample_option,
    scaling_options,
    signature_option,
)
from tflq.face.cli.output import is_quiet, say, say_document, say_text
from tflq.statements import Statement
from tflq.typing import Progress

#: Number of inputs that are drawn for a runtime or a device.
_SAMPLES = 4
_PROFILE = "litert-ref"
#: The beginnings of a target that is a profile itself, and of evidence that is an installed runtime.
_OF_PROFILE, _OF_RUNTIME = "profile:", "runtime:"


@click.command("why")
@model_argument
@click.argument("evidence", required=False)
@click.option(
    "--inputs",
    metavar="SOURCE",
    callback=from_stdin,
    help="The inputs that you meant to feed (.npy, .npz, images): pixels, real values or codes.",
)
@scaling_options
@click.option(
    "--target", metavar="CMD", help="The device: a command that is run with a folder of cases, or profile:NAME."
)
@sample_option
@signature_option
@click.option("--against", metavar="RUNTIME", help="An installed runtime as the evidence: the same as runtime:RUNTIME.")
@click.option("--profile", metavar="NAME", default=_PROFILE, show_default=True, help=PROFILE_HELP)
@click.option("--paste", is_flag=True, help="Print a Markdown block for an issue tracker.")
@click.option("--verbose", is_flag=True, help="Also print what `tflq explain` prints.")
@html_option
@force_option
@limit_options
@json_option
def why_command(
    model: str,
    evidence: str | None,
    inputs: str | None,
    scaling: Any,
    bgr: bool,
    target: str | None,
    sample: int | None,
    signature: str | None,
    against: str | None,
    profile: str,
    paste: bool,
    verbose: bool,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Find out why a device computes other results for MODEL: the cause, whose fault it is, and what to do.

    EVIDENCE is a dump or golden of any form that `explain` reads, an .npy of the first output, or runtime:NAME, an
    installed runtime. With --target, the device itself is asked (docs/target-protocol.md). Without either, the
    installed runtimes are compared with each other, and the first that differs from the profile is the device.

    The user's mistakes are causes, too: inputs prepared otherwise than the model expects, and dumps written otherwise
    than they are read. Those in preparing inputs need --inputs.

    \b
    tflq why model.tflite dump.npz
    tflq why model.tflite outputs.npy --inputs images.npy
    tflq why model.tflite --target ./my_npu.sh
    tflq why model.tflite --paste
    """
    from tflq.engine.api.subject import subject
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.why.asked import Asked
    from tflq.face.report.verbs.why.document import why_document
    from tflq.face.report.verbs.why.report import paste as pasted
    from tflq.face.report.verbs.why.report import why_report

    if paste and (as_json or verbose):
        raise OptionError("--paste goes with neither --json nor --verbose")
    if sum(one is not None for one in (evidence, target, against)) > 1:
        raise OptionError("give one of EVIDENCE, --target and --against")
    evidence = evidence if against is None else f"{_OF_RUNTIME}{against}"
    check_files([html], [model, evidence, inputs], force=force)
    with progress_bar(lines=True, quiet=is_quiet()) as tell:
        fed = _Fed(subject(model), inputs, scaling, bgr, sample, signature, profile, tell)
        if target is not None:
            found, name = _of_target(fed, target)
        elif evidence is None:
            found, name = _of_installed(fed)
        elif evidence.startswith(_OF_RUNTIME):
            found, name = _of_runtime(fed, evidence.removeprefix(_OF_RUNTIME))
        else:
            found, name = _of_file(fed, evidence), evidence
    found = _with_breaches(fed, found)
    options = (*reading_words(), *(() if profile == _PROFILE else ("--profile", profile)))
    asked = Asked(model, name, target is not None, options)
    shown = why_report(found, asked, verbose=verbose)
    if html is not None:
        write_page(html, shown, model, profile, signature)
    if as_json:
        say_document(why_document(found, asked))
    elif paste:
        say_text(pasted(found, asked, _versions()))
    else:
        say(shown)
    return exit_of_verdict(found.verdict)


@dataclass(frozen=True, slots=True)
class _Fed:
    """The model, how its inputs are given, and what is asked of it."""

    model: Any
    inputs: str | None
    scaling: Any
    bgr: bool
    sample: int | None
    signature: str | None
    profile: str
    tell: Progress

    def record(self, against: Any, *, all_tensors: bool) -> Any:
        """Return a golden of a runtime, on the inputs given or on generated ones."""
        from tflq.comparison.verification import record

        self.tell(f"recording {against}" if isinstance(against, str) else "asking the target", 0, 0)
        how = {"mean": self.scaling.mean, "std": self.scaling.std} if self.scaling is not None else {}
        return record(
            bytes(self.model.data),
            against,
            self.inputs,
            all_tensors=all_tensors,
            samples=_SAMPLES,
            signature=self.signature,
            bgr=self.bgr,
            **how,
        )

    def recorder(self, against: str) -> Callable[[], Any]:
        """Return what runs an installed runtime, and returns its outputs."""
        from tflq.comparison.verification.outputs_recorder import outputs_recorder
        from tflq.comparison.verification.preparation import Preparation

        how = Preparation(self.scaling, bgr=self.bgr)
        return outputs_recorder(self.model, against, self.inputs, _SAMPLES, how, self.signature)


def _of_file(fed: _Fed, evidence: str, *, given: bool = True, is_recorded: bool = False) -> Any:
    """Return the answer about a file; unless `given`, it holds the inputs itself. See `answer` for `is_recorded`."""
    from tflq.comparison.verification.evidence.inputs import given_inputs
    from tflq.comparison.verification.goldens import check_model
    from tflq.diagnosis.evidence import Evidence, read_evidence
    from tflq.diagnosis.signatures import only_dumps
    from tflq.diagnosis.why import answer
    from tflq.model.ir import only_signed, signed

    whole = fed.model.model
    check_model(evidence, fed.model.facts.sha256)
    if len(signed(whole)) > 1:
        part, dumps = only_dumps(whole, evidence, fed.sample, None, fed.signature)
        target, held = part.model, Evidence(tuple(dict(d.tensors) for d in dumps), dumps)
    else:
        target = only_signed(whole, fed.signature).model
        held = read_evidence(target, evidence, fed.sample)
    if not given:
        return answer(target, held, fed.profile, is_recorded=is_recorded, progress=fed.tell)
    inputs = [] if fed.inputs is None else given_inputs(target, fed.inputs, bgr=fed.bgr)
    return answer(target, held, fed.profile, inputs, fed.scaling, progress=fed.tell)


def _with_breaches(fed: _Fed, found: Any) -> Any:
    """Return the answer with the rule of the specification that the operator it names breaks, if there is one."""
    from tflq.diagnosis.linting import Level, lint
    from tflq.model.ir import signed

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


def _of_golden(fed: _Fed, golden: Any, *, is_recorded: bool) -> Any:
    """Return the answer about a recording."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "recording.npz")
        golden.save(path)
        return _of_file(fed, path, given=False, is_recorded=is_recorded)


def _of_runtime(fed: _Fed, name: str) -> tuple[Any, str]:
    """Return the answer about an installed runtime, and its name."""
    found = _of_golden(fed, fed.record(name, all_tensors=True), is_recorded=True)
    return replace(found, known=name), f"{_OF_RUNTIME}{name}"


def _of_target(fed: _Fed, words: str) -> tuple[Any, str]:
    """Return the answer about a device that is asked, and its name.

    A device that cannot run the model with all tensors as outputs is asked for the outputs only, with a warning.
    """
    from tflq.devices.conformance.target_runtime import TargetRuntime
    from tflq.devices.conformance.targets import target_of
    from tflq.errors import InputWarning, RuntimeFailed, UnsupportedError

    device = TargetRuntime(target_of(words))
    try:
        golden = fed.record(device, all_tensors=True)
    except (RuntimeFailed, UnsupportedError) as error:
        golden = fed.record(device, all_tensors=False)
        text = f"only outputs are compared, not every operator: {error}"
        warnings.warn(InputWarning(Statement(text, "outputs-only", target=words)), stacklevel=2)
    found = _of_golden(fed, golden, is_recorded=words.startswith(_OF_PROFILE))
    return replace(found, known=words.removeprefix(_OF_PROFILE)), words


def _of_installed(fed: _Fed) -> tuple[Any, str]:
    """Return the answer about the first installed runtime that differs from the profile's, and its name.

    If none differs, it is about LiteRT's default runtime.

    Raises:
        RuntimeMissing: No runtime is installed.
    """
    from tflq.diagnosis.runtimes_apart import NAMES, runtimes_apart

    fed.tell("recording the installed runtimes", 0, 0)
    ready = {name: fed.recorder(name) for name in NAMES}
    apart = runtimes_apart(lambda name: ready[name]())
    found, name = _of_runtime(fed, apart.subject(fed.profile))
    return replace(found, runtimes=apart), name


def _versions() -> str:
    """Return the versions of tflq, Python and NumPy."""
    import platform
    from importlib import metadata

    return f"tflq {metadata.version('tflq')}, Python {platform.python_version()}, NumPy {metadata.version('numpy')}"
