"""One kernel file held against the runtime that it reproduces: models that reach it, and every bit of their outputs."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeVar

import numpy as np
import pytest

import tflq
from opfuzz.case import Case
from opfuzz.compare import difference_of
from opfuzz.families import SPECS
from opfuzz.remote import Remote
from opfuzz.session import draw_case, numbers
from opfuzz.worker import invoke
from support import suites
from support.live import LITERT
from support.processors import own
from support.running import Array, samples_of
from tflq.engine.interpreter import binding, make_plan
from tflq.engine.profiles import by_name
from tflq.errors import TflqError

#: The resolvers of the live runtime that each profile stands for: the second where the first lacks the operator.
RESOLVERS = {
    "litert-ref": ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    "litert-opt": ("BUILTIN_WITHOUT_DEFAULT_DELEGATES",),
    own("litert-xnnpack"): ("BUILTIN",),
}
#: Where rows of kernels are called.
PREPARE = binding.prepare.__code__
#: Cases are drawn until so many have been looked at in vain.
PATIENCE = 400
SEED = 7
SINGLE = suites.ROOT / "golden" / "singleop"
Result = TypeVar("Result")


@dataclass(frozen=True)
class Recording:
    """A model with the inputs and outputs of one sample, recorded from a profile's runtime."""

    path: Path
    inputs: list[Array]
    outputs: list[Array]


@cache
def runtime(resolver: str) -> Remote:
    """LiteRT with a resolver, in a process that all tests of this one share."""
    try:
        return Remote([sys.executable], LITERT, resolver)
    except (EOFError, OSError):
        pytest.skip("ai-edge-litert is not installed")


def reached(module: ModuleType, action: Callable[[], Result]) -> tuple[bool, Result]:
    """Do something; whether a function or a row of that file took part, and the result."""
    files = set()
    rows = {id(row.prepare) for row in getattr(module, "KERNELS", ())}
    prepared_by_row = False

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal prepared_by_row
        files.add(frame.f_code.co_filename)
        if event == "call" and frame.f_code is PREPARE:
            prepared_by_row |= id(frame.f_locals["kernel"].prepare) in rows

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = action()
    finally:
        sys.setprofile(before)
    return prepared_by_row or module.__file__ in files, result


def operators_of(module: ModuleType) -> tuple[str, ...]:
    """The operators of the rows that a kernel file has."""
    return tuple(dict.fromkeys(row.op for row in getattr(module, "KERNELS", ())))


def assert_drawn_models_match(
    module: ModuleType, profile: str = "litert-ref", count: int = 4, ops: Sequence[str] = ()
) -> None:
    """Draw models of the file's operators until `count` that reach it ran in both; every bit must be the runtime's."""
    wanted = [op for op in ops or operators_of(module) if op in SPECS]
    assert wanted, f"{module.__name__} has no operator that can be drawn"
    compared = 0
    for number in itertools.islice(numbers(SEED, wanted), PATIENCE):
        case = draw_case(SEED, number)
        took_part, ours = reached(module, lambda case=case: _outputs(case, profile))
        theirs = live_outputs(case, profile) if took_part and ours is not None else None
        if theirs is not None and ours is not None:
            compared += 1
            for mine, real in zip(ours, theirs, strict=True):
                for got, want in zip(mine, real, strict=True):
                    difference = difference_of(got, want)
                    assert not difference, f"seed {SEED}, case {number}: {case}: {difference}"
        if compared == count:
            return
    pytest.fail(f"only {compared} of {count} models reached {module.__name__}")


def live_outputs(case: Case, profile: str) -> list[list[Array]] | None:
    """Outputs of every sample in the runtime itself; None where it refuses the model, or ends."""
    for resolver in RESOLVERS[own(profile)]:
        outputs = runtime(resolver).run(case)
        if isinstance(outputs, list):
            return outputs
    return None


def _outputs(case: Case, profile: str) -> list[list[Array]] | None:
    """Outputs of every sample; None where the model is refused or the profile promises no bits."""
    chosen = by_name(own(profile))
    try:
        (step,) = make_plan(tflq.load(case.model()), chosen).steps
        if step.promise.word == "close":
            return None
        interpreter = tflq.Interpreter(model_content=case.model(), profile=chosen)
        interpreter.allocate_tensors()
        return [invoke(interpreter, sample) for sample in case.samples]
    except TflqError:
        return None


def recordings(profile: str, ops: frozenset[str]) -> Iterator[Recording]:
    """Recorded single operators of golden/, then models of the shared suites, that have one of these operators."""
    about = SINGLE / f"{profile}.json"
    own_outputs = json.loads(about.read_text(encoding="utf-8"))["outputs"] if about.is_file() else {}
    for entry in json.loads((SINGLE / "index.json").read_text(encoding="utf-8")):
        own = own_outputs.get(Path(entry["model"]).stem)
        if ops & set(entry["ops"]) and own not in ("refused", "crashed", "undefined", None):
            arrays = dict(np.load(SINGLE / entry["golden"], allow_pickle=False))
            if own != "same":
                arrays |= dict(np.load(SINGLE / own, allow_pickle=False))
            yield from (Recording(SINGLE / entry["model"], i, o) for i, o in samples_of(arrays))
    yield from _shared(profile, ops)


def _shared(profile: str, ops: frozenset[str]) -> Iterator[Recording]:
    name = {"litert-xnnpack": "litert-xnn"}.get(profile, profile.replace("litert-xnnpack-", "litert-xnn-"))
    for suite in () if suites.missing() else ("zip", "real"):
        folder = suites.SHARED / "suites" / suite
        for entry in json.loads((folder / "index.json").read_text(encoding="utf-8")):
            own = entry.get("profiles", {}).get(name)
            if ops & set(entry["ops"]) and own not in ("refused", "crashed", "undefined", None):
                arrays = dict(np.load(folder / entry["golden"], allow_pickle=False))
                if own != "same":
                    arrays |= dict(np.load(folder / own, allow_pickle=False))
                yield from (Recording(folder / entry["model"], i, o) for i, o in samples_of(arrays))
