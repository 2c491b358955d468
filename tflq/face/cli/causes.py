"""`tflq why`, `explain`, `fit` and `reduce`: find why results differ.

`tflq why`: why a device's results differ, whose fault it is, and what to do.

`tflq explain`: where a device's dump differs from a profile, and the arithmetic that reproduces it.

`tflq fit`: the profile that computes a device's dump.

`tflq reduce`: the smallest model that still shows a difference.
"""

from __future__ import annotations

import os
import subprocess
import warnings
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.answer import (
    Delivery,
    Exit,
    check_files,
    delivery_options,
    drawing_options,
    exit_of_verdict,
    force_option,
    is_quiet,
    say_answer,
    say_text,
    say_written,
    write_arrays,
    write_page,
)
from tflq.face.cli.options import (
    complete_profile,
    complete_runtime,
    dump_inputs_option,
    dump_option,
    from_stdin,
    json_option,
    kernels_option,
    limit_options,
    model_argument,
    number_options,
    optional_dump_option,
    profile_option,
    python_option,
    reading_words,
    sample_option,
    signature_option,
    target_option,
    with_kernels,
)

if TYPE_CHECKING:
    from tflq.diagnosis.reduction import Check, Reduced, Sample
    from tflq.model.ir import Model

_PROFILE = "litert-ref"


