"""A baseline accepts exactly what it recorded: operator, output, counts and kinds; and nothing less is compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from numpy.typing import NDArray

import tflq
from support import commands
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.goldens.stored import save_golden
from tflq.comparison.inspection.difference import difference
from tflq.comparison.results import InputFacts
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Subgraph, TensorSpec, TensorType

Array = NDArray[np.float32]
X = np.linspace(-3, 4, 24, dtype=np.float32).reshape(1, 24)
#: The results of two operators, ABS and NEG, which are outputs 0 and 1.
RIGHT = {1: np.abs(X), 2: -X}
UNTIL = ("--accept-until", "2999-12-31", "--reason", "ticket 7")


def model() -> Model:
    tensors = tuple(TensorSpec(name, TensorType.FLOAT32, (1, 24)) for name in ("x", "y", "z"))
    operators = (Operator(0, (0,), (1,)), Operator(1, (0,), (2,)))
    codes = (OperatorCode(101, "ABS"), OperatorCode(59, "NEG"))
    return Model(3, codes, (Subgraph(tensors, (0,), (1, 2), operators),), (Buffer(),))


def changed(tensor: int, *places: int, to: Callable[[Array], Array]) -> dict[int, Array]:
    """Results in which some elements of a tensor are changed."""
    value = RIGHT[tensor].copy()
    value[0, list(places)] = to(value[0, list(places)])
    return {**RIGHT, tensor: value}


def up(value: Array) -> Array:
    return np.nextafter(value, np.float32(np.inf))


#: What is accepted: one element of ABS is one ULP higher.
KNOWN = changed(1, 5, to=up)


class Place:
    """A folder with the model and a baseline."""

    def __init__(self, folder: Path) -> None:
        self.model, self.golden, self.known = folder / "m.tflite", folder / "g.zip", folder / "known.json"
        tflq.save(model(), self.model)

    def verify(self, tensors: dict[int, Array], *words: object, samples: int = 1, outputs_only: bool = False) -> Result:
        """Compare with a recording that has these results, or these outputs alone."""
        outputs = tuple(tensors.get(t) for t in (1, 2))
        seen = Observation((X,), outputs, {} if outputs_only else tensors)
        golden = Golden((seen,) * samples, not outputs_only, InputFacts("arrays", None, samples), {})
        save_golden([golden], self.golden)
        given = ("verify", self.model, "--golden", self.golden, "--baseline", self.known, *words)
        return commands.tflq(*given)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    accepted = Place(tmp_path)
    assert accepted.verify(KNOWN, *UNTIL).exit_code == 0
    return accepted


def test_what_was_recorded_is_accepted(place: Place) -> None:
    result = place.verify(KNOWN)
    assert (result.exit_code, result.stdout.split()[0]) == (0, "ACCEPTED")
    assert "1 accepted, 0 new" in result.stderr
    assert place.verify(RIGHT).exit_code == 0


NEW = {
    "new NaN": changed(1, 5, 0, 1, 2, 3, 4, 6, 7, to=lambda v: np.where(v == KNOWN[1][0, 5], v, np.float32(np.nan))),
    "all elements": changed(1, *range(24), to=up),
    "two elements": changed(1, 5, 6, to=up),
    "another element": changed(1, 6, to=up),
    "further": changed(1, 5, to=lambda v: up(up(v))),
    "the other direction": changed(1, 5, to=lambda v: np.nextafter(v, np.float32(-np.inf))),
    "a NaN instead": changed(1, 5, to=lambda v: v * np.float32(np.nan)),
    "an infinity instead": changed(1, 5, to=lambda v: v * np.float32(np.inf)),
    "a sign": changed(1, 5, to=lambda v: -v),
    "another operator too": {**KNOWN, 2: changed(2, 0, to=lambda v: v + 77)[2]},
    "another operator instead": changed(2, 5, to=up),
}


@pytest.mark.parametrize("name", NEW)
def test_anything_else_is_new(name: str, place: Place) -> None:
    result = place.verify(NEW[name])
    assert result.exit_code == 1, result.output
    assert "new: " in result.stderr


def test_kinds_are_part_of_a_difference() -> None:
    """Count and distance are equal, but a zero of another sign is no neighbour."""
    zero = np.zeros(3, np.float32)
    assert difference(zero, -zero).kinds == (("sign of zero", 3),)
    nan = np.float32([np.nan, np.inf, 1])
    assert difference(np.float32([1, 1, np.inf]), nan).kinds == (("NaN", 1), ("infinity", 1), ("infinity lost", 1))


def test_what_is_no_longer_compared_is_new(place: Place) -> None:
    for less in ({1: KNOWN[1]}, {2: RIGHT[2]}):
        result = place.verify(less)
        assert result.exit_code == 3, result.output
    result = place.verify(RIGHT, outputs_only=True)  # the operators are not compared one by one
    assert (result.exit_code, "no longer compared" in result.stderr) == (3, True), result.output


def test_fewer_samples_are_new(place: Place) -> None:
    assert place.verify(RIGHT, *UNTIL, samples=3).exit_code == 0
    assert place.verify(RIGHT, samples=3).exit_code == 0
    result = place.verify(RIGHT, samples=2)
    assert (result.exit_code, "48 of 72 elements" in result.stderr) == (3, True), result.output


def test_what_was_not_compared_can_be_accepted_but_nothing_compared_cannot(place: Place) -> None:
    assert place.verify({1: RIGHT[1]}, *UNTIL).exit_code == 0
    assert place.verify({1: RIGHT[1]}).exit_code == 0
    assert place.verify({}, *UNTIL).exit_code == 3
    assert place.verify({}).exit_code == 3


def test_another_model_of_the_same_name_is_new(place: Place) -> None:
    from dataclasses import replace

    tflq.save(replace(model(), description="retrained"), place.model)
    assert place.verify(KNOWN).exit_code == 1


def test_an_earlier_baseline_is_refused_with_what_to_do(place: Place) -> None:
    entry = {"key": "verify:m.tflite:0 ABS:1 ULP", "reason": "x", "expires": "2999-12-31"}
    place.known.write_text(json.dumps({"schema": "tflq/baseline/1", "accepted": [entry]}))
    result = place.verify(KNOWN)
    assert result.exit_code == 2
    assert "--accept-until" in result.stderr
