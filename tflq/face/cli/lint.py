"""`tflq lint`: violations of the quantization spec and of the kernels' requirements."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import click

from tflq.face.cli.continuous import Continuous, baseline_option, continuous_options
from tflq.face.cli.exits import Exit, exit_of, exit_of_verdict, gravest
from tflq.face.cli.files import check_files, force_option, write_junit, write_page
from tflq.face.cli.options import html_option, json_option, signature_option
from tflq.face.cli.output import say, say_document
from tflq.face.cli.several import Found, each_model, models_argument, only_of_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from tflq.diagnosis.linting import Finding, Lint


@click.command("lint")
@models_argument
@click.option(
    "--target",
    metavar="NAME",
    help="Also report operators that this runtime refuses: a profile by name or path, or litert or cmsis-nn.",
)
@click.option("--portable", is_flag=True, help="Also note what keeps runtimes from giving the same bits.")
@click.option("--fix", metavar="FILE", type=click.Path(), help="Write the model with the safe corrections made.")
@baseline_option
@signature_option
@continuous_options
@click.option("--junit", metavar="FILE", type=click.Path(), help="Also write JUnit XML.")
@html_option
@force_option
@json_option
def lint_command(
    models: tuple[str, ...],
    target: str | None,
    portable: bool,
    fix: str | None,
    signature: str | None,
    baseline: str | None,
    sarif: str | None,
    accept_until: date | None,
    reason: str,
    junit: str | None,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Check MODEL against the 8-bit quantization specification and the kernels' requirements. Nothing is run.

    Exit code 1 if anything is found that --fix has not corrected. Corrections change no bit of any result.

    --portable adds notes: the form of each integer operator on which all runtimes agree. Notes only explain, and do not
    change the exit code; `tflq prove MODEL --all` decides.

    \b
    tflq lint model.tflite --target tflm
    tflq lint model.tflite --fix corrected.tflite
    tflq lint models/*.tflite --target cmsis-nn
    tflq lint model.tflite --portable
    """
    from tflq.diagnosis.linting import lint
    from tflq.face.report.verbs.lint import lint_document, lint_report

    only_of_one(models, (("--fix", fix), ("--html", html)))
    check_files([fix, html, sarif, junit], [*models, baseline, target], force=force)
    kept = Continuous(baseline, sarif, accept_until, reason)
    if len(models) > 1:
        return _lint_several(
            models, lambda path: lint(path, target or "", signature, is_portable=portable), junit, kept, as_json=as_json
        )
    model = models[0]
    result = lint(model, target or "", signature, is_portable=portable)
    corrected: tuple[Finding, ...] = ()
    if fix is not None:
        from tflq.diagnosis.linting.fixes import fixed
        from tflq.engine.api.files import save

        better, corrected = fixed(result.model, result.findings)
        save(better, fix)
    from tflq.face.report.issues import issues_of_lint

    issues = list(issues_of_lint(result, corrected))
    judged = kept.judge("findings" if len(result.failing) > len(corrected) else "clean", "clean", issues, {})
    shown = lint_report(result, fix, len(corrected), accepted=judged.is_accepted)
    if html is not None:
        write_page(html, shown, result.model, signature=signature)
    if as_json:
        say_document(lint_document(result, fix, len(corrected)))
    else:
        say(shown)
    if junit is not None:
        from tflq.face.report.junit import issue_suite

        write_junit(junit, issue_suite("lint", model, issues))
    judged.say()
    return judged.code


#: Columns of the summary of several models.
_COLUMNS = (("errors", ">"), ("warnings", ">"), ("first", "<"))


def _lint_several(
    models: tuple[str, ...], one: Callable[[str], Lint], junit: str | None, kept: Continuous, *, as_json: bool
) -> int:
    """Check each model and print a summary. A model that cannot be read is one row, and no baseline accepts it."""
    from tflq.face.report.issues import Issue, issues_of_failure, issues_of_lint

    issues: list[Issue] = []
    suites: list[str] = []
    failed: list[Exit] = []

    def row(path: str) -> Found:
        from tflq.face.report.junit import failed_suite, issue_suite

        try:
            result = one(path)
        except Exception as error:
            issues.extend(issues_of_failure("lint", path, str(error)))
            suites.append(failed_suite("lint", path, error))
            failed.append(exit_of(error))
            raise
        own = list(issues_of_lint(result))
        issues.extend(own)
        suites.append(issue_suite("lint", path, own))
        return _row(result)

    code = each_model("lint", models, _COLUMNS, row, as_json=as_json)
    if junit is not None:
        from tflq.face.report.junit import joined

        write_junit(junit, joined("lint", suites))
    rest = code if code is Exit.INTERRUPTED else gravest([Exit.SAME, *failed])
    judged = kept.judge(code, rest, issues, {})
    judged.say()
    return judged.code


def _row(result: Lint) -> Found:
    from tflq.diagnosis.linting import Level
    from tflq.face.report.verbs.lint import lint_document

    errors = sum(finding.level is Level.ERROR for finding in result.findings)
    warnings = sum(finding.level is Level.WARNING for finding in result.findings)
    first = next(iter(sorted(result.findings, key=lambda finding: finding.level is not Level.ERROR)), None)
    place = "" if first is None else f"operator {first.operator} {first.op}: {first.rule}"
    word = "errors" if errors else "warnings" if warnings else "clean"
    cells = (str(errors or ""), str(warnings or ""), place)
    return word, cells, lint_document(result, None, 0), exit_of_verdict("findings" if result.failing else "clean")
