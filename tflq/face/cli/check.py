"""`tflq verify`, `run`, `record` and `lint`: check a model.

`tflq verify`: every tensor of every operator, compared bit by bit.

`tflq run`: compute a model's outputs under a profile. No runtime takes part.

`tflq record`: save a runtime's results, for comparison later and elsewhere.

`tflq lint`: violations of the quantization spec and of the kernels' requirements.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.answer import (
    Delivery,
    Exit,
    check_golden,
    delivery_options,
    drawing_options,
    exit_of_verdict,
    golden_place,
    read_words,
    write_arrays,
    write_page,
)
from tflq.face.cli.many import (
    Continuous,
    attempts,
    baseline_option,
    continuous_options,
    each_model,
    fill,
    judge_each,
    junit_of_each,
    junit_option,
    models_argument,
    only_of_one,
    summarize,
    verify_several,
)
from tflq.face.cli.options import (
    PROFILE_HELP,
    complete_profile,
    complete_runtime,
    from_stdin,
    input_options,
    kernels_option,
    limit_options,
    model_argument,
    named_input_options,
    preparation_options,
    profile_option,
    python_option,
    reading_words,
    signature_option,
    tolerance_option,
    with_kernels,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tflq.comparison.verification.report import Verification
    from tflq.diagnosis.linting.lint import Lint
    from tflq.diagnosis.linting.rules import Finding
    from tflq.face.report.several import SummaryRow
    from tflq.verbs.run import Ran


@click.command("verify")
@models_argument
@click.option(
    "--against",
    metavar="RUNTIME",
    shell_complete=complete_runtime,
    help="The runtime or ready target (openvino ...) to compare with. [default: litert-ref]",
)
@click.option(
    "--golden",
    metavar="FILE",
    type=click.Path(),
    callback=from_stdin,
    help="Compare with a golden file instead. For several models a pattern: {stem} is a model's name without .tflite, "
    "{folder} its folder.",
)
@click.option("--baseline", metavar="FILE", help="Known and accepted differences (.json): only new ones fail.")
@click.option(
    "--mode", type=click.Choice(["isolated", "cumulative"]), help="[default: isolated, if all tensors are known]"
)
@input_options
@signature_option
@preparation_options
@kernels_option
@click.option(
    "--profile",
    metavar="NAME",
    callback=with_kernels,
    shell_complete=complete_profile,
    help=f"{PROFILE_HELP} [default: the runtime's own]",
)
@tolerance_option
@python_option
@click.option("--all", "all_operators", is_flag=True, help="List exact operators too.")
@junit_option
@continuous_options
@limit_options
@drawing_options
@click.pass_context
def verify_command(
    context: click.Context,
    /,
    models: tuple[str, ...],
    against: str | None,
    golden: str | None,
    all_operators: bool,
    kept: Continuous,
    out: Delivery,
    **options: Any,
) -> int:
    """Compare MODEL's operators with a real runtime's, bit by bit.

    isolated: each operator is fed the runtime's own inputs, so that errors of earlier operators do not spread.
    cumulative: the whole model, end to end.

    Every signature is compared. Variables, and inputs that are outputs too (a cache), keep their values through the
    steps of one interpreter. Inputs name their signature, as in decode/tokens, unless --signature chooses one.

    MODEL is computed under the runtime's own profile unless --profile names another. Exit code 0: the same bits; 1: a
    difference; 3: something could not be compared; 5: only differences within the bounds of results that the profile
    promises to be close, or within a --tolerance; 6: --profile differs, and the runtime's own profile reproduces every
    bit. Several models are summarized, with the worst exit code.

    Runtimes: litert-ref, litert-opt, litert-xnnpack, tensorflow-*, tflite-runtime-* and tflm.

    \b
    tflq verify model.tflite
    tflq verify model.tflite --inputs photos/ --mean 127.5 --std 127.5
    tflq verify model.tflite --golden model.npz
    tflq verify decoder.tflite --signature decode
    tflq verify models/*.tflite --golden 'goldens/{stem}.npz' --junit report.xml
    """
    from tflq.errors import OptionError

    if against and golden:  # the command line overrides a configuration
        if _typed(context, "golden") and _typed(context, "against"):
            raise OptionError("give one of --against and --golden")
        golden = golden if _typed(context, "golden") else None
    if golden and not _typed(context, "inputs"):
        options["inputs"] = None  # from a configuration; golden files bring their own
    only_of_one(models, (("--html", out.html), ("--overlay", out.overlay)))
    out.check(*kept.files)
    if len(models) > 1:
        if golden and fill(golden, "a/b.tflite") == golden:
            raise OptionError("--golden: for several models, name a pattern such as 'goldens/{stem}.npz'")
        return verify_several(models, lambda path: _verify(path, against, golden, options), kept, as_json=out.as_json)
    from tflq.face.report.issues import complaints_of_report
    from tflq.face.report.verbs.verify import junit, verify_colourings, verify_document, verify_report

    report = _verify(models[0], against, golden, options)
    judged = kept.judge(report.verdict, complaints_of_report(report))
    report = replace(report, accepted=None if judged.baseline is None else judged.is_accepted)
    kept.write_junit(lambda: junit(report))
    out.give(
        judged.code,
        verify_report(report, all_operators=all_operators, options=reading_words()),
        lambda: verify_document(report),
        (models[0], report.profile, options["signature"]),
        lambda: verify_colourings(report),
    )
    judged.say()
    return judged.code


def _verify(model: str, against: str | None, golden: str | None, options: dict[str, Any]) -> Verification:
    from tflq.comparison.verification.verifying import verify
    from tflq.errors import FileAccessError
    from tflq.face.report.progress import progress_bar
    from tflq.model.storage.stores import is_url

    golden = golden and fill(golden, model)
    if golden and not is_url(golden) and not os.path.exists(golden):
        raise FileAccessError(golden, f"No such file; tflq record {quote(model)} -o {quote(golden)} records it")
    with progress_bar() as progress:
        return verify(model, golden_place(golden) if golden else against or "litert-ref", progress=progress, **options)


def _typed(context: click.Context, option: str) -> bool:
    """Return whether the command line gives the option."""
    return context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


@click.command("run")
@models_argument
@named_input_options
@signature_option
@preparation_options
@click.option(
    "--labels",
    metavar="FILE",
    type=click.Path(),
    help="Names of the classes, one per line; the 5 likeliest are listed.",
)
@click.option(
    "-o", "--output", metavar="OUT.npz", type=click.Path(), help="Where to write the outputs; - for standard output."
)
@click.option("--all-tensors", is_flag=True, help="Also write every tensor, as t<index>.")
@kernels_option
@profile_option
@limit_options
@delivery_options
def run_command(models: tuple[str, ...], output: str | None, out: Delivery, **options: Any) -> int:
    """Run MODEL and write its outputs, named as in the model, to an .npz file.

    With several samples, names begin with s<k>_. For images, or with --labels, the 5 likeliest classes are listed.
    Of a model with several signatures, every one runs, and its outputs are named as in decode/logits. Several models
    get a row each; --output then names a file for each by {stem} or {folder}.

    \b
    tflq run model.tflite
    tflq run model.tflite --inputs x=x.npy -o out.npz
    tflq run model.tflite --profile tflm --inputs samples.npz -o out.npz
    tflq run model.tflite --inputs cat.jpg --std 255 --labels labels.txt
    tflq run decoder.tflite --signature decode --inputs decode.npz
    tflq run models/*.tflite -o 'out/{stem}.npz'
    """
    from tflq.errors import OptionError
    from tflq.face.report.verbs.run import run_document, run_report

    to_stdout = output == "-"
    only_of_one(
        models, (("--html", out.html), ("--output -", to_stdout), ("--inputs NAME=FILE", options["files"] or None))
    )
    outputs = [None if output is None or to_stdout else fill(output, model) for model in models]
    if output is not None and len(set(outputs)) < len(models):
        raise OptionError("--output names one file for several models; write {stem} or {folder} in it", got=output)
    out.check(*outputs)
    if len(models) > 1:
        paths = dict(zip(models, outputs, strict=True))
        return each_model(
            "run", models, _COLUMNS, lambda model: _row(model, paths[model], options), as_json=out.as_json
        )
    ran = _run(models[0], options, drawn=out.html is not None)
    written = outputs[0] or ""
    drawn = (models[0], options["profile"], options["signature"])
    if output:
        write_arrays(output if to_stdout else written, ran.arrays)
    if not to_stdout:
        return out.give(Exit.SAME, run_report(ran, written), lambda: run_document(ran, written), drawn)
    if out.html is not None:
        write_page(out.html, run_report(ran, written), *drawn)
    return Exit.SAME


#: Columns of the summary of several models.
_COLUMNS = (("samples", ">"), ("outputs", ">"), ("promise", "<"), ("written to", "<"))


def _row(model: str, output: str | None, options: Mapping[str, Any]) -> SummaryRow:
    from tflq.face.report.several import SummaryRow
    from tflq.face.report.verbs.run import run_document

    ran = _run(model, options, drawn=False)
    if output:
        write_arrays(output, ran.arrays)
    samples = ran.inputs.samples
    words = ", ".join(dict.fromkeys(promise.word for promise in ran.promises.values()))
    cells = (str(samples), str(len(ran.arrays) // max(samples, 1)), words, output or "")
    return SummaryRow("done", cells, run_document(ran, output or ""), Exit.SAME)


def _run(model: str, options: Mapping[str, Any], *, drawn: bool) -> Ran:
    from tflq.verbs.run import run

    labels = options["labels"]
    kept = ("files", "samples", "seed", "signature", "mean", "std", "quantize_inputs", "bgr", "all_tensors")
    return run(
        model,
        options["inputs"],
        options["profile"],
        labels=None if labels is None else read_words(labels),
        keep_values=drawn,
        **{name: options[name] for name in kept},
    )


@click.command("record")
@model_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="PATH",
    help="The golden to write: X.npz; or as a bundle X.zip, X/ or a URL.",
)
@click.option(
    "--against",
    default="litert-ref",
    show_default=True,
    metavar="RUNTIME",
    shell_complete=complete_runtime,
    help="The runtime or ready target (openvino ...) to record.",
)
@click.option("--all-tensors", is_flag=True, help="Record every operator's results, which isolated mode needs.")
@input_options
@signature_option
@preparation_options
@python_option
@delivery_options
def record_command(
    model: str,
    output: str,
    against: str,
    all_tensors: bool,
    inputs: str | None,
    samples: int,
    seed: int,
    python: str | None,
    out: Delivery,
    **preparation: Any,
) -> int:
    """Run MODEL in a real runtime and write a golden file: inputs, outputs, provenance.

    An existing golden is kept unless --force replaces it. docs/golden-format.md describes bundles.

    \b
    tflq record model.tflite -o model.npz --all-tensors
    tflq record model.tflite -o goldens/model/ --inputs samples.npz
    """
    from tflq.comparison.verification.verifying import record
    from tflq.engine.api.files import subject
    from tflq.face.report.verbs.golden import record_document, record_report

    check_golden(output, [model, inputs], force=out.force)
    out.check()
    golden = record(model, against, inputs, all_tensors, output, samples, seed, python, **preparation)
    shown = record_report(golden, model, output)
    return out.give(Exit.SAME, shown, lambda: record_document(golden, subject(model).facts, output), (model,))


@click.command("lint")
@models_argument
@click.option(
    "--target",
    "targets",
    metavar="NAME",
    multiple=True,
    help="Also answer whether these run it: profiles by name or path, litert, cmsis-nn; several with commas.",
)
@click.option("--portable", is_flag=True, help="Also note what keeps runtimes from giving the same bits.")
@click.option("--fix", metavar="FILE", type=click.Path(), help="Write the model with the safe corrections made.")
@baseline_option
@signature_option
@continuous_options
@junit_option
@delivery_options
def lint_command(
    models: tuple[str, ...],
    targets: tuple[str, ...],
    portable: bool,
    fix: str | None,
    signature: str | None,
    kept: Continuous,
    out: Delivery,
) -> int:
    """Check MODEL against the 8-bit quantization specification and the kernels' requirements. Nothing is run.

    Exit code 1 if anything is found that --fix has not corrected. Corrections change no bit of any result.

    --portable adds notes: the form of each integer operator on which all runtimes agree. Notes only explain, and do not
    change the exit code; `tflq prove MODEL --all` decides.

    \b
    tflq lint model.tflite --target tflm,litert-xnnpack
    tflq lint model.tflite --fix corrected.tflite
    tflq lint models/*.tflite --target cmsis-nn
    tflq lint model.tflite --portable
    """
    from tflq.diagnosis.linting.lint import lint
    from tflq.face.report.issues import complaints_of_lint
    from tflq.face.report.several import issue_suite
    from tflq.face.report.verbs.lint import lint_document, lint_report

    only_of_one(models, (("--fix", fix), ("--html", out.html)))
    out.check(fix, *kept.files)
    named = tuple(name for words in targets for name in words.split(",") if name)
    if len(models) > 1:
        one = partial(lint, target=named, signature=signature, is_portable=portable)
        return _lint_several(models, one, kept, as_json=out.as_json)
    model = models[0]
    result = lint(model, named, signature, is_portable=portable)
    corrected: tuple[Finding, ...] = ()
    if fix is not None:
        from tflq.diagnosis.linting.lint import fixed
        from tflq.engine.api.files import save

        better, corrected = fixed(result.model, result.findings)
        save(better, fix)
    complaints = complaints_of_lint(result, corrected)
    judged = kept.judge("findings" if len(result.failing) > len(corrected) else "clean", complaints)
    shown = lint_report(result, fix, len(corrected), accepted=judged.is_accepted)
    drawn = (result.model, "litert-ref", signature)
    out.give(judged.code, shown, lambda: lint_document(result, fix, len(corrected)), drawn)
    kept.write_junit(lambda: issue_suite("lint", model, complaints.issues))
    judged.say()
    return judged.code


#: Columns of the summary of several models.
_LINT_COLUMNS = (("errors", ">"), ("warnings", ">"), ("first", "<"))


def _lint_several(models: Sequence[str], one: Callable[[str], Lint], kept: Continuous, *, as_json: bool) -> int:
    """Check each model and print a summary. A model that cannot be read is one row."""
    from tflq.face.report.issues import complaints_of_lint
    from tflq.face.report.several import Outcome, issue_suite

    outcomes, ended = attempts(models, one, lambda found: exit_of_verdict("findings" if found.failing else "clean"))
    rows = [Outcome(o.path, None if o.found is None else _lint_row(o.found), o.code, o.error) for o in outcomes]
    summarize("lint", _LINT_COLUMNS, rows, ended, as_json=as_json)
    kept.write_junit(
        lambda: junit_of_each(
            "lint", outcomes, lambda path, found: issue_suite("lint", path, complaints_of_lint(found).issues)
        )
    )
    judged = judge_each("lint", outcomes, ended, kept, complaints_of_lint)
    judged.say()
    return judged.code


def _lint_row(result: Lint) -> SummaryRow:
    from tflq.diagnosis.linting.rules import Level
    from tflq.face.report.several import SummaryRow
    from tflq.face.report.verbs.lint import lint_document

    errors = sum(finding.level is Level.ERROR for finding in result.findings)
    warnings = sum(finding.level is Level.WARNING for finding in result.findings)
    first = next(iter(sorted(result.findings, key=lambda finding: finding.level is not Level.ERROR)), None)
    place = "" if first is None else f"operator {first.operator} {first.op}: {first.rule}"
    word = "errors" if errors else "warnings" if warnings else "clean"
    cells = (str(errors or ""), str(warnings or ""), place)
    code = exit_of_verdict("findings" if result.failing else "clean")
    return SummaryRow(word, cells, lint_document(result), code)
