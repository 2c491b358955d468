"""A profile held against the runtime it stands for, in a process of its own, on random operators bit by bit."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

import tflq
from opfuzz.case import Case
from opfuzz.compare import difference_of
from opfuzz.remote import Ended, Refused, Remote
from opfuzz.remote_worker import invoke
from opfuzz.session import draw_case, numbers, operators
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError

LITERT, RUNTIME = "ai_edge_litert.interpreter", "tflite_runtime.interpreter"


def remote(variable: str, module: str, resolver: str) -> Remote:
    """The runtime of the Python whose command line the environment's `variable` holds (no variable: this Python)."""
    command = os.environ.get(variable, "") if variable else sys.executable
    if not command:
        pytest.skip(f"{variable} names no Python that has {module.partition('.')[0]}")
    try:
        return Remote(shlex.split(command), module, resolver)
    except (EOFError, OSError) as error:
        pytest.skip(f"{command} has no {module}: {error}")


@dataclass
class Tally:
    """What came of the cases: how many were equal, and what was found wrong."""

    same: int = 0
    differing: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)  # by the profile alone


def hold(
    profile: str | Profile,
    runtime: Remote,
    seed: int,
    count: int,
    words: Collection[str],
    ops: Sequence[str] = (),
    without: Collection[str] = (),
) -> Tally:
    """Run `count` random operators in both, of rows whose promise is one of `words`."""
    chosen, tally = by_name(profile), Tally()
    drawn = [op for op in operators(ops) if op in chosen.kernels and op not in without]
    for case, note in _cases(seed, count, drawn):
        try:
            (step,) = make_plan(tflq.load(case.model()), chosen).steps
            if step.promise.word not in words:
                continue
            interpreter = tflq.Interpreter(model_content=case.model(), profile=chosen)
            interpreter.allocate_tensors()
            ours = [invoke(interpreter, sample) for sample in case.samples]
        except TflqError:
            continue
        theirs = runtime.run(case)
        if isinstance(theirs, Ended):
            continue  # nothing to compare with
        if isinstance(theirs, Refused):
            tally.accepted.append(f"{note}: {theirs.reason}")
            continue
        found = [difference_of(g, w) for got, want in zip(ours, theirs.outputs, strict=True) for g, w in zip(got, want)]  # noqa: B905
        tally.same += not any(found)
        tally.differing += [f"{note}: {difference}" for difference in found if difference]
    return tally


def _cases(seed: int, count: int, ops: Sequence[str]) -> Iterator[tuple[Case, str]]:
    for number in itertools.islice(numbers(seed, ops), count):
        case = draw_case(seed, number)
        yield case, f"seed {seed}, case {number}: {case}"
