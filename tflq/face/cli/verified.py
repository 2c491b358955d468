"""`tflq verify` of several models: one summary, one JUnit file, one SARIF log, one baseline, one exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tflq.face.cli.continuous import Continuous
from tflq.face.cli.exits import Exit, exit_of, exit_of_verdict, gravest
from tflq.face.cli.files import write_junit
from tflq.face.cli.output import say, say_document

if TYPE_CHECKING:
    from tflq.comparison.verification import Report
    from tflq.face.report.verbs.verify.summary import Outcome


def verify_several(
    models: Sequence[str], one: Callable[[str], Report], junit: str | None, kept: Continuous, *, as_json: bool
) -> Exit:
    """Verify each model with `one` and print a summary. A model that fails is one row, and no baseline accepts it.

    An interrupt ends the verification, and the models until then are summarized.
    """
    from tflq.face.report.issues import compare_of_report, issues_of_failure, issues_of_report
    from tflq.face.report.verbs.verify.summary import Outcome, summary_document, summary_report

    outcomes, ended = [], list[Exit]()
    for model in models:
        try:
            report = one(model)
            outcomes.append(Outcome(model, report, None, exit_of_verdict(report.verdict)))
        except KeyboardInterrupt:
            ended = [Exit.INTERRUPTED]
            break
        except Exception as error:
            outcomes.append(Outcome(model, None, error, exit_of(error)))
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    issues = [issue for report in reports for issue in issues_of_report(report)]
    compared: Counter[str] = sum((Counter(compare_of_report(report)) for report in reports), Counter())
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    issues += [issue for o in failed for issue in issues_of_failure("verify", o.path, str(o.error))]
    rest = gravest(
        [*ended, Exit.SAME, *(exit_of_verdict(report.rest) for report in reports), *(Exit(o.code) for o in failed)]
    )
    judged = kept.judge(gravest([*ended, *(Exit(o.code) for o in outcomes)]), rest, issues, compared)
    new = {issue.key for issue in judged.new}
    outcomes = [_accept(outcome, new) if judged.baseline is not None else outcome for outcome in outcomes]
    if junit is not None:
        write_junit(junit, _junit(outcomes))
    if as_json:
        say_document(summary_document(outcomes, judged.code))
    else:
        say(summary_report(outcomes))
    judged.say()
    return judged.code


def _accept(outcome: Outcome, new: Collection[str]) -> Outcome:
    """Return the outcome; its report is accepted if it has issues and none of them is new."""
    from tflq.face.report.issues import issues_of_report

    if outcome.report is None:
        return outcome
    keys = [issue.key for issue in issues_of_report(outcome.report)]
    report = replace(outcome.report, accepted=bool(keys) and not any(key in new for key in keys))
    return replace(outcome, report=report, code=exit_of_verdict(report.verdict))


def _junit(outcomes: Sequence[Outcome]) -> str:
    from tflq.face.report.junit import failed_suite, joined
    from tflq.face.report.verbs.verify.junit import junit

    return joined(
        "verify",
        (
            failed_suite("verify", o.path, o.error or AssertionError()) if o.report is None else junit(o.report)
            for o in outcomes
        ),
    )
