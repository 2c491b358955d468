"""The pytest plugin: fixture `tflq_golden`, mark `tflq` with fixture `tflq_operator`, and the update options.

Nothing of tflq is imported before a test needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

_KEPT = pytest.StashKey[dict[tuple[str, str, str], Any]]()


class _Differs(pytest.fail.Exception):  # type: ignore[name-defined,misc]
    """A comparison that failed; its text is for the reader, without a traceback."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tflq", "bit-exact goldens of .tflite models")
    group.addoption("--tflq-update", action="store_true", help="Record goldens again from a real runtime.")
    group.addoption("--tflq-python", metavar="PATH", help="The Python that has the runtime installed.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers", "tflq(model, golden, profile='litert-ref'): run the test once for each operator of the model"
    )
    config.stash[_KEPT] = {}


def _record(config: pytest.Config, model: Any, golden: Any, profile: str) -> Any:
    """Return the comparison, which each process computes once."""
    from tflq.face.testing.goldens import Recorded

    key = (str(model), str(golden), profile)
    return config.stash[_KEPT].setdefault(key, Recorded(*key))


@pytest.fixture
def tflq_golden(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return a check that a model gives a golden's bits: `tflq_golden(model, golden, profile="litert-ref")`.

    With --tflq-update the golden is first recorded from the runtime `against`, on `samples` inputs of `inputs`.
    """
    config = request.config

    def check(
        model: Any,
        golden: Any,
        profile: str = "litert-ref",
        *,
        against: str = "litert-ref",
        inputs: str | None = None,
        samples: int = 1,
        seed: int = 0,
    ) -> Any:
        recorded = _record(config, model, golden, profile)
        if config.getoption("--tflq-update"):
            recorded.renew(against, inputs, samples, seed, config.getoption("--tflq-python"))
        return _report(recorded.check)

    return check


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generate one test per operator, for tests with the mark and the fixture `tflq_operator`."""
    mark = metafunc.definition.get_closest_marker("tflq")
    if mark is None or "tflq_operator" not in metafunc.fixturenames:
        return
    from tflq.engine.api.files import load
    from tflq.model.ir import signed, view

    model, golden, *rest = (*mark.args, *(mark.kwargs[name] for name in ("model", "golden") if name in mark.kwargs))
    profile = rest[0] if rest else mark.kwargs.get("profile", "litert-ref")
    base = Path(str(metafunc.module.__file__)).parent
    loaded = load(base / model)
    names = [
        f"{part.name}-{op.index:04d}-{op.builtin}".lstrip("-") for part in signed(loaded) for op in view(part.model).ops
    ]
    cases: list[tuple[str, str, str, int | None]]
    cases = [(str(base / model), str(base / golden), profile, index) for index in range(len(names))]
    ids = names
    if not names:  # only outputs can be compared
        cases, ids = [(str(base / model), str(base / golden), profile, None)], ["outputs"]
    metafunc.parametrize("tflq_operator", cases, ids=ids, indirect=True)


@pytest.fixture
def tflq_operator(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Return the check of one operator of the model that the mark names, against its golden."""
    model, golden, profile, index = request.param
    recorded = _record(request.config, model, golden, profile)
    return lambda: _report(recorded.check if index is None else lambda: recorded.check_operator(index))


def _report(check: Callable[[], Any]) -> Any:
    """Return the check's result; if it fails, raise a failure with only its text."""
    __tracebackhide__ = True
    try:
        return check()
    except AssertionError as error:
        problem = str(error)
    raise _Differs(problem, pytrace=False)  # outside of the handler: pytest prints an exception's context, too


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Keep only the headline of a comparison for the closing summary, which repeats whole messages if `CI` is set."""
    outcome = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, _Differs):
        crash = getattr(outcome.get_result().longrepr, "reprcrash", None)
        if crash is not None:
            crash.message = crash.message.partition("\n")[0]
