"""Portable models: scales on the grid, and a model of which all but the final SOFTMAX is proved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import view
from tflq.proof import Word
from tflq.quantization.portable.grid import multipliers, product_scale, weight_scales
from tflq.quantization.recipe import PRESETS, Recipe
from tflq.quantization.result import Result

GOLDEN = suites.ROOT / "golden" / "models"
FLOAT = GOLDEN / "digits_mobilenet_float.tflite"
RUNTIMES = ("litert-ref", "litert-xnnpack", "tflm-cmsis-nn-single")


@each("seed", range(20))
def test_scales_of_weights_are_just_below_a_power_of_two(seed: int) -> None:
    random = np.random.default_rng(seed)
    data, output = (np.float32(s) for s in np.exp2(random.uniform(-8, 2, 2)))
    shift = np.arange(2, 20)
    scales = weight_scales(data, output, shift)
    real = multipliers(data, scales, output) * np.exp2(shift)
    assert np.all(real < 1)
    assert np.all(real > 1 - 2.0**-21)
    above = multipliers(data, np.nextafter(scales, np.float32(np.inf)), output).max(axis=0) * np.exp2(shift)
    assert np.all(above >= 1)


def test_the_scale_of_a_product_stays_where_it_is_chosen() -> None:
    one, other, least = np.float32(0.013), np.float32(0.0041), np.float32(0.02)
    scale = product_scale(one, other, least)
    assert scale >= least
    assert product_scale(one, other, scale) == scale
    real = float(one) * float(other) / float(scale)
    assert 0 < 2.0 ** round(np.log2(real)) - real < 2.0**-20


def quantized(**changes: Any) -> Result:
    with np.load(GOLDEN / "digits_test.npz") as digits:
        images = digits["images"].reshape(-1, 1, 8, 8, 1)[:40].astype(np.float32) / 16
    first = replace(PRESETS["fast"], candidates=PRESETS["fast"].candidates[5:6], portable=RUNTIMES)
    return tflq.quantize(FLOAT, [[image] for image in images], replace(first, **changes))


def test_a_portable_model_is_proved_as_far_as_its_softmax() -> None:
    result = quantized()
    outcome = result.report.portable
    assert outcome is not None
    assert outcome.left == ()
    assert {o.op for o in outcome.proof.operators if o.word != Word.EQUAL} <= {"SOFTMAX"}
    weights = [op for op in view(result.model).ops if op.name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")]
    assert weights
    for op in weights:
        even, odd = (view(result.model).constant(t) for t in op.inputs[1:3])
        assert even is not None
        assert odd is not None
        assert not np.any(even % 2)
        assert np.all(odd % 2)


def test_without_softmax_the_whole_model_is_proved() -> None:
    outcome = quantized(drop_softmax=True).report.portable
    assert outcome is not None
    assert outcome.proof.word == Word.EQUAL


def test_the_portable_part_ends_where_it_is_told_to() -> None:
    graph = view(tflq.load(FLOAT))
    until = graph.op(2).output().name
    outcome = quantized(portable_until=until).report.portable
    assert outcome is not None
    assert outcome.left == ()
    assert Word.DIFFERS in {o.word for o in outcome.proof.operators}


def test_recipes_that_contradict_themselves_are_refused() -> None:
    wrongs: tuple[dict[str, Any], ...] = (
        {"mode": "int16x8", "portable": ("all",)},
        {"portable": ("tflm", "tflm")},
        {"drop_softmax": True},
        {"portable_until": "x"},
    )
    for wrong in wrongs:
        with pytest.raises(OptionError):
            Recipe(**wrong)
    with pytest.raises(UnknownNameError):
        Recipe(portable=("nowhere",))
    with pytest.raises(UnknownNameError):
        quantized(portable_until="nothing")
