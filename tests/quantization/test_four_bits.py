"""Weights of four bits: stored two in a byte, rounded by GPTQ, and the same bits in LiteRT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.comparison.results import Verdict
from tflq.model.flatbuf import write
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.constants import numbers_from
from tflq.quantization.draft import four_bits
from tflq.quantization.judge import trials
from tflq.quantization.judge.trials import costliest
from tflq.quantization.recipe import (
    PRESETS,
    BiasCorrection,
    Methods,
    Mode,
    Recipe,
    RecipeBudget,
    Refining,
    Rounding,
    Spared,
    distinct,
)
from tflq.quantization.refine import sequence
from tflq.quantization.result import Result
from tflq.quantization.scheme.float_graph import prepare

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"
FLOAT = GOLDEN / "digits_mobilenet_float.tflite"


def digits(count: int) -> list[list[np.ndarray]]:
    images = suites.digits().images[:count]
    return [[image[None]] for image in images]


def weight_types(model: Model) -> dict[str, set[str]]:
    graph, types = view(model), dict[str, set[str]]()
    for operator in graph.ops:
        name = operator.builtin
        if name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            types.setdefault(name, set()).add(TensorType(graph.tensors[operator.inputs[1]].type).label)
    return types


def versions(model: Model) -> dict[str, int]:
    return {code.name: code.version for code in model.operator_codes}


@pytest.fixture(scope="module")
def quantized() -> Result:
    return tflq.quantize(FLOAT, digits(32), Recipe(mode=Mode.INT8X4, eight_bits=0))


@pytest.mark.parametrize("count", [1, 2, 7, 16])
def test_codes_are_read_back_as_they_were(count: int) -> None:
    codes = np.random.default_rng(count).integers(-8, 8, count).astype(np.int8)
    packed = four_bits(codes)
    assert packed.size == (count + 1) // 2
    np.testing.assert_array_equal(numbers_from(packed, TensorType.INT4, (count,)), codes)


def test_all_kernels_that_take_them_get_them(quantized: Result) -> None:
    kinds, known = weight_types(quantized.model), versions(quantized.model)
    assert set().union(*kinds.values()) == {"int4"}
    assert {name: known[name] for name in kinds} == {
        name: version
        for name, version in (("CONV_2D", 7), ("DEPTHWISE_CONV_2D", 7), ("FULLY_CONNECTED", 10))
        if name in kinds
    }


def test_names_of_constants_can_be_left_out(quantized: Result) -> None:
    recipe = Recipe(mode=Mode.INT8X4, constant_names=False, eight_bits=0)
    bare = tflq.quantize(FLOAT, digits(32), recipe)
    assert len(write(bare.model)) < 0.9 * len(write(quantized.model))
    graph, model = view(bare.model), bare.model
    named = {t.name for t in graph.tensors if model.buffers[t.buffer].data is None}
    assert None not in named
    assert {t.name for t in graph.tensors if model.buffers[t.buffer].data is not None} == {None}
    assert bare.report.comparison.sqnr == quantized.report.comparison.sqnr


def test_litert_computes_the_same_bits(quantized: Result) -> None:
    check = quantized.report.check
    assert check.report is not None, check.error
    assert check.report.verdict == Verdict.SAME


def test_they_are_rounded_by_gptq_and_come_near_the_float_model(quantized: Result) -> None:
    assert quantized.report.ranking[0].methods.refining.rounding == Rounding.GPTQ
    assert quantized.report.comparison.sqnr > 12


def test_scales_below_the_range_come_nearer_on_other_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = Methods(0.5, refining=Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL, match_inputs=True))
    recipe, others = Recipe(mode=Mode.INT8X4, candidates=(methods,), eight_bits=0), digits(164)[100:]

    def ratio() -> float:
        return tflq.quantize(FLOAT, digits(64), recipe, evaluation=others).report.comparison.sqnr

    clipped = ratio()
    monkeypatch.setattr(sequence, "CLIPS", np.ones(1, np.float32))
    assert clipped > ratio() + 0.1


def test_corrected_biases_come_with_matched_inputs() -> None:
    candidates = distinct(Recipe(mode=Mode.INT8X4, candidates=PRESETS["fast"].candidates))
    corrected = [m.refining for m in candidates if m.refining.bias is not BiasCorrection.NONE]
    assert corrected
    assert all(refining.match_inputs for refining in corrected)


@pytest.mark.slow
def test_a_bound_on_bytes_gives_the_most_sensitive_operators_eight_bits(quantized: Result, tmp_path: Path) -> None:
    small = quantized.save(tmp_path / "four.tflite")
    large = tflq.quantize(FLOAT, digits(32), Recipe(candidates=(Methods(),))).save(tmp_path / "eight.tflite")
    assert small < large
    recipe = Recipe(mode=Mode.INT8X4, budget=RecipeBudget(most_bytes=(small + large) // 2))
    assert recipe.spared is Spared.INT8
    assert replace(recipe, mode=Mode.INT8).spared is Spared.INT16X8
    mixed = tflq.quantize(FLOAT, digits(32), recipe)
    kinds = set().union(*weight_types(mixed.model).values())
    assert kinds == {"int4", "int8"}
    assert small < mixed.save(tmp_path / "mixed.tflite") <= (small + large) // 2
    assert {remark.text for remark in mixed.report.spared} == {"int8"}


@pytest.mark.usefixtures("checked")
def test_operators_that_lose_most_for_their_weights_keep_eight_bits(quantized: Result) -> None:
    mixed = tflq.quantize(FLOAT, digits(32), Recipe(mode=Mode.INT8X4))
    kept_eights = mixed.report.eights
    assert kept_eights is not None
    graph = view(tflq.load(FLOAT))
    kept = {index for index in kept_eights.operators if graph.op(index).builtin == "DEPTHWISE_CONV_2D"}
    assert kept, "few weights, much error"
    types = weight_types(mixed.model)
    assert {"int4", "int8"} <= set().union(*types.values())
    written = [op for op in view(mixed.model).ops if op.builtin in types]
    assert sum(view(mixed.model).tensors[op.inputs[1]].type == TensorType.INT8 for op in written) == len(
        kept_eights.operators
    )
    assert len(kept_eights.operators) < kept_eights.candidates == len(written)
    saved = sum(int(np.prod(graph.tensors[graph.op(i).inputs[1]].shape)) for i in kept_eights.operators)
    assert saved / 2 <= kept_eights.added <= saved / 2 + 32 * len(kept_eights.operators)
    others = digits(164)[100:]
    ratio = tflq.compare(FLOAT, mixed.model, others).sqnr
    assert ratio > tflq.compare(FLOAT, quantized.model, others).sqnr + 1
    check = mixed.report.check
    assert check.report is not None, check.error
    assert check.report.verdict == Verdict.SAME


def test_the_share_bounds_the_weights_of_eight_bits() -> None:
    floats = prepare(tflq.load(FLOAT))
    operators = [op.index for op in floats.graph.ops if len(op.inputs) == 3 and op.inputs[1] in floats.constants]
    sizes = {o: floats.constants[floats.graph.op(o).inputs[1]].size for o in operators}
    small, large = min(operators, key=lambda o: sizes[o]), max(operators, key=lambda o: sizes[o])
    errors = dict.fromkeys(operators, 0.01)
    assert costliest(floats, errors, 0.0) == frozenset()
    assert costliest(floats, errors, 1.0) == frozenset(operators)
    assert small in costliest(floats, errors, 0.2)
    assert large not in costliest(floats, errors, 0.2)
    assert large in costliest(floats, {**errors, large: 1e6}, 0.9)
    assert costliest(floats, dict.fromkeys(operators, 0.0), 1.0) == frozenset()


def test_the_share_rises_only_while_scores_are_far_apart_because_of_four_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    def added(enough: float) -> int:
        monkeypatch.setattr(trials, "ENOUGH", enough)
        candidates = (Methods(0.5, refining=Refining(Rounding.GPTQ)),)
        made = tflq.quantize(FLOAT, digits(8), Recipe(mode=Mode.INT8X4, candidates=candidates))
        assert made.report.eights is not None
        return made.report.eights.added

    assert added(np.inf) < added(0.0)