@click.command("why")
@model_argument
@click.argument("evidence", required=False)
@click.option(
    "--inputs",
    metavar="SOURCE",
    callback=from_stdin,
    help="The inputs that you meant to feed (.npy, .npz, images): pixels, real values or codes.",
)
@number_options
@target_option(start="The device. ")
@sample_option
@signature_option
@click.option(
    "--against",
    metavar="RUNTIME",
    shell_complete=complete_runtime,
    help="An installed runtime as the evidence: the same as runtime:RUNTIME.",
)
@kernels_option
@profile_option
@python_option
@click.option("--paste", is_flag=True, help="Print a Markdown block for an issue tracker.")
@click.option("--verbose", is_flag=True, help="Also print what `tflq explain` prints.")
@limit_options
@delivery_options
def why_command(
    model: str,
    evidence: str | None,
    inputs: str | None,
    target: str | None,
    sample: int | None,
    signature: str | None,
    against: str | None,
    profile: str,
    python: str | None,
    paste: bool,
    verbose: bool,
    out: Delivery,
    **numbers: Any,
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
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.why import Asked, why_document, why_report
    from tflq.face.report.verbs.why import paste as pasted
    from tflq.verbs.why import why

    if paste and (out.as_json or verbose):
        raise OptionError("--paste goes with neither --json nor --verbose")
    if sum(one is not None for one in (evidence, target, against)) > 1:
        raise OptionError("give one of EVIDENCE, --target and --against")
    out.check()
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        found = why(
            model,
            evidence if against is None else f"runtime:{against}",
            profile,
            inputs=inputs,
            **numbers,
            target=target,
            sample=sample,
            signature=signature,
            python=python,
            progress=progress,
        )
    options = (*reading_words(), *(() if profile == _PROFILE else ("--profile", profile)))
    asked = Asked(model, found.evidence, target is not None, options)
    shown = why_report(found, asked, verbose=verbose)
    if paste:
        if out.html is not None:
            write_page(out.html, shown, model, profile, signature)
        say_text(pasted(found, asked, _versions()))
        return exit_of_verdict(found.verdict)
    return out.give(found.verdict, shown, lambda: why_document(found, asked), (model, profile, signature))


def _versions() -> str:
    """Return the versions of tflq, Python and NumPy."""
    import platform
    from importlib import metadata

    return f"tflq {metadata.version('tflq')}, Python {platform.python_version()}, NumPy {metadata.version('numpy')}"


def _element(_context: Any, _option: Any, text: str | None) -> tuple[int, ...] | None:
    """Parse 0,3,5,7 as an index; an empty text is the index of a scalar's element."""
    if text is None:
        return None
    try:
        return tuple(int(word) for word in text.split(",")) if text.strip() else ()
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an index like 0,3,5,7") from None


@click.command("explain")
@model_argument
@optional_dump_option
@sample_option
@click.option("--op", type=int, help="Explain this operator. [default: the first that differs]")
@click.option(
    "--element",
    metavar="I,J,...",
    callback=_element,
    help="Show step by step how this element of its output is computed.",
)
@click.option("--mode", type=click.Choice(["isolated", "cumulative"]), default="isolated", show_default=True)
@dump_inputs_option
@number_options
@signature_option
@click.option("--seed", default=0, show_default=True, help="Seed of generated inputs.")
@click.option(
    "--discriminate",
    metavar="FILE",
    type=click.Path(),
    help="Search for inputs that distinguish the remaining causes, and write them to this .npz file.",
)
@profile_option
@limit_options
@drawing_options
def explain_command(
    model: str,
    dump: str | None,
    sample: int | None,
    op: int | None,
    element: tuple[int, ...] | None,
    mode: str,
    inputs: str | None,
    signature: str | None,
    seed: int,
    discriminate: str | None,
    profile: str,
    out: Delivery,
    **numbers: Any,
) -> int:
    """Find the first operator of MODEL whose results in the dump differ, and the arithmetic that reproduces them.

    isolated: each operator is fed the dump's own inputs, so that errors of earlier operators do not spread.
    cumulative: the whole model, end to end. The cause is always searched with the dump's own inputs.

    Of a recording of several signatures, each is explained; a page is about the one with the gravest verdict. Any
    other dump of such a model names tensors of one signature, or needs --signature.

    Without a dump, --element shows how the profile computes one element. WORK/CASE, a case of a conformance run, is
    model and dump in one; its suite names the profile.

    \b
    tflq explain model.tflite --dump device.npz
    tflq explain model.tflite --dump device.npz --html why.html
    tflq explain model.tflite --op 4 --element 0,3,5,7
    tflq explain work/00462-fully_connected
    """
    from tflq.errors import OptionError
    from tflq.face.report.verbs.explain import explain_colourings, explain_document, explain_report
    from tflq.verbs.explain import explain

    if dump is None:
        model, dump, profile = _case(model, profile)
    out.check(discriminate)
    if dump is None:
        if element is None or (out.html, out.overlay, discriminate) != (None, None, None):
            raise OptionError("give --dump, or --element alone to show an element of the profile's own run")
        idle = [name for name in ("sample", "mode", *numbers) if _is_typed(name)]
        if idle:
            raise OptionError(f"{', '.join(f'--{name}' for name in idle)}: only with --dump")
        return _work_out(model, profile, op, element, inputs, seed, signature, out)
    findings = explain(
        model,
        dump,
        profile,
        op=op,
        mode=mode,
        element=element,
        inputs=inputs,
        sample=sample,
        signature=signature,
        **numbers,
        search_inputs=discriminate is not None,
    )
    words = reading_words()
    if discriminate is not None and findings.discrimination is not None and findings.discrimination.trials:
        write_arrays(discriminate, findings.discrimination.arrays())
        say_written(discriminate, "inputs that distinguish the causes")
    shown = explain_report(findings, model, dump, words)
    return out.give(
        findings.verdict,
        shown,
        lambda: explain_document(findings, model, dump, words),
        (model, profile, findings.signature or None),
        lambda: explain_colourings(findings),
    )


def _is_typed(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _case(place: str, profile: str) -> tuple[str, str | None, str]:
    """Return model, dump and profile of a case's folder; any other path is a model without a dump."""
    from pathlib import Path

    from tflq.comparison.evidence.forms import MODEL, is_case
    from tflq.devices.suites.jobs import profile_of
    from tflq.errors import InputWarning
    from tflq.texts import Statement

    folder = Path(place)
    if not is_case(folder):
        return place, None, profile
    text = f"{place} is one case: `tflq conform run` names the causes that all failing cases share, with more evidence"
    warnings.warn(InputWarning(Statement(text, "one-case")), stacklevel=2)
    return str(folder / MODEL), place, profile if _is_typed("profile") else profile_of(folder.parent) or profile


def _work_out(
    model: str,
    profile: str,
    op: int | None,
    element: tuple[int, ...],
    inputs: str | None,
    seed: int,
    signature: str | None,
    out: Delivery,
) -> int:
    from tflq.face.report.verbs.element import element_report
    from tflq.face.report.verbs.explain import element_run_document
    from tflq.verbs.explain import explain_element

    worked, facts = explain_element(model, element, profile, op=op, inputs=inputs, seed=seed, signature=signature)
    return out.give(Exit.SAME, element_report(worked), lambda: element_run_document(model, facts, worked))


@click.command("fit")
@model_argument
@dump_option
@dump_inputs_option
@number_options
@sample_option
@signature_option
@click.option(
    "--profile",
    default="litert-ref",
    show_default=True,
    callback=with_kernels,
    shell_complete=complete_profile,
    help="The profile you expect: if several fit equally well, the nearest to it is named.",
)
@click.option(
    "--discriminate",
    metavar="FILE",
    type=click.Path(),
    help="Search for inputs that distinguish the fitting profiles, and write them to this .npz file.",
)
@limit_options
@drawing_options
def fit_command(
    model: str, dump: str, signature: str | None, discriminate: str | None, out: Delivery, **options: Any
) -> int:
    """Compare every operator of MODEL under every profile with the dump, and name the best profile or mix of profiles.

    A dump of several signatures needs --signature.

    \b
    tflq fit model.tflite --dump device.npz
    """
    from tflq.face.report.verbs.fit import fit_colourings, fit_document, fit_report
    from tflq.verbs.explain import fit

    out.check(discriminate)
    result = fit(model, dump, signature=signature, **options, search_inputs=discriminate is not None)
    if discriminate is not None and result.discrimination is not None and result.discrimination.trials:
        write_arrays(discriminate, result.discrimination.arrays())
        say_written(discriminate, "inputs that distinguish the causes")
    shown = fit_report(result, model=model, dump=dump, options=reading_words())
    drawn = (model, "litert-ref", signature)
    return out.give(result.verdict, shown, lambda: fit_document(result), drawn, lambda: fit_colourings(result))


#: Endings of the output files.
_WRITTEN = (".tflite", ".npz", ".expected.npz")
#: Exit codes of a check by which the difference remains: those of `tflq verify`.
_REMAINS = (Exit.DIFFERS, Exit.EXPLAINED)


@click.command("reduce")
@model_argument
@optional_dump_option
@click.option(
    "--check",
    metavar="CMD",
    help="A command with {model} and {inputs} in it; its exit code 1 or 6 means that the difference remains.",
)
@click.option(
    "-o",
    "--output",
    metavar="NAME",
    type=click.Path(),
    help="Writes NAME.tflite, NAME.npz ...; NAME may be the model's.",
)
@click.option(
    "--bundle",
    metavar="FILE.zip",
    type=click.Path(),
    help="One archive for a vendor: model, inputs, outputs, a test in C, a page in Markdown.",
)
@force_option
@sample_option
@signature_option
@click.option("--inputs", metavar="SOURCE", help="The model's inputs; with --check as for `tflq run`.")
@click.option("--seed", default=0, show_default=True, help="Seed of generated inputs.")
@profile_option
@limit_options
@json_option
def reduce_command(
    model: str,
    dump: str | None,
    check: str | None,
    output: str | None,
    bundle: str | None,
    force: bool,
    sample: int | None,
    signature: str | None,
    inputs: str | None,
    seed: int,
    profile: str,
    as_json: bool,
) -> int:
    """Shrink MODEL to the operators, then the element, then the values that still show a difference.

    Writes NAME.tflite; NAME.npz, a golden file with the inputs and, with --dump, the device's outputs; and
    NAME.expected.npz, with the profile's outputs.

    With --dump each operator gets the dump's own inputs, and only the profile is run.

    \b
    tflq reduce model.tflite --dump device.npz -o small
    tflq reduce model.tflite --dump device.npz --bundle vendor.zip
    """
    from tflq.engine.api.files import subject
    from tflq.engine.runtimes.process import temporary_folder
    from tflq.errors import OptionError
    from tflq.face.report.verbs.reduce import reduce_document, reduce_report
    from tflq.model.ir import only_signed
    from tflq.model.storage.output import write_file
    from tflq.verbs.explain import reduce

    name, files = _files(output, bundle)
    check_files(files.values(), [model, dump, inputs], force=force)
    target = subject(model)
    if dump is not None and check is None:
        reduced = reduce(model, dump, profile, inputs=inputs, sample=sample, signature=signature)
        line = f"tflq verify {quote(name + '.tflite')} --golden {quote(name + '.npz')}"
        line += "" if profile == "litert-ref" else f" --profile {quote(profile)}"
    elif check is not None and dump is None:
        if "{model}" not in check:
            raise OptionError(f"--check {check!r}: needs {{model}} in place of the candidate's path")
        with temporary_folder() as folder:
            whole = only_signed(target.model, signature).model
            runs = _command(check, os.path.join(folder, "part"), whole)
            reduced = reduce(whole, None, profile, check=runs, inputs=inputs, sample=sample, seed=seed)
        line = _fill(check, name)
    else:
        raise OptionError("give either --dump or --check")
    if output is not None:
        _write(name, reduced)
    if bundle is not None:
        from tflq.face.report.verbs.reduce import bundle as bundled

        write_file(bundle, bundled(reduced, target.facts, profile, check))
        line = line if output is not None else _unpack(line, name, bundle)
    say_answer(
        reduce_report(reduced, next(iter(files.values())), line),
        lambda: reduce_document(reduced, target.facts, files, line),
        as_json=as_json,
    )
    if bundle is not None and output is not None and not as_json:
        say_written(bundle, "archive for the vendor")
    return Exit.SAME


def _files(output: str | None, bundle: str | None) -> tuple[str, dict[str, str]]:
    """Return the name before the endings of files, and the files by what they hold."""
    from tflq.errors import FileAccessError, OptionError

    if output is None and bundle is None:
        raise OptionError("give -o NAME, --bundle FILE.zip, or both")
    if bundle is not None and not bundle.lower().endswith(".zip"):
        raise OptionError(f"--bundle {bundle!r}: name a file that ends in .zip")
    files: dict[str, str] = {}
    name = bundle[:-4] if bundle is not None else ""
    if output is not None:
        name = output[:-7] if output.lower().endswith(".tflite") else output
        if not os.path.basename(name):
            raise FileAccessError(output, "is a folder; name a file")
        files = dict(zip(("model", "golden", "expected"), (name + ending for ending in _WRITTEN), strict=True))
    elif not os.path.basename(name):
        raise FileAccessError(str(bundle), "has no name")
    return name, files | ({} if bundle is None else {"bundle": bundle})


def _unpack(line: str, name: str, bundle: str) -> str:
    """Return a command that unpacks the archive, and shows the difference with its files."""
    line = line.replace(quote(name + ".tflite"), quote(os.path.join(name, "model.tflite")))
    line = line.replace(quote(name + ".npz"), quote(os.path.join(name, "device.npz")))
    return f"python3 -m zipfile -e {quote(bundle)} {quote(name)} && {line}"


def _fill(command: str, name: str) -> str:
    return command.replace("{model}", quote(name + ".tflite")).replace("{inputs}", quote(name + ".npz"))


def _command(command: str, name: str, whole: Model) -> Check:
    """Return a check that runs the command on candidates, which are written to NAME.tflite and NAME.npz.

    A candidate on which the command fails shows no difference; for the whole model it must work.
    """
    from tflq.engine.runtimes.process import started
    from tflq.errors import OptionError

    def check(model: Model, sample: Sample) -> bool:
        _save(name, model, sample, ())
        nothing = subprocess.DEVNULL
        with started(_fill(command, name), shell=True, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE) as child:
            _, printed = child.communicate()
        if model is whole and child.returncode not in (Exit.SAME, *_REMAINS):
            said = printed.decode(errors="replace").strip().rpartition("\n")[2]
            raise OptionError(
                f"--check {command!r}: exit code", expected="0, 1 or 6", got=f"{child.returncode} ({said})"
            )
        return child.returncode in _REMAINS

    return check


def _save(output: str, model: Model, sample: Sample, outputs: Sample) -> None:
    import hashlib

    from tflq.comparison.goldens.golden import Golden, Observation
    from tflq.comparison.results import InputFacts
    from tflq.engine.api.files import save
    from tflq.model.storage.output import write_file

    data = save(model)
    write_file(f"{output}.tflite", data)
    golden = Golden(
        (Observation(sample, outputs),), False, InputFacts("reduced", None, 1), {}, hashlib.sha256(data).hexdigest()
    )
    golden.save(f"{output}.npz")


def _write(output: str, reduced: Reduced) -> None:
    _save(output, reduced.model, reduced.sample, reduced.got or ())
    write_arrays(f"{output}.expected.npz", {f"s0_out{i}": value for i, value in enumerate(reduced.expected)})
