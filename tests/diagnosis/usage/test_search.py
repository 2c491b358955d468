"""Mistakes of users are found in what they leave: all planted ones of a kind, and none where none was made."""

from __future__ import annotations

import numpy as np
import pytest

from support.usage import Planted, coloured, device, pictures, planted
from tflq.comparison.evidence.dumps import dump_of
from tflq.comparison.evidence.inputs import expected_scaling, prepare
from tflq.diagnosis.usage.search import UserSide, find_mistake
from tflq.diagnosis.why import DeviceEvidence, Party, answer
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.face.report.verbs.why import headline
from tflq.model.ir import view

REF = by_name("litert-ref")
#: Of each kind one whose model is small, for every run of the tests.
QUICK = (
    "wrong mean-0",
    "BGR-1",
    "NCHW-0",
    "float as codes-2",
    "uint8-0",
    "truncated-1",
    "dequantized-twice-0",
    "arena-0",
)


def named(one: Planted) -> str:
    found = find_mistake(one.model, one.samples, REF, one.given)
    return "" if found is None else found.name


def test_a_planted_mistake_of_most_kinds_is_named() -> None:
    tried = [one for one in planted() if one.name.startswith(QUICK)]
    assert len(tried) == len(QUICK)
    for one in tried:
        assert any(word in named(one) for word in one.words), one.name


@pytest.mark.slow
def test_nearly_all_of_60_planted_mistakes_are_named() -> None:
    every = list(planted())
    missed = [one.name for one in every if not any(word in named(one) for word in one.words)]
    assert len(every) == 60
    assert len(missed) <= 1, missed  # columns first changes nothing in a model of vectors only


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("even", [True, False])
def test_no_mistake_is_named_where_none_was_made(whole: bool, even: bool) -> None:
    """Host code may round halves either way."""
    model, stored = coloured(), pictures(3, 1)
    spec = view(model).tensors[view(model).inputs[0]]
    fed = prepare(spec, stored, None, even=even)
    assert fed is not None
    assert find_mistake(model, device(model, fed, "litert-ref", whole=whole), REF, stored) is None


def test_other_inputs_than_the_given_ones_are_named_as_such() -> None:
    model, stored = coloured(), pictures(2, 1)
    spec = view(model).tensors[view(model).inputs[0]]
    fed = prepare(spec, pictures(2, 7), None)
    assert fed is not None
    found = find_mistake(model, device(model, fed, "litert-ref", whole=True), REF, stored)
    assert found is not None
    assert (found.name, found.side) == ("the device was fed with other numbers than the given inputs", UserSide.INPUT)


def test_a_device_that_computes_wrongly_made_no_mistake_of_the_user() -> None:
    model, stored = coloured(), pictures(2, 1)
    spec = view(model).tensors[view(model).inputs[0]]
    fed = prepare(spec, stored, None)
    assert fed is not None
    samples = device(model, fed, "litert-ref", whole=True)
    for one in samples:
        out = view(model).outputs[0]
        one[out] = np.random.default_rng(3).integers(-128, 128, one[out].shape).astype(np.int8)
    assert find_mistake(model, samples, REF, stored) is None


def test_scale_and_zero_point_imply_mean_and_std() -> None:
    model = coloured()
    assert expected_scaling(view(model).tensors[view(model).inputs[0]]) == (127.5, 127.5)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["results", "input"])
def test_a_mistake_beside_another_rounding_is_named_with_it(way: str) -> None:
    """Codes of the other sign, at the output or the input of a device that rounds once."""
    model = coloured()
    graph = view(model)
    draw = np.random.default_rng(3)
    meant = [draw.integers(-128, 128, (1, 6, 6, 3)).astype(np.int8) for _ in range(40)]
    fed = meant if way == "results" else [(x.view(np.uint8) ^ 128).view(np.int8) for x in meant]
    once = make_plan(model, REF.with_single_rounding())
    made = [np.array(run(once, {graph.inputs[0]: x}).values[graph.outputs[0]]) for x in fed]
    read = made if way == "input" else [(y.view(np.uint8) ^ 128).view(np.int8) for y in made]
    samples = tuple({graph.outputs[0]: y} for y in read)
    found = answer(model, DeviceEvidence(samples, tuple(dump_of(model, one) for one in samples)), REF, meant)
    assert found.fault == Party.USER
    assert "uint8" in headline(found)
    assert "single rounding" in headline(found)
