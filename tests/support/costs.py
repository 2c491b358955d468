"""The cost of tests: processor time by test and by file, cases, and compiled functions; and the budget they keep.

`tests/budget.json` has what the default selection costs: seconds, cases, compiled functions, and the *beats* of each
folder. Machines differ, so a beat is the time of a fixed computation, measured when the session begins. Either measure
varies by itself, so the time is over budget if seconds and beats both are. A commit that needs more edits that file, as
with `tests/lines.json`.
"""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tflq.engine.jit.compilations import heard

#: Rounds of the fixed computation.
_ROUNDS = 400_000
#: Shares of a budget that all tests, and one folder, may take: machines differ in what is fast.
_OF_ALL, _OF_FOLDER = 1.2, 1.5
_KEY = "cost"


def _spent() -> float:
    """Return the processor time of this process and of its children that ended, in seconds."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def beat() -> float:
    """Return the processor time of the fixed computation, in seconds: the least of three."""
    return min(_once() for _ in range(3))


def _once() -> float:
    begin, total = time.process_time(), 0
    for number in range(_ROUNDS):
        total += number & 255
    return time.process_time() - begin


class Costs:
    """A plugin that measures every test where it runs, and adds up where reports are collected."""

    def __init__(self, file: str | None, task: str | None, budget: Path) -> None:
        self._file, self._task, self._budget = file, task, budget
        self._beat = beat()
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

    def of_folders(self) -> dict[str, int]:
        """Return the beats of each folder below tests/, and of the files beside them as `tests`."""
        found: Counter[str] = Counter()
        for name, seconds in self.seconds.items():
            parts = Path(name.partition("::")[0]).parts
            found["/".join(parts[:2]) if len(parts) > 2 else parts[0]] += seconds / self._beat
        return {folder: round(beats) for folder, beats in sorted(found.items())}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the costs, and fail the session if they exceed the budget."""
        if hasattr(session.config, "workerinput"):
            return
        total = round(sum(self.seconds.values()))
        whole = {"seconds": total, "cases": self.cases, "functions": self.functions, "beats": self.of_folders()}
        if self._file is not None:
            rows = {name: round(seconds, 3) for name, seconds in self.seconds.most_common()}
            Path(self._file).write_text(json.dumps({"beat": self._beat, **whole, "tests": rows}, indent=1), "utf-8")
        if self._task == "write":
            self._budget.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
        if self._task == "check":
            self.exceeded = beyond(json.loads(self._budget.read_text("utf-8")), self)
            if self.exceeded and session.exitstatus == 0:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what exceeds the budget."""
        total = sum(self.of_folders().values())
        terminalreporter.write_line(
            f"cost: {total:,} beats, {self.cases:,} cases, {self.functions:,} compiled functions"
        )
        for line in self.exceeded:
            terminalreporter.write_line(f"over budget: {line}; make tests smaller, or edit tests/budget.json")


_MEASURED = pytest.StashKey[object]()


def beyond(budget: Mapping[str, Any], costs: Costs) -> list[str]:
    """Return what exceeds a budget: the sum of beats, cases or compiled functions by a fifth, or a folder by half."""
    found, folders = costs.of_folders(), budget["beats"]
    rows = [(name, getattr(costs, name), budget[name], _OF_ALL) for name in ("cases", "functions")]
    if sum(costs.seconds.values()) > budget["seconds"] * _OF_ALL:
        rows += [(name, beats, folders.get(name, 0), _OF_FOLDER) for name, beats in found.items()]
        rows.append(("all tests", sum(found.values()), sum(folders.values()), _OF_ALL))
    return [f"{name} {now:,} of {most:,}" for name, now, most, share in rows if now > most * share]
