"""Rows of files that state points of a grammar: they compute as scalar code does, and strange ones are refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from support.planted import Device, Fields, quotient
from support.single_op import T, build
from tflq.devices.learning.questions import LearnSubject
from tflq.devices.suites.draft import Draft
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import InputError, ModelError, TflqError
from tflq.model.flatbuf import read
from tflq.model.ir import Model

CONV = LearnSubject("CONV_2D", "int8 int8 int32 -> int8")
POOL = LearnSubject("AVERAGE_POOL_2D", "int8 -> int8")
RELU = LearnSubject("RELU", "int8 -> int8")


def profile(folder: Path, *rows: dict[str, Any], **more: Any) -> str:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"rows": list(rows), **more}), encoding="utf-8")
    return str(path)


def resized(*, align: bool, half: bool) -> Model:
    options = ("ResizeNearestNeighborOptions", {"align_corners": align, "half_pixel_centers": half})
    size = T("int32", (2,), value=(7, 1))
    return read(
        build("RESIZE_NEAREST_NEIGHBOR", [T("int8", (1, 3, 1, 1), 0.5, 0), size], [T("int8", (), 0.5, 0)], options)
    )


def outputs(draft: Draft, path: str) -> list[Any]:
    plan = make_plan(read(draft.model()), by_name(path))
    return [run(plan, dict(zip(plan.inputs, s, strict=True))).values[plan.outputs[0]] for s in draft.samples]


def test_a_requantizer_computes_as_scalar_code(tmp_path: Path) -> None:
    fields = {"multiplier": "float32", "mantissa": 15, "first": "towards zero", "last": "half to even"}
    path = profile(tmp_path, {"op": "CONV_2D", "types": CONV.types, "requantizer": fields})
    device = Device(Fields(**fields))  # type: ignore[arg-type]
    compared = 0
    for draft in CONV.drafts(3, 9):
        assert draft.options is not None
        if draft.options[1]["fused_activation_function"]:
            continue
        for sample, got in zip(draft.samples, outputs(draft, path), strict=True):
            assert np.array_equal(got, device.run(read(draft.model()), list(sample)))
            compared += got.size
    assert compared > 500


@pytest.mark.parametrize("rounding", ["half up", "towards zero"])
@pytest.mark.parametrize("zero_point", ["kept", "subtracted"])
def test_an_average_computes_as_scalar_code(rounding: str, zero_point: str, tmp_path: Path) -> None:
    point = {"rounding": rounding, "zero_point": zero_point}
    path = profile(tmp_path, {"op": "AVERAGE_POOL_2D", "types": POOL.types, "average": point})
    device = Device(Fields(), average=(rounding, zero_point))
    for draft in POOL.drafts(3, 6):
        assert draft.options is not None
        if not draft.options[1]["fused_activation_function"]:
            for sample, got in zip(draft.samples, outputs(draft, path), strict=True):
                assert np.array_equal(got, device.run(read(draft.model()), list(sample)))
    assert quotient(-5, 2, "half up") == -2


def test_a_float_form_dequantizes_divides_and_rounds(tmp_path: Path) -> None:
    path = profile(tmp_path, {"op": "RELU", "types": RELU.types, "floats": {"rounding": "towards zero"}})
    draft = RELU.drafts(0, 1)[0]
    x, y = draft.inputs[0], draft.outputs[0]
    assert x is not None
    (got,) = outputs(draft, path)
    for code, result in zip(draft.samples[0][0].tolist(), got.tolist(), strict=True):
        real = max(np.float32(x.scale) * np.float32(code - int(x.zero_point)), np.float32(0))
        expected = int(np.trunc(np.float32(real / np.float32(y.scale)))) + int(y.zero_point)
        assert result == min(max(expected, -128), 127)


def nearest_float32(value: Fraction) -> np.float32:
    """Return the float32 nearest to an exact number, the even one of two."""
    guess = np.float32(float(value))
    near = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.int32)) & 1))


@pytest.mark.parametrize("products", ["rounded", "fused"])
@pytest.mark.parametrize(("op", "sign"), [("ADD", 1), ("SUB", -1)])
def test_a_float_sum_folds_zero_points_and_adds_in_order(op: str, sign: int, products: str, tmp_path: Path) -> None:
    subject = LearnSubject(op, "int8 int8 -> int8")
    point = {"zero_points": "folded into the constant", "order": "constant, first, second", "products": products}
    path = profile(tmp_path, {"op": op, "types": subject.types, "float_sum": point})
    draft = next(
        d
        for d in subject.drafts(3, 30)
        if d.options and not d.options[1]["fused_activation_function"] and d.inputs[0].shape == d.inputs[1].shape
    )
    a, b, y = *draft.inputs, draft.outputs[0]
    f32 = np.float32
    ratios = f32(a.scale) / f32(y.scale), sign * (f32(b.scale) / f32(y.scale))
    constant = f32(y.zero_point) - (ratios[0] * f32(a.zero_point) + ratios[1] * f32(b.zero_point))
    telling = 0
    for sample, got in zip(draft.samples, outputs(draft, path), strict=True):
        for first, second, result in zip(*(v.ravel()[:500].tolist() for v in (*sample, got)), strict=True):
            total = constant
            for code, ratio in ((first, ratios[0]), (second, ratios[1])):
                product = Fraction(code) * Fraction(float(ratio))
                if products == "rounded":
                    product = Fraction(float(nearest_float32(product)))
                total = nearest_float32(Fraction(float(total)) + product)
            assert result == min(max(round(float(total)), -128), 127)
            telling += -128 < result < 127
    assert telling > 30


def test_an_ignored_activation_leaves_the_whole_range(tmp_path: Path) -> None:
    path = profile(tmp_path, {"op": "AVERAGE_POOL_2D", "types": POOL.types, "ignores": {"option": "activation"}})
    draft = next(d for d in POOL.drafts(3, 30) if d.options and d.options[1]["fused_activation_function"])
    assert draft.options is not None
    plain = replace(draft, options=(draft.options[0], {**draft.options[1], "fused_activation_function": 0}))
    (tmp_path / "plain").mkdir()
    clamped = profile(tmp_path / "plain", {"op": "AVERAGE_POOL_2D", "types": POOL.types, "like": "litert-ref"})
    assert np.array_equal(outputs(draft, path), outputs(plain, clamped))
    assert not np.array_equal(outputs(draft, path), outputs(draft, clamped))
    with pytest.raises(ModelError, match="no option fused_activation_function to ignore"):
        outputs(RELU.drafts(0, 1)[0], profile(tmp_path, {"op": "RELU", "ignores": {"option": "activation"}}))


@pytest.mark.parametrize(
    ("align", "half", "point", "expected"),
    [
        (False, False, {}, [0, 0, 0, 1, 1, 2, 2]),
        (False, False, {"plain": "rounded half up"}, [0, 0, 1, 1, 2, 2, 2]),
        (True, False, {"align_corners": "rounded down"}, [0, 0, 0, 1, 1, 1, 2]),
        (False, True, {}, [0, 0, 1, 1, 1, 2, 2]),
        (False, True, {"half_pixel_centers": "ignored, rounded down"}, [0, 0, 0, 1, 1, 2, 2]),
    ],
)
def test_nearest_pixels_follow_the_rule(
    align: bool, half: bool, point: dict[str, str], expected: list[int], tmp_path: Path
) -> None:
    row = {"op": "RESIZE_NEAREST_NEIGHBOR", "types": "int8 int32 -> int8", "nearest": point}
    plan = make_plan(resized(align=align, half=half), by_name(profile(tmp_path, row)))
    image = np.arange(3, dtype=np.int8).reshape(1, 3, 1, 1)
    got = run(plan, {plan.inputs[0]: image}).values[plan.outputs[0]]
    assert got.ravel().tolist() == expected


def test_tables_hold_for_their_scales_only(tmp_path: Path) -> None:
    first, second = RELU.drafts(0, 2)
    x, y = first.inputs[0], first.outputs[0]
    assert x is not None
    pairs = {"input": [float(x.scale), int(x.zero_point)], "output": [float(y.scale), int(y.zero_point)]}
    table = {**pairs, "codes": list(range(127, -129, -1))}
    path = profile(tmp_path, {"op": "RELU", "types": RELU.types, "tables": [table]})
    (got,) = outputs(first, path)
    assert np.array_equal(got, 127 - (first.samples[0][0].astype(np.int64) + 128))
    with pytest.raises(ModelError, match="no table of codes for these scales"):
        outputs(second, path)


def test_others_are_refused_if_the_file_says_so(tmp_path: Path) -> None:
    path = profile(tmp_path, {"op": "RELU", "types": RELU.types, "like": "tflm"}, others="refused")
    outputs(RELU.drafts(0, 1)[0], path)
    with pytest.raises(TflqError):
        outputs(POOL.drafts(0, 1)[0], path)


@pytest.mark.parametrize(
    "row",
    [
        {"requantizer": {"mantissa": 99}},
        {"requantizer": {"colour": "blue"}},
        {"requantizer": 3},
        {"floats": {"precision": "float8"}},
        {"average": {"count": 4}},
        {"float_sum": {"order": "abc"}},
        {"float_sum": {}},
        {"ignores": {"option": "stride"}},
        {"nearest": {"plain": "rounded"}},
        {"nearest": {}},
        {"tables": [{"input": [1.0, 0], "output": [1.0, 0], "codes": [1, 2]}]},
        {"tables": [{"input": 5, "output": [1.0, 0], "codes": []}]},
        {"tables": [[]]},
    ],
)
def test_strange_points_are_refused(row: dict[str, Any], tmp_path: Path) -> None:
    path = profile(tmp_path, {"op": "RELU", "types": RELU.types, **row})
    with pytest.raises(InputError):
        outputs(RELU.drafts(0, 1)[0], path)


def test_others_has_two_values(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="value of others"):
        by_name(profile(tmp_path, others="maybe"))
