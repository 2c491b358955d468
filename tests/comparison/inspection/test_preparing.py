"""One operator under many profiles: each gets what its own preparation would give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from support.single_op import T, build
from support.suites import ROOT
from tflq.comparison.inspection import operators
from tflq.comparison.inspection.operators import prepare_alone
from tflq.comparison.inspection.prepared import same_operator
from tflq.comparison.inspection.preparing import KernelRows, Preparations
from tflq.engine.kernels.kernel import Kernel, Prepared
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.errors import TflqError, brief
from tflq.model.flatbuf import read

SINGLE = ROOT / "golden" / "singleop"
MODELS = [SINGLE / entry["model"] for entry in json.loads((SINGLE / "index.json").read_text())]
ABS = build("ABS", [T("float32", (2, 3))], [T("float32", (2, 3))])


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_every_profile_gets_its_own_preparation(step: int) -> None:
    profiles, rows, made, prepared = tuple(PROFILES.values()), KernelRows(), 0, 0
    for path in MODELS[::step]:
        model = read(path.read_bytes())
        alone, seen = Preparations(model, 0, profiles, rows), set[int]()
        for profile in profiles:
            got, want = (
                outcome(alone.under, profile),
                outcome(partial(prepare_alone, model, 0, beside=profiles), profile),
            )
            if isinstance(got, str) or isinstance(want, str):
                assert got == want, (path.name, profile.name)
                continue
            assert (got.prepared is None) == (want.prepared is None)
            if got.prepared is not None:
                assert same_operator(got.prepared, want.prepared), (path.name, profile.name)
            seen.add(id(got))
            made += 1
        prepared += len(seen)
    assert prepared < made / 2


def outcome(take: Any, profile: Profile) -> Any:
    try:
        return take(profile=profile)
    except TflqError as error:
        return brief(error)


def profiles_with(rows: Sequence[Kernel], **changes: Sequence[Any]) -> list[Profile]:
    """litert-ref with these rows, once for every value of a field of its arithmetic."""
    base = by_name("litert-ref")
    ((name, values),) = changes.items()
    return [
        base.derive(f"{name}-{n}", arithmetic=replace(base.arithmetic, **{name: value}), kernels={"ABS": tuple(rows)})
        for n, value in enumerate(values)
    ]


def test_fields_that_no_row_reads_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = list[str]()
    make_plan = operators.make_plan
    monkeypatch.setattr(operators, "make_plan", lambda model, profile: plans.append("") or make_plan(model, profile))
    profiles = profiles_with(by_name("litert-ref").kernels["ABS"], int4_offset=[1, 2, 3])
    alone = Preparations(read(ABS), 0, profiles, KernelRows())
    assert len({id(alone.under(profile)) for profile in profiles}) == 1
    assert len(plans) == 1


def test_fields_that_a_row_reads_count() -> None:
    def prepare(node: Any, arithmetic: Any) -> Prepared:
        return Prepared((node.input(0).shape,), arithmetic.int4_offset, lambda data, x: x + data)

    profiles = profiles_with([Kernel("ABS", "float32 -> float32", prepare)], int4_offset=[1, 2, 1])
    alone = Preparations(read(ABS), 0, profiles, KernelRows())
    found = [alone.under(profile) for profile in profiles]
    assert [made.prepared.data for made in found if made.prepared] == [1, 2, 1]
    assert found[0] is found[2]


@pytest.mark.parametrize("how", ["data", "closure", "method"])
def test_an_arithmetic_that_is_kept_counts_as_a_whole(how: str) -> None:
    """It can be read later."""

    def prepare(node: Any, arithmetic: Any) -> Prepared:
        kept = {"data": arithmetic, "closure": None, "method": arithmetic.real_of_scales}[how]
        if how == "closure":
            return Prepared((node.input(0).shape,), None, lambda data, x: x + arithmetic.int4_offset)
        return Prepared((node.input(0).shape,), kept, lambda data, x: x)

    profiles = profiles_with([Kernel("ABS", "float32 -> float32", prepare)], int4_offset=[1, 2])
    alone = Preparations(read(ABS), 0, profiles, KernelRows())
    first, second = (alone.under(profile) for profile in profiles)
    assert first is not second
    assert first.prepared
    assert second.prepared
    if how == "data":
        assert [made.prepared.data for made in (first, second) if made.prepared] == [p.arithmetic for p in profiles]
    if how == "closure":
        zero = np.zeros(1, np.float32)
        assert [made.prepared.eval(None, zero)[0] for made in (first, second) if made.prepared] == [1, 2]


def test_tables_of_equal_names_do_not_mix() -> None:
    def row(number: int) -> Kernel:
        return Kernel("ABS", "float32 -> float32", lambda node, arithmetic: Prepared(((2, 3),), number, np.abs))

    base = by_name("litert-ref")
    profiles = [base.derive("same", kernels={"ABS": (row(n),)}) for n in (1, 2)]
    alone = Preparations(read(ABS), 0, profiles, KernelRows())
    found = [alone.under(profile).prepared for profile in profiles]
    assert [prepared.data for prepared in found if prepared] == [1, 2]
