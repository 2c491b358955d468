"""The cost of tests: processor time by test, cases, and compiled functions; and the budget that they keep.

`tests/budget.json` has what the default selection may cost in cases and in functions that numba compiles: counts that
every machine agrees on. Seconds are printed and, with `--costs FILE`, written by test; they never decide.
"""

from __future__ import annotations

import json
import resource
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tflq.engine.jit.compiled import heard

#: The share of a budget that tests may take: what is installed decides how many cases there are.
_SHARE = 1.2
_KEY = "cost"


def _spent() -> float:
    """Return the processor time of this process and of its children that ended, in seconds."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Costs:
    """A plugin that measures every test where it runs, and adds up where reports are collected."""

    def __init__(self, file: str | None, task: str | None, budget: Path) -> None:
        self._file, self._task, self._budget = file, task, budget
        self.seconds: Counter[str] = Counter()
        self.cases, self.functions, self.exceeded = 0, 0, []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test with its fixtures; the last of its reports carries the cost."""
        begin = _spent()
        with heard() as compilations:
            item.stash[_MEASURED] = lambda: (_spent() - begin, compilations.functions)
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Add the cost to the report of the teardown."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_KEY, item.stash[_MEASURED]()))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test's cost up."""
        cost = dict(report.user_properties).get(_KEY)
        if cost is not None:
            self.seconds[report.nodeid] += cost[0]
            self.functions += cost[1]
            self.cases += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the costs, and fail the session if they exceed the budget."""
        if hasattr(session.config, "workerinput"):
            return
        whole = {"cases": self.cases, "functions": self.functions}
        if self._file is not None:
            rows = {name: round(seconds, 3) for name, seconds in self.seconds.most_common()}
            Path(self._file).write_text(json.dumps({**whole, "tests": rows}, indent=1), "utf-8")
        if self._task == "write":
            self._budget.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
        if self._task == "check":
            self.exceeded = beyond(json.loads(self._budget.read_text("utf-8")), self)
            if self.exceeded and session.exitstatus == 0:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what exceeds the budget."""
        seconds = sum(self.seconds.values())
        terminalreporter.write_line(
            f"cost: {seconds:,.0f} s of processor time, {self.cases:,} cases, {self.functions:,} compiled functions"
        )
        for line in self.exceeded:
            terminalreporter.write_line(f"over budget: {line}; make tests fewer, or edit tests/budget.json")


_MEASURED = pytest.StashKey[object]()


def beyond(budget: Mapping[str, int], costs: Costs) -> list[str]:
    """Return what exceeds a budget by more than a fifth: cases, compiled functions."""
    rows = [(name, getattr(costs, name), most) for name, most in budget.items()]
    return [f"{name} {now:,} of {most:,}" for name, now, most in rows if now > most * _SHARE]
