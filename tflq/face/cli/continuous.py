"""Options of verbs in continuous integration: baselines and SARIF."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.exits import Exit, exit_of_verdict, gravest

if TYPE_CHECKING:
    from tflq.face.report.issues import Issue

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


def continuous_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --sarif, and the options that write a baseline."""
    for option in (
        click.option("--reason", default="", metavar="TEXT", help="Why --accept-until accepts the findings."),
        click.option("--accept-until", metavar="DAY", callback=_day, help="Write all findings to the baseline."),
        click.option("--sarif", metavar="FILE", type=click.Path(), help="Also write SARIF 2.1.0."),
    ):
        command = option(command)
    return command


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
        from tflq.face.cli.output import say_error

        if self.accepted or self.new:
            say_error(f"{self.baseline}: {self.accepted:,} accepted, {len(self.new):,} new")
        for issue in self.new[:_NEW]:
            say_error(f"new: {issue.message}")


@dataclass(frozen=True, slots=True)
class Continuous:
    """The options of a continuous integration run."""

    baseline: str | None
    sarif: str | None
    accept_until: date | None
    reason: str

    def judge(
        self, verdict: Enum | str, rest: Enum | str, issues: Iterable[Issue], compared: Mapping[str, int]
    ) -> Judgement:
        """Return the exit code of a verdict, or with a baseline, of its new issues. Write baseline and SARIF.

        Args:
            verdict: The verdict of the run.
            rest: The verdict if all issues were accepted.
            issues: The complaints about the run.
            compared: The number of compared elements of each part, by name.

        Raises:
            OptionError: --accept-until without a baseline to write, or without a reason.
        """
        from tflq.errors import OptionError
        from tflq.face.cli.output import say_written
        from tflq.face.report.issues import no_longer_compared
        from tflq.face.report.numbers import counted
        from tflq.model.storage.baseline import Baseline, read_baseline, write_baseline

        issues, baseline = list(issues), self.baseline
        is_whole = exit_of_verdict(rest) is not Exit.INTERRUPTED
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
            from tflq.face.cli.files import write_text
            from tflq.face.report.sarif import sarif as sarif_text

            write_text(self.sarif, sarif_text(issues, {key: entry.reason for key, entry in known.accepted.items()}))
            say_written(self.sarif, f"SARIF, {counted(len(issues), 'result')}")
        if baseline is None:
            return Judgement(exit_of_verdict(verdict))
        new = tuple(issue for issue in issues if issue.key not in known.accepted)
        code = gravest([exit_of_verdict(rest), *(exit_of_verdict(issue.verdict) for issue in new)])
        return Judgement(code, baseline, len(issues) - len(new), new)
