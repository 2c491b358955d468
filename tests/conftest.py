from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support import suites, warm
from support.costs import Costs
from tflq.engine.jit import pieces
from tflq.engine.microkernels import kernel
from tflq.engine.runtimes import process
from tflq.engine.runtimes.child import tflq_processor as processor

# Examples are the same in every run; the first one of a compiled function pays for its compilation.
settings.register_profile("tflq", deadline=None, derandomize=True)
settings.load_profile("tflq")

#: How names of features begin that decide which code runs.
_VECTORS = ("sse4", "avx", "fma", "neon", "dotprod", "sve")

_PASSED: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """So that a second run, of more tests or with more material, need not repeat the first."""
    parser.addoption("--record-passed", metavar="FILE", help="Write the names of the tests that passed.")
    parser.addoption("--without-passed", metavar="FILE", help="Leave out the tests that FILE names.")
    parser.addoption("--costs", metavar="FILE", help="Write the processor time of every test.")
    parser.addoption("--budget", choices=("check", "write"), help="Compare the cost with tests/budget.json, or set it.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let a worker that has run its share take tests of the others: shares of as many tests differ widely in time."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_report_header() -> str:
    """Name what of the processor decides which code runs here, and which bits runtimes give."""
    said, form = processor.describe(), kernel.choose(False)
    features = " ".join(sorted(name for name in kernel.features() if name.startswith(_VECTORS))) if form else ""
    cache = f"{said['first_level_cache'] >> 10} KiB first-level cache"
    return f"processor: {kernel.machine()} {said['vectors']}, {cache}, form {form.name if form else 'none'}: {features}"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect tests without the garbage collector, which then leaves what was collected alone."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what passed; under xdist, the process that collects reports does."""
    if report.when == "call" and report.passed:
        _PASSED.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what passed."""
    file = session.config.getoption("--record-passed")
    if file is not None and not hasattr(session.config, "workerinput"):
        Path(file).write_text("".join(f"{name}\n" for name in _PASSED), encoding="utf-8")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what passed in another run."""
    file = config.getoption("--without-passed")
    if file is not None:
        passed = frozenset(Path(file).read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
        items[:] = [item for item in items if item.nodeid not in passed]


def pytest_configure(config: pytest.Config) -> None:
    """Measure costs if asked; let Ctrl-C reach the commands that tests start, where shells have it ignored."""
    file, budget = config.getoption("--costs"), config.getoption("--budget")
    if file is not None or budget is not None:
        config.pluginmanager.register(Costs(file, budget, config.rootpath / "tests" / "budget.json"))
    warm.install(process.CHILD)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared test material; skip the test if there is none."""
    reason = suites.missing()
    if reason:
        pytest.skip(reason)
    return suites.SHARED


@pytest.fixture(autouse=True)
def _no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make reports as wide as in a pipe, regardless of the terminal of the program that runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")  # GNU readline sets it for child processes without os.environ knowing


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of compiled code and products of matrices cut as small as they can be."""
    monkeypatch.setattr(pieces, "LONGEST", 64)
    monkeypatch.setattr(pieces, "LONGEST_PRODUCT", 64)


@pytest.fixture(params=["whole", "cut"])
def either_way(request: pytest.FixtureRequest) -> None:
    """Once with calls of compiled code as they are, once in small pieces."""
    if request.param == "cut":
        request.getfixturevalue("small_pieces")
