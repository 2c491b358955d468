"""Run a case in tflq and in LiteRT, and compare the two results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.remote import Ended, Ran, Refused, Remote, Result
from opfuzz.remote_worker import invoke
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import OperatorFailed, TflqError, UndefinedResultError


class Verdict(Enum):
    """The comparison of tflq's and LiteRT's results."""

    SAME = "same"
    DIFFERENT = "different"
    BOTH_REFUSED = "refused by both"
    TFLQ_REFUSED = "refused by tflq only"
    LIVE_REFUSED = "refused by LiteRT only"
    UNDEFINED = "undefined"  # tflq reports that LiteRT's result is undefined
    LIVE_ENDED = "LiteRT aborted"
    TFLQ_FAILED = "tflq failed"  # an error other than a refusal


#: Verdicts that need an explanation.
WRONG = frozenset({Verdict.DIFFERENT, Verdict.TFLQ_REFUSED, Verdict.LIVE_REFUSED, Verdict.TFLQ_FAILED})


@dataclass(frozen=True)
class Outcome:
    """The verdict on one case, with the number of compared elements; `varies` is True if some output varies."""

    verdict: Verdict
    note: str = ""
    resolver: str = ""
    elements: int = 0
    varies: bool = False


def run_tflq(case: Case) -> Result:
    """Run one case in tflq under its default profile."""

    def run() -> list[list[Array]]:
        interpreter = Interpreter(model_content=case.model())
        interpreter.allocate_tensors()
        return [invoke(interpreter, sample) for sample in case.samples]

    return run_guarded(run)


def run_guarded(run: Callable[[], list[list[Array]]]) -> Result:
    """Return the outputs of `run`, or what it raises, as a result."""
    try:
        return Ran(run())
    except OperatorFailed as error:
        return Refused(f"OperatorFailed: {error}", failed=True)
    except TflqError as error:
        return Refused(f"{type(error).__name__}: {error}", isinstance(error, UndefinedResultError))
    except Exception as error:
        return Ended(f"{type(error).__name__}: {error}")


def judge(case: Case, live: Remote) -> Outcome:
    """Run one case in both."""
    ours, theirs = run_tflq(case), live.run(case)
    if isinstance(ours, Ended):
        return Outcome(Verdict.TFLQ_FAILED, f"tflq: {ours.reason}; LiteRT: {_brief(theirs)}")
    if isinstance(theirs, Ended):
        return Outcome(Verdict.LIVE_ENDED, f"LiteRT: {theirs.reason}; tflq: {_brief(ours)}")
    if isinstance(ours, Ran) and isinstance(theirs, Ran):
        return compare(ours, theirs)
    if isinstance(ours, Refused) and isinstance(theirs, Refused):
        return Outcome(Verdict.BOTH_REFUSED, f"tflq: {ours.reason}; LiteRT: {theirs.reason}")
    if isinstance(ours, Refused) and ours.failed:
        return Outcome(Verdict.TFLQ_FAILED, f"tflq: {ours.reason}")
    if isinstance(ours, Refused):
        return Outcome(Verdict.UNDEFINED if ours.undefined else Verdict.TFLQ_REFUSED, f"tflq: {ours.reason}")
    return Outcome(Verdict.LIVE_REFUSED, f"LiteRT: {_brief(theirs)}")


def compare(ours: Ran, theirs: Ran) -> Outcome:
    """Compare all outputs of all samples bit by bit; NaN equals NaN."""
    elements = 0
    for s, (mine, real) in enumerate(zip(ours.outputs, theirs.outputs, strict=True)):
        for o, (got, want) in enumerate(zip(mine, real, strict=True)):
            difference = difference_of(got, want)
            if difference:
                return Outcome(Verdict.DIFFERENT, f"sample {s}, output {o}: {difference}", theirs.resolver)
            elements += want.size
    return Outcome(Verdict.SAME, "", theirs.resolver, elements, _varies(theirs.outputs))


def difference_of(got: Array, want: Array) -> str:
    """Return the first difference in words; empty if there is none."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"got {got.dtype} {list(got.shape)}, LiteRT {want.dtype} {list(want.shape)}"
    same = np.asarray(bits(got) == bits(want))
    if got.dtype.kind in "fc":
        same = same | (np.isnan(got) & np.isnan(want))
    if same.all():
        return ""
    place = np.unravel_index(int(np.argmin(same)), same.shape)
    return (
        f"{np.count_nonzero(~same)} of {same.size} differ, first at {[int(i) for i in place]}: "
        f"got {got[place]!r}, LiteRT {want[place]!r}"
    )


def bits(x: Array) -> Array:
    """Return an array whose elements are equal if the bits of `x` are."""
    unsigned = {"f": f"u{x.dtype.itemsize}", "c": f"V{x.dtype.itemsize}"}.get(x.dtype.kind)
    return np.ascontiguousarray(x).view(unsigned).reshape(x.shape) if unsigned else x


def _varies(outputs: list[list[Array]]) -> bool:
    for arrays in zip(*outputs, strict=True):
        flat = [bits(a).reshape(-1) for a in arrays]
        if len({a.shape for a in arrays}) > 1 or len({v.tobytes() for a in flat for v in a}) > 1:
            return True
    return False


def _brief(result: Result) -> str:
    return "ran" if isinstance(result, Ran) else result.reason
