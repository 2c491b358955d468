"""Goldens in the tests of other projects: a pytest plugin.

Compare a model with its golden file in a test: record it again on request, report all changed bits.

The pytest plugin: fixture `tflq_golden`, mark `tflq` with fixture `tflq_operator`, and the update options.

Nothing of tflq is imported before a test needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tflq.comparison.goldens.stored import load_golden
from tflq.comparison.results import CompareMode, OperatorResult, Status, TensorResult, Verdict
from tflq.comparison.verification.report import Verification
from tflq.comparison.verification.verifying import record, verify
from tflq.engine.api.files import subject
from tflq.errors import TflqError
from tflq.face.report.render.text import lines_of, text_of
from tflq.face.report.verbs.verify import verify_report
from tflq.face.report.wording import counted, listed
from tflq.verbs.explain import explain

_FAILING = (Status.DIFFERS, Status.NOT_COMPARED)


class ModelChanged(AssertionError):
    """The golden is of another version of the model: one fact, however many tests compare with that golden."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A model, its golden (an `.npz` file or a bundle), and the profile that must give the golden's bits."""

    model: str
    golden: str
    profile: str = "litert-ref"

    def renew(self, against: str, inputs: str | None, samples: int, seed: int, python: str | None) -> None:
        """Record the golden again from a runtime, with every tensor."""
        record(self.model, against, inputs, True, self.golden, samples, seed, python)
        for outdated in ("report", "change", "causes"):  # results of the old golden
            self.__dict__.pop(outdated, None)

    @cached_property
    def report(self) -> Verification:
        """The comparison, computed once."""
        if "://" not in self.golden and not os.path.exists(self.golden):
            raise AssertionError(f"{self.golden}: no golden file; pytest --tflq-update records it")
        if self.change:
            raise ModelChanged(f"{self.model}: the model changed: {self.change}; `pytest --tflq-update` records it")
        return verify(self.model, self.golden, profile=self.profile)

    @cached_property
    def change(self) -> str:
        """Differences from the model that the golden is of, by its results; empty if it is of this one."""
        golden = load_golden(self.golden)
        if golden.model_sha256 in ("", subject(self.model).facts.sha256):
            return ""
        try:
            found = verify(self.model, replace(golden, model_sha256=""), profile=self.profile)
        except TflqError:
            return "it has other tensors or operators"
        operators = [one for one in found.operators if one.status == Status.DIFFERS]
        named = listed([f"{one.place} {one.op}" for one in operators], 3)
        if operators and found.mode == CompareMode.ISOLATED:
            return f"weights or parameters of {counted(len(operators), 'operator')} ({named})"
        return "its outputs" if found.differing else "no result that the golden holds"

    @cached_property
    def causes(self) -> tuple[str, ...]:
        """Causes that reproduce the golden's bits at the first operator that differs."""
        try:
            explanation = explain(self.model, self.golden, self.profile).explanation
        except TflqError:
            return ()
        return () if explanation is None else tuple(h.name for h in explanation.exact)

    def check(self) -> Verification:
        """Return the comparison; if bits differ, raise an AssertionError with operator, element, values and cause."""
        if self.report.verdict not in (Verdict.SAME, Verdict.CLOSE):
            raise AssertionError(text_of(lines_of(verify_report(self.report))) + "\n".join(self._failure_lines()))
        return self.report

    def check_operator(self, index: int) -> OperatorResult:
        """Assert that one operator's results, and the graph's outputs among them, equal the golden's.

        `index` counts the operators of all signatures, one after the other. The check of a signature's last operator
        includes outputs that no operator makes. Return the operator's comparison.
        """
        if index >= len(self.report.operators):
            raise AssertionError(f"{self.golden}: holds outputs only; record it with every operator's results")
        operator = self.report.operators[index]
        if operator.status in _FAILING:
            raise AssertionError("\n".join(_operator_lines(operator, self.profile)))
        for number, output in self._outputs_of(operator):
            if output.status in _FAILING:
                lines = [f"output {number}: {output.status.value} under {self.profile}", *_tensor_lines(output)]
                raise AssertionError("\n".join(lines))
        return operator

    def _outputs_of(self, operator: OperatorResult) -> Iterator[tuple[int, TensorResult]]:
        """Yield the graph's outputs that are compared on their own and belong to an operator."""
        own = [one for one in self.report.operators if one.signature == operator.signature]
        makers = {tensor.index: one.index for one in own for tensor in one.tensors}
        for number, output in self.report.numbered_outputs:
            is_own = output.signature == operator.signature and output.covered_by is None
            if is_own and makers.get(output.index, len(own) - 1) == operator.index:
                yield number, output

    def _failure_lines(self) -> Iterator[str]:
        first = next((operator for operator in self.report.operators if operator.status in _FAILING), None)
        if self.causes and first is not None and self.report.verdict != Verdict.EXPLAINED:
            names = ", ".join(self.causes[:3])
            yield f"cause: in operator {first.place} {first.op}, the golden has the bits of {names}"


def _operator_lines(operator: OperatorResult, profile: str) -> Iterator[str]:
    yield f"operator {operator.place} {operator.op}: {operator.status.value} under {profile}"
    if operator.reason:
        yield operator.reason
    for tensor in operator.tensors:
        yield from _tensor_lines(tensor)


def _tensor_lines(tensor: TensorResult) -> Iterator[str]:
    d = tensor.difference
    if d is not None and d.problem:
        yield f"{tensor.name}: {d.problem}"
    if d is not None and d.first is not None:
        at = list(d.first.index)
        yield f"{tensor.name}{at}: expected {d.first.expected}, got {d.first.got}"
        yield f"{d.differing:,} of {d.elements:,} elements differ, by up to {d.largest} {d.unit}"
    if tensor.reason:
        yield f"{tensor.name}: {tensor.reason}"


#: Comparisons, and the changes of models that a test has reported.
_REPORTED = pytest.StashKey[set[str]]()
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
    config.stash[_KEPT], config.stash[_REPORTED] = {}, set()


def _record(config: pytest.Config, model: Any, golden: Any, profile: str) -> Any:
    """Return the comparison, which each process computes once."""

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
        return _report(config, recorded.check)

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
    check = recorded.check if index is None else lambda: recorded.check_operator(index)
    return lambda: _report(request.config, check)


def _report(config: pytest.Config, check: Callable[[], Any]) -> Any:
    """Return the check's result; if it fails, raise a failure with only its text.

    A changed model fails one test of each process; the others are skipped.
    """
    __tracebackhide__ = True
    try:
        return check()
    except ModelChanged as error:
        problem, reported = str(error), config.stash[_REPORTED]
        if problem in reported:
            pytest.skip("the model changed, as another test reports")
        reported.add(problem)
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
