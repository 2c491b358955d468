"""Geometries: covering arrays are what they are called, and devices with the wrong row never pass or are claimed."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.planted_geometry import CONDITIONS, GeometryTarget, facts_of, planted
from tflq.devices.grids import geometric
from tflq.devices.learning.asking import DeviceAnswer
from tflq.devices.learning.candidates import Effort, exception
from tflq.devices.learning.findings import LearnState
from tflq.devices.learning.learner import learn
from tflq.devices.learning.questions import LearnSubject, subjects
from tflq.devices.learning.words import finding
from tflq.devices.suites.make import CONTRASTS, SuiteOrder, reaching
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import UnsupportedError
from tflq.model.ir import view

SPACES = [(op, kind) for kind in geometric.KINDS for op in geometric.spaces(kind)]


@each(("op", "kind"), SPACES)
def test_every_possible_pair_of_values_occurs(op: str, kind: str) -> None:
    space, rows = geometric.spaces(kind)[op], geometric.covering(op, kind)
    assert all(space.allows(dict(row)) for row in rows)
    for a, b in combinations(space.options, 2):
        for x, y in product(space.options[a], space.options[b]):
            if not any(row[a] == x and row[b] == y for row in rows):
                assert not space.allows({a: x, b: y}), (a, x, b, y)


@pytest.mark.slow
def test_smoke_has_every_geometry_and_at_most_1500_cases() -> None:
    smoke = [draft for _, draft, level in SuiteOrder(level="smoke").drafts() if level == "smoke"]
    assert len(smoke) <= 1500
    rows = sum(len(geometric.covering(op, kind)) for op, kind in SPACES)
    assert sum(draft.aim.startswith(geometric.AIM) for draft in smoke) == rows


def test_every_geometry_runs_and_an_aim_is_read_again() -> None:
    ref = by_name("litert-ref")
    for draft in list(geometric.drafts(0))[::9]:
        make_plan(load(draft.model()), ref)
        choice = geometric.choice_of(draft.aim)
        assert choice is not None
        assert choice["depth"] == str(draft.inputs[2 if draft.op == "TRANSPOSE_CONV" else 0].shape[-1])  # type: ignore[union-attr]
    assert geometric.choice_of("ties: powers of two") is None


def differs(device: GeometryTarget) -> bool:
    """Return whether a case of smoke shows the fault: the condition holds, and the outputs are not those of it."""
    chosen, (_, is_wrong) = by_name(device.profile), CONDITIONS[device.condition]
    for draft in geometric.drafts(0):
        if draft.op != device.op:
            continue
        model = load(draft.model())
        if not is_wrong(facts_of(view(model))):
            continue
        try:
            plan = make_plan(model, chosen)
        except UnsupportedError:  # uint8 in tflm
            continue
        for sample in draft.samples:
            moved = tuple(np.roll(value, 1, -2 if value.ndim == 4 else -1) for value in sample)
            one, other = (run(plan, dict(zip(plan.inputs, fed, strict=True))).values for fed in (sample, moved))
            if any(not np.array_equal(one[t], other[t]) for t in plan.outputs):
                return True
    return False


@pytest.mark.slow
def test_no_planted_geometry_passes_smoke() -> None:
    devices = [planted(seed) for seed in range(200)]
    distinct = {(device.profile, device.op, device.condition): device for device in devices}
    assert not [name for name, device in distinct.items() if not differs(device)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 9, 30])
def test_no_planted_geometry_is_claimed(seed: int) -> None:
    device = planted(seed)
    (subject,) = subjects(["int8"], [device.op])
    (found,) = learn(device, [subject], Effort(first=8, fresh=8)).operators
    assert found.state is not LearnState.LEARNED, device


@pytest.mark.slow
def test_what_holds_beside_an_option_is_stated() -> None:
    device = GeometryTarget("tflm", "MAX_POOL_2D", "stride_w 3")
    (subject,) = subjects(["int8"], [device.op])
    (found,) = learn(device, [subject], Effort(first=8, fresh=8)).operators
    assert found.state is LearnState.PARTLY
    assert "only with stride_w 1 or stride_w 2" in finding(found)
    assert "except with stride_w 3" in found.note


def answer(aim: str) -> DeviceAnswer:
    draft: Any = next(iter(geometric.drafts(0)))
    return DeviceAnswer(replace(draft, aim=aim))


def test_an_exception_names_one_option_or_two() -> None:
    aims = [f"geometry: stride {s}, padding {p}" for s in (1, 2, 3) for p in ("SAME", "VALID")]
    by_stride = [answer(aim) for aim in aims if "stride 2" in aim], [answer(a) for a in aims if "stride 2" not in a]
    assert "except with stride 2 (2 of 6" in exception(*by_stride)
    one = aims.index("geometry: stride 3, padding VALID")
    both = [answer(aims[one])], [answer(aim) for k, aim in enumerate(aims) if k != one]
    assert "except with stride 3 and padding VALID" in exception(*both)
    assert "except for sums beyond 24 bits" in exception([answer("sums beyond 24 bits")], [answer(aims[0])])
    assert LearnSubject("CONV_2D", "int8").covering(0) == []


def test_contractions_get_inputs_on_which_another_arithmetic_gives_other_bits() -> None:
    draft = LearnSubject("CONV_2D", "int8 int8 int32 -> int8").drafts(0, 1)[0]
    more = reaching(draft, "litert-ref")
    assert more.samples[: len(draft.samples)] == draft.samples
    assert len(more.samples) > len(draft.samples)
    sample = more.samples[-1]
    found = set()
    for name in ("litert-ref", *CONTRASTS):
        plan = make_plan(load(draft.model()), by_name(name))
        found.add(run(plan, dict(zip(plan.inputs, sample, strict=True))).values[plan.outputs[0]].tobytes())
    assert len(found) > 1
    pool = LearnSubject("MAX_POOL_2D", "int8 -> int8").drafts(0, 1)[0]
    assert reaching(pool, "litert-ref").samples == pool.samples
