"""An edge in a real runtime and in its profile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from opfuzz.case import Array
from opfuzz.compare import compare, run_guarded
from opfuzz.edges import Edge
from opfuzz.remote import FULL, REFERENCE, Ended, Ran, Refused, Remote, Result
from opfuzz.remote_worker import invoke
from tflq.engine.api.interpreter import Interpreter
from tflq.model.flatbuf import read, write

SECONDS = 60.0


class Answer(Enum):
    """The comparison of a profile with its runtime on one edge."""

    EQUAL = "equal"
    CLOSE = "not claimed"  # both run; the profile promises closeness only
    REFUSED = "refused alike"
    NOT_MODELLED = "not modelled"  # the runtime runs, and the profile reports that it cannot
    UNDEFINED = "undefined"  # the runtime aborts, or two of its processes disagree, or the profile reports it
    DIFFERENT = "DIFFERS"
    ONLY_LIVE = "RUNS, and the profile refuses"
    ONLY_PROFILE = "REFUSED, and the profile runs"
    FAILED = "FAILED"  # an error of the profile other than a refusal


#: Answers that are disagreements.
WRONG = frozenset({Answer.DIFFERENT, Answer.ONLY_LIVE, Answer.ONLY_PROFILE, Answer.FAILED})


@dataclass(frozen=True)
class Verdict:
    """An answer with its reason."""

    answer: Answer
    note: str = ""


class Side:
    """A profile and its runtime. A second process with poisoned memory shows results that are not defined."""

    def __init__(self, profile: str, command: Sequence[str], module: str, resolver: str) -> None:
        self.profile = profile
        self._command, self._module, self._resolver = command, module, resolver
        self._remote = self._start()
        self._second: Remote | None = None

    @property
    def is_micro(self) -> bool:
        """True if the runtime is TensorFlow Lite Micro's."""
        return self._module.startswith("tflite_micro")

    def _start(self, **variables: str) -> Remote:
        """Start a process; the full resolver runs operators that BUILTIN_REF has not registered."""
        fallback = FULL if self._resolver == REFERENCE else ""
        environment = {**os.environ, **variables}
        return Remote(self._command, self._module, self._resolver, SECONDS, environment, fallback)

    def live(self, edge: Edge) -> Result:
        """Return what the runtime does."""
        return self._remote.outputs(edge.content, edge.samples)

    def again(self, edge: Edge) -> Result:
        """Return what another process of the runtime does, whose fresh memory holds other bytes."""
        if self._second is None:
            self._second = self._start(MALLOC_PERTURB_="165")
        return self._second.outputs(edge.content, edge.samples)

    def judge(self, edge: Edge) -> Verdict:
        """Compare the profile with the runtime."""
        if self.is_micro:
            edge = with_real_shapes(edge)
        live = self.live(edge)
        ours, is_exact = run_profile(edge, self.profile)
        verdict = judged(ours, live, is_exact)
        if verdict.answer in WRONG and _unsure(live, self.again(edge)):
            return Verdict(Answer.UNDEFINED, "two processes of the runtime disagree")
        return verdict

    def close(self) -> None:
        """End the processes."""
        for remote in (self._remote, self._second):
            if remote is not None:
                remote.close()


def with_real_shapes(edge: Edge) -> Edge:
    """Return the edge with its outputs declared as LiteRT's shapes, if `litert-ref` runs it.

    TensorFlow Lite Micro takes declared shapes for the real ones.
    """
    ours, _ = run_profile(edge, "litert-ref")
    if not isinstance(ours, Ran) or not ours.outputs:
        return edge
    model = read(edge.content)
    graph = model.subgraphs[0]
    shapes = dict(zip(graph.outputs, (value.shape for value in ours.outputs[0]), strict=True))
    tensors = tuple(replace(t, shape=shapes.get(i, t.shape)) for i, t in enumerate(graph.tensors))
    changed = replace(model, subgraphs=(replace(graph, tensors=tensors), *model.subgraphs[1:]))
    return replace(edge, content=bytes(write(changed)))


def _unsure(one: Result, other: Result) -> bool:
    if isinstance(one, Ran) and isinstance(other, Ran):
        return bool(compare(one, other).note)
    return type(one) is not type(other)


def run_profile(edge: Edge, profile: str) -> tuple[Result, bool]:
    """Return what tflq does, and whether it promises every output exactly."""
    exact = True

    def run() -> list[list[Array]]:
        nonlocal exact
        interpreter = Interpreter(model_content=edge.content, profile=profile)
        interpreter.allocate_tensors()
        made = [invoke(interpreter, sample) for sample in edge.samples]
        promises = [interpreter.promise(detail["index"]) for detail in interpreter.get_output_details()]
        exact = all(promise.word != "close" for promise in promises)
        return made

    with np.errstate(all="ignore"):
        return run_guarded(run), exact


def judged(ours: Result, live: Result, is_exact: bool) -> Verdict:
    """Return the verdict on two results."""
    if isinstance(ours, Ended):
        return Verdict(Answer.FAILED, ours.reason)
    if isinstance(live, Ended):
        return Verdict(Answer.UNDEFINED, live.reason)
    if isinstance(ours, Refused):
        if isinstance(live, Refused):
            return Verdict(Answer.REFUSED)
        if "not modelled" in ours.reason:
            return Verdict(Answer.NOT_MODELLED, ours.reason)
        return Verdict(Answer.UNDEFINED if ours.undefined else Answer.ONLY_LIVE, ours.reason)
    if isinstance(live, Refused):
        return Verdict(Answer.ONLY_PROFILE, live.reason)
    if not is_exact:
        return Verdict(Answer.CLOSE)
    note = compare(ours, live).note
    return Verdict(Answer.DIFFERENT, note) if note else Verdict(Answer.EQUAL)
