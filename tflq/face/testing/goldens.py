"""Compare a model with its golden file in a test: record it again on request, report all changed bits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tflq.comparison.verification import record, verify
from tflq.comparison.verification.report import Report
from tflq.comparison.verification.results import OperatorResult, Status, TensorResult, Verdict
from tflq.errors import TflqError
from tflq.face.report.render.text import lines_of, text_of
from tflq.face.report.verbs.verify.report import verify_report
from tflq.verbs.explain import explain

_FAILING = (Status.DIFFERS, Status.NOT_COMPARED)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A model, its golden (an `.npz` file or a bundle), and the profile that must give the golden's bits."""

    model: str
    golden: str
    profile: str = "litert-ref"

    def renew(self, against: str, inputs: str | None, samples: int, seed: int, python: str | None) -> None:
        """Record the golden again from a runtime, with every tensor."""
        record(self.model, against, inputs, True, self.golden, samples, seed, python)
        for outdated in ("report", "causes"):  # results of the old golden
            self.__dict__.pop(outdated, None)

    @cached_property
    def report(self) -> Report:
        """The comparison, computed once."""
        if "://" not in self.golden and not os.path.exists(self.golden):
            raise AssertionError(f"{self.golden}: no golden file; pytest --tflq-update records it")
        return verify(self.model, self.golden, profile=self.profile)

    @cached_property
    def causes(self) -> tuple[str, ...]:
        """Causes that reproduce the golden's bits at the first operator that differs."""
        try:
            explanation = explain(self.model, self.golden, self.profile).explanation
        except TflqError:
            return ()
        return () if explanation is None else tuple(h.name for h in explanation.exact)

    def check(self) -> Report:
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
