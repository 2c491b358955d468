"""Requantizers of synthetic devices, learned by questions."""

from __future__ import annotations

import pytest

from support.planted import FAULTS, Device, Fields, PlantedTarget, drawn, planted, stated
from tflq.devices.learning.asking import Asker
from tflq.devices.learning.space import Requantized, learned_requantizer
from tflq.engine.numerics.requantizer import canonical, point_of


def asked(target: PlantedTarget, op: str = "CONV_2D") -> Requantized:
    """Run the whole course of questions to a device."""
    asker, course = Asker(target), learned_requantizer(op, "int8", 0)
    drafts = next(course)
    while True:
        try:
            drafts = course.send(asker.ask(drafts))
        except StopIteration as end:
            found: Requantized = end.value
            return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 15, 19, 27, 31])
def test_a_device_inside_the_grammar_is_never_lost(seed: int) -> None:
    fields, fault = drawn(seed)
    assert not fault
    found = asked(planted(seed))
    assert canonical(point_of(stated(fields))) in found.points
    assert len(found.asked) < 60
    assert found.rounds <= 12


def test_the_default_of_many_runtimes_is_named_alone_or_with_what_no_question_parts() -> None:
    fields = Fields(first="half up", last="half away from zero", result="clamped")
    found = asked(PlantedTarget(Device(fields)), "FULLY_CONNECTED")
    assert {(p.multiplier, p.mantissa, p.first, p.last) for p in found.points} == {
        ("float64", 31, "half up", "half away from zero")
    }
    assert found.proved


@pytest.mark.parametrize("last", ["half to even", pytest.param("towards zero", marks=pytest.mark.slow)])
def test_a_requantizer_by_range_is_found(last: str) -> None:
    fields = Fields(multiplier="given", product="float32 by range", last=last)
    assert point_of(stated(fields)) in asked(PlantedTarget(Device(fields))).points


@pytest.mark.parametrize("fault", ["rounds to odd", "mantissa of 13 bits", "one more for codes above 100"])
def test_a_device_beside_the_grammar_has_no_point(fault: str) -> None:
    assert fault in FAULTS
    assert asked(PlantedTarget(Device(Fields(), fault))).points == ()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 60, 6))
def test_devices_of_odd_seeds(seed: int) -> None:
    fields, fault = drawn(seed)
    for op in ("CONV_2D", "FULLY_CONNECTED"):
        points = asked(planted(seed), op).points
        assert not points if fault else canonical(point_of(stated(fields))) in points
