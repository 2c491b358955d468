"""Forms of kernels: a profile or an exception that fits by chance is not named for a device that computes in floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tflq.devices.learning.forms import Form, Forms, requantizing
from tflq.devices.learning.joint import ScoredKernel, causes_of_suite, is_in_floats
from tflq.devices.learning.questions import LearnSubject
from tflq.devices.suites.draft import Draft
from tflq.devices.suites.make import SuiteOrder, read_suite
from tflq.devices.suites.run import judged_cases, make_suite
from tflq.devices.suites.target import ProfileTarget
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.siblings import Joint
from tflq.engine.kernels.families.reals import Floats
from tflq.engine.numerics.requantizer import Requantizer
from tflq.engine.profiles import by_name
from tflq.engine.profiles.file import with_rows
from tflq.model.storage.arrays import opened

CONV = LearnSubject("CONV_2D", "int8 int8 int32 -> int8")
IN_FLOATS = Form(kind="floats", fields=tuple(asdict(Floats()).items()))


def activated(draft: Draft, activation: int) -> Draft:
    assert draft.options is not None
    name, fields = draft.options
    return replace(draft, options=(name, {**fields, "fused_activation_function": activation}))


@pytest.mark.parametrize(("activation", "expected"), [(0, False), (1, True)])
def test_only_an_option_that_a_model_sets_can_be_ignored(activation: int, expected: bool) -> None:
    forms = Forms(CONV)
    for draft in CONV.drafts(0, 3):
        forms.model(activated(draft, activation))
    ignored = [f.point["option"] for f in ScoredKernel(forms).changed([Form()], ()) if f.kind == "ignores"]
    assert ("activation" in ignored) is expected


def test_products_in_floats_are_floats() -> None:
    assert is_in_floats(IN_FLOATS)
    assert is_in_floats(requantizing(Requantizer(product="float32")))
    assert not is_in_floats(requantizing(Requantizer(last="half to even")))
    assert not is_in_floats(Form("litert-opt"))


def named(path: Path, forms: Mapping[str, Form]) -> Joint:
    """Return the causes named for a device that computes int8 of these operators by forms, and runs nothing else."""
    profile = by_name("litert-ref")
    with opened(str(path)) as archive:
        suite = read_suite(archive)
        kept = tuple(case for case in suite.cases if case.op in forms and case.types.split()[0] == "int8")
        for op, types in sorted({(case.op, case.types) for case in kept}):
            profile = with_rows(profile, forms[op].rows(LearnSubject(op, types)))
        target = ProfileTarget(profile)
        return judged_cases(archive, replace(suite, cases=kept), target, 500, 0, naming=causes_of_suite).joint


@pytest.mark.slow
def test_a_profile_that_fits_by_chance_has_rivals_where_the_device_computes_in_floats(tmp_path: Path) -> None:
    path = tmp_path / "smoke.npz"
    make_suite(str(path), SuiteOrder(level="smoke"))
    pixels = Form(kind="ignores", fields=(("option", "half_pixel_centers"),))
    joint = named(path, {"CONV_2D": IN_FLOATS, "MUL": IN_FLOATS, "RESIZE_NEAREST_NEIGHBOR": pixels})
    by_op = {op: cause for cause in joint.causes for op in cause.operators}
    assert by_op["RESIZE_NEAREST_NEIGHBOR"].others
    assert by_op["RESIZE_NEAREST_NEIGHBOR"].certainty is Certainty.LIKELY
    assert by_op["CONV_2D"] == by_op["MUL"]
    assert "dequantizes, computes in float32" in by_op["CONV_2D"].name
