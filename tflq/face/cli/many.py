"""Several models in one command: summaries, baselines, SARIF.

Verbs for several models: each runs by itself, and a model that fails is one row of the summary.

Options of verbs in continuous integration: baselines and SARIF.

`tflq verify` of several models: one summary, one JUnit file, one SARIF log, one baseline, one exit code.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum, IntEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tflq.face.cli.answer import Exit, exit_of, exit_of_verdict, gravest, say_answer, say_written, write_text
from tflq.face.cli.options import from_stdin

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from tflq.comparison.verification.report import Verification
    from tflq.face.report.issues import Complaints, Issue
    from tflq.face.report.several import Outcome, SummaryRow

T = TypeVar("T")

models_argument = click.argument(
    "models",
    metavar="MODEL...",
    nargs=-1,
    required=True,
    type=click.Path(),
    callback=lambda context, option, words: tuple(str(from_stdin(context, option, word)) for word in words),
)


def attempts(
    models: Sequence[str], one: Callable[[str], T], code_of: Callable[[T], IntEnum]
) -> tuple[list[Outcome[T]], Exit]:
    """Call `one` with each model; return each result or error, and INTERRUPTED or SAME.

    An interrupt ends the calls.
    """
    from tflq.face.report.several import Outcome

    outcomes = list[Outcome[T]]()
    for model in models:
        try:
            found = one(model)
            outcomes.append(Outcome(model, found, code_of(found)))
        except KeyboardInterrupt:
            return outcomes, Exit.INTERRUPTED
        except Exception as error:
            outcomes.append(Outcome(model, None, exit_of(error), error))
    return outcomes, Exit.SAME


def each_model(
    verb: str,
    models: Sequence[str],
    columns: Sequence[tuple[str, str]],
    one: Callable[[str], SummaryRow],
    *,
    as_json: bool,
) -> Exit:
    """Call `one` with each model and print a summary; return the gravest exit code."""
    return summarize(verb, columns, *attempts(models, one, lambda row: row.code), as_json=as_json)


def summarize(
    verb: str,
    columns: Sequence[tuple[str, str]],
    outcomes: Sequence[Outcome[SummaryRow]],
    ended: Exit,
    *,
    as_json: bool,
) -> Exit:
    """Print a summary; return the gravest exit code."""
    from tflq.face.report.several import summary_document, summary_report

    code = gravest([ended, *(Exit(outcome.code) for outcome in outcomes)])
    say_answer(
        summary_report(verb, columns, outcomes, code), lambda: summary_document(verb, outcomes, code), as_json=as_json
    )
    return code


def only_of_one(models: Sequence[str], options: Iterable[tuple[str, object]]) -> None:
    """Refuse options for a single model if there are several, and what is no model."""
    from tflq.errors import OptionError

    _refuse_evidence(models)

    names = [name for name, value in options if value is not None and value is not False]
    if len(models) > 1 and names:
        raise OptionError(f"{', '.join(names)}: for one model only, but {len(models)} are given")


def _refuse_evidence(models: Sequence[str]) -> None:
    """Refuse a board's log or arrays beside a model: `tflq why` reads them."""
    from tflq.errors import OptionError, TflqError
    from tflq.model.storage.kinds import HEAD, is_evidence, open_file

    for path in models[1:]:
        try:
            with open_file(Path(path)) as file:
                head = file.read(HEAD)
        except TflqError:
            continue
        if is_evidence(head):
            again = f"tflq why {quote(models[0])} {quote(path)}"
            raise OptionError(f"{path}: is no model, but may hold its results: `{again}` compares them")


def fill(pattern: str, model: str) -> str:
    """Return a pattern with a model's name without its ending for {stem}, and its folder for {folder}."""
    path = Path(model)
    return pattern.replace("{stem}", path.stem).replace("{folder}", str(path.parent))


#: Number of new complaints that are listed; SARIF has all.
_NEW = 10


