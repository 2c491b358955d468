"""Thinner images: what is left of them has the whole image's results, whatever window, stride and padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support import suites
from support.each import each
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.crops import _axis, thinned
from tflq.diagnosis.localization import operator_alone
from tflq.engine.api.files import load
from tflq.engine.profiles import PROFILES
from tflq.model.ir import view


@each("stride", [1, 2, 3])
@each("reach", [1, 3, 4, 7])
@each("size", [1, 9, 40, 97])
def test_kept_outputs_see_the_rows_that_they_saw(size: int, reach: int, stride: int) -> None:
    out = -(-size // stride)
    before = max(0, (out - 1) * stride + reach - size) // 2
    for place in {0, out // 2, out - 1}:
        axis = _axis(size, out, stride, before, reach, place)
        kept = axis.rows.tolist()
        assert place in axis.outputs.tolist()
        for made, now in zip(axis.outputs.tolist(), axis.now.tolist(), strict=True):
            seen = [y for y in range(made * stride - before, made * stride - before + reach) if 0 <= y < size]
            thin = [y for y in range(now * stride - before, now * stride - before + reach) if 0 <= y < len(kept)]
            assert [kept[y] for y in thin] == seen


def test_one_wrong_element_stays_in_a_thinner_image() -> None:
    path = suites.SHARED / "suites/real/models/coral/mobilenet_v2_1.0_224_quant.tflite"
    if not path.exists():
        pytest.skip(suites.missing() or f"{path} is not there")
    model, profile = load(path), PROFILES["litert-ref"]
    tensor = view(model).inputs[0]
    image = np.random.default_rng(1).integers(0, 256, view(model).tensors[tensor].shape).astype(np.uint8)
    alone = operator_alone(model, Dump("", {tensor: image}), 0, profile)
    base = alone.run(alone.plan(profile))
    result = view(model).op(0).outputs[0]
    got = base[result].copy()
    got[0, 50, 60, 3] ^= 1
    thinner = thinned(replace(alone, got={result: got}), profile, base)
    assert thinner is not None
    assert thinner.alone.inputs[0].size < image.size / 4
    seen = thinner.alone.got[result]
    made = thinner.of(thinner.alone.run(thinner.alone.plan(profile)))[result]
    assert np.count_nonzero(seen != made) == 1
