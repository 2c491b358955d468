"""Statements about a verification, each in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from tflq.comparison.verification.report import Report as Verification
from tflq.comparison.verification.results import Mode, Status, TensorResult, Verdict
from tflq.engine.kernels.exactness import EXACT
from tflq.face.report.numbers import counted
from tflq.face.report.runtimes import runtime_text

_OTHERS = (Status.CLOSE, Status.DIFFERS, Status.NOT_COMPARED, Status.NOT_WRITTEN)
#: Operators that text lists unless all are asked for.
LISTED = 20


def summary(found: Verification) -> str:
    """Return how many elements and operators differ, in one line."""
    counts = {status: sum(o.status == status for o in found.operators) for status in Status}
    what = [", ".join(found.signatures)] if found.signatures else []
    what += [f"{found.differing:,} of {found.compared:,} elements differ"]
    if found.operators:
        parts = [f"{counts[Status.EXACT]} of {counted(len(found.operators), 'operator')} exact"]
        parts += [f"{counts[s]} {s.value}" for s in _OTHERS if counts[s]]
        what.append(", ".join(parts))
    count = counted(found.inputs.samples, "step" if found.signatures else "sample")
    return "; ".join(what) + f" ({found.mode.value}, {count})"


def coverage_texts(found: Verification) -> Iterator[str]:
    """Yield how much was compared of how much, and what was not."""
    coverage = found.coverage
    (operators, of_operators), (outputs, of_outputs) = coverage.operators, coverage.outputs
    unwritten = counted(len(coverage.unwritten), "tensor")
    yield f"Compared: {operators:,} of {of_operators:,} operators, {outputs:,} of {of_outputs:,} outputs" + (
        f"; {unwritten} not written by the runtime" if coverage.unwritten else ""
    )
    yield from map(" ".join, signature_verdicts(found).items())
    if found.others:
        yield f"  not asked for: {', '.join(found.others)}"
    yield from (f"  only with what runs it: {text}" for text in coverage.inside[:LISTED])
    if len(coverage.inside) > LISTED:
        yield f"  only with what runs it: {len(coverage.inside) - LISTED} more (--json has all)"
    yield from (f"  not compared: {text}" for text in coverage.missing[:LISTED])
    if len(coverage.missing) > LISTED:
        yield f"  not compared: {len(coverage.missing) - LISTED} more (--json has all)"


def signature_verdicts(found: Verification) -> dict[str, str]:
    """Return the verdict on each signature of a model that has several."""
    parts = {name: found.of(name) for name in found.signatures}
    return {
        f"  {name}:": f"{part.verdict.value.upper()}, {part.differing:,} of {part.compared:,} elements differ"
        for name, part in parts.items()
    }


def promise_texts(found: Verification) -> Iterator[str]:
    """Yield the promises that are weaker than equal bits, and the largest difference in their results."""
    promises = [r.promise for r in found.operators or found.outputs if r.promise is not None]
    if any(promise != EXACT for promise in promises):
        counts = Counter(str(promise) for promise in promises)
        yield "Promised: " + ", ".join(f"{count} {words}" for words, count in counts.items())
    near = [t for t in found.tensors if t.status == Status.CLOSE]
    unmeasured = [t for t in near if t.tolerance is None and t.promise is not None and t.promise.ulp is None]
    measured = [t for t in near if t not in unmeasured]
    if measured:
        tolerated = sum(t.tolerance is not None for t in measured)
        allowed = f" or allowed ({tolerated} by a tolerance)" if tolerated else ""
        yield _apart(measured, f"not the same bits, but within what was measured{allowed}")
    if unmeasured:
        yield _apart(unmeasured, "not the same bits, which are not promised; how near they should be was not measured")


def _apart(near: Sequence[TensorResult], words: str) -> str:
    """Return how many tensors differ, in these words, and by how much."""
    largest = max(t.difference.at_scale or 0 for t in near if t.difference is not None)
    reach = f": by up to {largest:,} ULP of the largest magnitude" if largest else ""
    return f"{counted(len(near), 'tensor')} {words}{reach}"


def sides_of(found: Verification) -> tuple[str, str]:
    """Return the names of the expected side and of the side compared with it."""
    runtime = found.against
    name = runtime.get("name") if isinstance(runtime, Mapping) else runtime.name
    return str(name or "golden"), f"profile {found.profile}"


def first_text(tensor: TensorResult | None, sides: tuple[str, str]) -> str:
    """Return the index of the first differing element with the expected and the actual value."""
    first = None if tensor is None or tensor.difference is None else tensor.difference.first
    if first is None:
        return ""
    sample = f" of sample {first.sample}" if first.sample else ""
    return f"at {list(first.index)}{sample}: expected {first.expected} ({sides[0]}), got {first.got} ({sides[1]})"


def next_steps(found: Verification, options: Sequence[str] = ()) -> Iterator[str]:
    """Yield the command to type next, ready to be copied. `options` are words about how a golden is read."""
    model = quote(found.model.path) if found.model.path else "MODEL"
    first = found.first_divergent
    if found.golden and found.differing:
        profile = "" if found.profile == "litert-ref" else f" --profile {quote(found.profile)}"
        yield " ".join((f"tflq explain {model} --dump {quote(found.golden)}{profile}", *map(quote, options)))
    elif first is not None:
        signature = f" --signature {quote(first.signature)}" if first.signature else ""
        yield f"tflq inspect {model}{signature} --op {first.index}"
    elif found.differing and found.mode == Mode.CUMULATIVE:
        yield f"tflq verify {model} --mode isolated"
    elif found.verdict in (Verdict.INCOMPLETE, Verdict.NOTHING):
        yield f"tflq inspect {model}"


def what_ran(found: Verification) -> str:
    """Return the profile, the runtime and the inputs."""
    return (
        f"profile {found.profile} against {runtime_text(found.against)}"
        + (f" (golden {found.golden})" if found.golden else "")
        + f"; inputs {found.inputs.source}"
        + (f", seed {found.inputs.seed}" if found.inputs.seed is not None else "")
    )