def _day(_context: Any, _option: Any, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a day such as 2027-03-31") from None


baseline_option = click.option(
    "--baseline", metavar="FILE", type=click.Path(), help="Known and accepted findings (.json): only new ones fail."
)


junit_option = click.option("--junit", metavar="FILE", type=click.Path(), help="Also write JUnit XML.")


def continuous_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --sarif and the options that write a baseline, passed on as `kept` with --baseline and --junit."""

    @functools.wraps(command)
    def with_kept(*words: Any, baseline: Any, junit: Any, sarif: Any, accept_until: Any, reason: Any, **o: Any) -> Any:
        return command(*words, kept=Continuous(baseline, junit, sarif, accept_until, reason), **o)

    function: Callable[..., Any] = with_kept
    for option in (
        click.option("--reason", default="", metavar="TEXT", help="Why --accept-until accepts the findings."),
        click.option("--accept-until", metavar="DAY", callback=_day, help="Write all findings to the baseline."),
        click.option("--sarif", metavar="FILE", type=click.Path(), help="Also write SARIF 2.1.0."),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Judgement:
    """A run's exit code, and with a `baseline` which of its issues that accepts."""

    code: Exit
    baseline: str | None = None
    accepted: int = 0
    new: tuple[Issue, ...] = ()

    @property
    def is_accepted(self) -> bool:
        """True if there are issues and the baseline accepts all of them."""
        return self.accepted > 0 and not self.new

    def say(self) -> None:
        """Print how many issues are accepted, and the new ones, to standard error."""
        from tflq.face.cli.answer import say_error

        if self.accepted or self.new:
            say_error(f"{self.baseline}: {self.accepted:,} accepted, {len(self.new):,} new")
        for issue in self.new[:_NEW]:
            say_error(f"new: {issue.message}")


@dataclass(frozen=True, slots=True)
class Continuous:
    """The options of a continuous integration run."""

    baseline: str | None = None
    junit: str | None = None
    sarif: str | None = None
    accept_until: date | None = None
    reason: str = ""

    @property
    def files(self) -> tuple[str | None, str | None]:
        """The files that are written beside a baseline."""
        return self.junit, self.sarif

    def write_junit(self, suites: Callable[[], Element]) -> None:
        """Write JUnit XML, if it is asked for."""
        if self.junit is not None:
            from tflq.face.report.several import counts_text, junit_text

            root = suites()
            write_text(self.junit, junit_text(root))
            say_written(self.junit, f"JUnit, {counts_text(root)}")

    def judge(self, verdict: Enum | str, *parts: Complaints) -> Judgement:
        """Return the exit code of a verdict, or with a baseline, of its new issues. Write baseline and SARIF.

        Args:
            verdict: The verdict of the run.
            parts: The complaints about the run, or about each model.

        Raises:
            OptionError: --accept-until without a baseline to write, or without a reason.
        """
        from tflq.errors import OptionError
        from tflq.face.report.issues import no_longer_compared, sarif
        from tflq.face.report.wording import counted
        from tflq.model.storage.documents import Baseline, read_baseline, write_baseline

        rest = gravest([Exit.SAME, *(exit_of_verdict(part.rest) for part in parts)])
        issues, baseline = [issue for part in parts for issue in part.issues], self.baseline
        compared: Counter[str] = sum((Counter(part.compared) for part in parts), Counter())
        is_whole = rest is not Exit.INTERRUPTED
        if self.accept_until is not None and is_whole:
            if baseline is None or not self.reason:
                raise OptionError("--accept-until needs --baseline FILE and --reason TEXT")
            keys = {issue.key for issue in issues}
            write_baseline(baseline, keys, self.reason, self.accept_until, compared)
            say_written(baseline, f"baseline, {counted(len(keys), 'finding')} accepted until {self.accept_until}")
        baseline = baseline if is_whole else None  # which holds all that was not reached
        known = Baseline({}, {}) if baseline is None else read_baseline(baseline, date.today())
        issues += no_longer_compared(known.compared, compared, str(baseline))
        if self.sarif is not None:
            write_text(self.sarif, sarif(issues, {key: entry.reason for key, entry in known.accepted.items()}))
            say_written(self.sarif, f"SARIF, {counted(len(issues), 'result')}")
        if baseline is None:
            return Judgement(exit_of_verdict(verdict))
        new = tuple(issue for issue in issues if issue.key not in known.accepted)
        code = gravest([rest, *(exit_of_verdict(issue.verdict) for issue in new)])
        return Judgement(code, baseline, len(issues) - len(new), new)


def judge_each(
    verb: str, outcomes: Sequence[Outcome[T]], ended: Exit, kept: Continuous, complaints: Callable[[T], Complaints]
) -> Judgement:
    """Judge the results of several models. No baseline accepts a model that fails."""
    from tflq.face.report.issues import Complaints, complaints_of_failure

    parts = [
        complaints_of_failure(verb, o.path, str(o.error), o.code) if o.found is None else complaints(o.found)
        for o in outcomes
    ]
    return kept.judge(gravest([ended, *(Exit(o.code) for o in outcomes)]), Complaints(ended, ()), *parts)


def junit_of_each(verb: str, outcomes: Sequence[Outcome[T]], suite: Callable[[str, T], Element]) -> Element:
    """Return the test suites of several models."""
    from tflq.face.report.several import failed_suite, joined

    return joined(
        verb,
        (
            failed_suite(verb, o.path, o.error or AssertionError()) if o.found is None else suite(o.path, o.found)
            for o in outcomes
        ),
    )


def verify_several(
    models: Sequence[str], one: Callable[[str], Verification], kept: Continuous, *, as_json: bool
) -> Exit:
    """Verify each model with `one` and print a summary. A model that fails is one row."""
    from tflq.face.report.issues import complaints_of_report
    from tflq.face.report.verbs.verify import junit, summary_document, summary_report

    outcomes, ended = attempts(models, one, lambda report: exit_of_verdict(report.verdict))
    judged = judge_each("verify", outcomes, ended, kept, complaints_of_report)
    if judged.baseline is not None:
        outcomes = [_accept(outcome, {issue.key for issue in judged.new}) for outcome in outcomes]
    kept.write_junit(lambda: junit_of_each("verify", outcomes, lambda _path, report: junit(report)))
    say_answer(summary_report(outcomes), lambda: summary_document(outcomes, judged.code), as_json=as_json)
    judged.say()
    return judged.code


def _accept(outcome: Outcome[Verification], new: Collection[str]) -> Outcome[Verification]:
    """Return the outcome; its report is accepted if it has issues and none of them is new."""
    from tflq.face.report.issues import complaints_of_report

    if outcome.found is None:
        return outcome
    keys = [issue.key for issue in complaints_of_report(outcome.found).issues]
    report = replace(outcome.found, accepted=bool(keys) and not any(key in new for key in keys))
    return replace(outcome, found=report, code=exit_of_verdict(report.verdict))
