"""The outcome of a verification as one frozen value: the comparisons, the differences, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tflq.comparison.verification.coverage import Apart, Coverage
from tflq.comparison.verification.results import (
    InputFacts,
    Mode,
    OperatorResult,
    Status,
    TensorResult,
    Verdict,
    verdict_of,
)
from tflq.display import display_by
from tflq.engine.api.subject import ModelFacts
from tflq.engine.profiles.history import Change
from tflq.engine.runtimes import Description


@display_by("verify.report:verify_card")
@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The outcome of one verification.

    `operators` are in execution order; empty for a golden that holds outputs only. `outputs` are the graph's outputs,
    end to end or as an operator's recorded results. `operator_count` is the number of the operators of the subgraphs
    that were to be compared, `apart` describes others. `golden` is the path of the golden file, if any. `signatures`
    names those of a model with several, in the file's order; `others` are those that were not asked for.

    `own` is the profile of the golden's or runtime's own release, if the compared one differs and `own` reproduces all
    bits; `changes` are what releases changed between the two in the operators that differ. `accepted` is True if
    a baseline accepts everything that differs or was not compared, and None without a baseline.
    """

    model: ModelFacts
    profile: str
    against: Description | Mapping[str, object]
    golden: str
    mode: Mode
    inputs: InputFacts
    operators: tuple[OperatorResult, ...]
    outputs: tuple[TensorResult, ...]
    notes: tuple[str, ...]
    operator_count: int = 0
    apart: tuple[Apart, ...] = ()
    signatures: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    own: str = ""
    changes: tuple[Change, ...] = ()
    accepted: bool | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict: same, close, differs, explained, accepted, incomplete, or nothing compared."""
        found = self._compared
        if self.accepted and found in (Verdict.DIFFERS, Verdict.INCOMPLETE):
            return Verdict.ACCEPTED
        is_explained = self.own and found == Verdict.DIFFERS and self.accepted is None
        return Verdict.EXPLAINED if is_explained else found

    @property
    def _compared(self) -> Verdict:
        statuses = {o.status for o in self.operators} | {t.status for t in self.outputs}
        is_part_unseen = any(not t.is_seen for t in self.outputs) or any(not one.callers for one in self.apart)
        return verdict_of(statuses | ({Status.NOT_COMPARED} if is_part_unseen else set()), self.compared)

    @property
    def rest(self) -> Verdict:
        """The verdict if everything that differs or was not compared had been as expected."""
        statuses = {o.status for o in self.operators} | {t.status for t in self.outputs}
        return verdict_of(statuses & {Status.CLOSE}, self.compared)

    def of(self, signature: str) -> Report:
        """Return the report of one signature alone; subgraphs that none runs are left out."""
        return replace(
            self,
            operators=tuple(o for o in self.operators if o.signature == signature),
            outputs=tuple(t for t in self.outputs if t.signature == signature),
            operator_count=sum(o.signature == signature for o in self.operators),
            apart=tuple(one for one in self.apart if any(name == signature for name, _ in one.callers)),
            signatures=(signature,),
            others=(),
        )

    @property
    def coverage(self) -> Coverage:
        """The number of compared parts, the number of all, and a list of missing ones."""
        whole = sum(o.is_whole for o in self.operators), max(self.operator_count, len(self.operators))
        outputs = sum(t.is_whole for t in self.outputs), len(self.outputs)
        inside = [
            f"{one}, {_callers(one)}, as far as these inputs run them" for one in self.apart if self._reaches(one)
        ]
        silent = [o for o in self.operators if o.silent and not o.reason]
        if silent:
            inside.append(
                f"{len(silent)} operators without results, such as {silent[0].op}: by what reads their effects"
            )
        return Coverage(whole, outputs, tuple(self._missing()), tuple(inside), tuple(self._unwritten()))

    def _unwritten(self) -> Iterator[str]:
        """Yield the tensors that the runtime never writes."""
        for o in self.operators:
            yield from (f"tensor {t.index} of operator {o.place} {o.op}" for t in o.tensors if t.unwritten)
        if not self.operators:
            yield from (f"output {_output(k, t)}" for k, t in self.numbered_outputs if t.unwritten)

    def _missing(self) -> Iterator[str]:
        """Yield the parts that were not compared, with reasons."""
        yield from (f"operator {o.place} {o.op} ({o.gaps})" for o in self.operators if o.gaps)
        if not self.operators and self.operator_count:
            yield f"{self.operator_count} operators one by one (only the graph's outputs are known)"
        for k, t in self.numbered_outputs:
            if not t.is_seen or (not t.is_whole and t.covered_by is None):
                reason = t.reason or ("no value is known" if t.difference is None else "it has no elements")
                yield f"output {_output(k, t)} ({reason})"
        for one in self.apart:
            if not one.callers:
                yield f"{one} (no operator runs it)"
            elif not self._reaches(one):
                yield f"{one} ({_callers(one)}, of which nothing was compared)"

    @property
    def numbered_outputs(self) -> tuple[tuple[int, TensorResult], ...]:
        """The outputs with their position in their signature's graph."""
        counts: Counter[str] = Counter()
        numbered = []
        for output in self.outputs:
            numbered.append((counts[output.signature], output))
            counts[output.signature] += 1
        return tuple(numbered)

    def _reaches(self, one: Apart) -> bool:
        """Return whether results that depend on a subgraph's operators were compared, or outputs end to end."""
        if not self.operators:
            return bool(one.callers)
        return any((o.signature, o.index) in one.callers and _ran(o) for o in self.operators)

    @property
    def first_divergent(self) -> OperatorResult | None:
        """The first operator, in execution order, that differs."""
        return next((o for o in self.operators if o.status == Status.DIFFERS), None)

    @property
    def compared(self) -> int:
        """Elements compared, over all samples."""
        return sum(t.difference.elements for t in self.tensors if t.difference is not None)

    @property
    def differing(self) -> int:
        """Elements that differ, over all samples."""
        return sum(t.difference.differing for t in self.tensors if t.difference is not None)

    @property
    def tensors(self) -> tuple[TensorResult, ...]:
        """The operators' results, and the outputs of the graph that are compared on their own."""
        return (*(t for o in self.operators for t in o.tensors), *(t for t in self.outputs if t.covered_by is None))


def _ran(operator: OperatorResult) -> bool:
    """Return whether any of its results was compared, or it ran and has none."""
    return operator.status == Status.EXACT or any(t.difference is not None for t in operator.tensors)


def _callers(one: Apart) -> str:
    named = ((f"{signature}/{index}" if signature else index, name) for (signature, index), name in one.callers.items())
    return "through operator " + ", ".join(f"{place} {name}" for place, name in named)


def _output(position: int, output: TensorResult) -> str:
    return f"{output.signature}/{position}" if output.signature else str(position)
