"""Refinements of a real model whose weights have few codes: each must beat rounding to nearest without any."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.model.ir import view
from tflq.quantization.build.writer import activation_params, assign, rewritten, weight_params
from tflq.quantization.draft import IntegerModel
from tflq.quantization.frontier import Runner, Sample, SharedValues
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.params import extent
from tflq.quantization.ranges.watching import Observations, Watching, observe
from tflq.quantization.ranges.weights import weight_ranges
from tflq.quantization.recipe import BiasCorrection, Mode, Recipe, Refining, Rounding
from tflq.quantization.refine.moments import MatrixProduct, RowSums, matrix_product
from tflq.quantization.refine.sequence import RefinedOperator, Refinements, refinable, refined
from tflq.quantization.scheme.float_graph import prepare
from tflq.quantization.scheme.scheme import Scheme, modes_of, scheme

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"
MODEL = tflq.load(GOLDEN / "digits_mobilenet_float.tflite")
#: Weights get codes of about four bits, so that there is something to mend.
COARSE = 16


def digits(first: int, last: int) -> list[Sample]:
    images = suites.digits().images[first:last]
    return [{view(MODEL).inputs[0]: image[None]} for image in images]


@pytest.fixture(scope="module")
def planned() -> Scheme:
    floats = prepare(MODEL)
    return scheme(floats, modes_of(floats, Mode.INT8, {})[0])


def sqnr(planned: Scheme, methods: Refining) -> float:
    """Of the outputs on digits that nothing was fitted to, dB."""
    seen: dict[int, list[np.ndarray]] = {t: [] for t in planned.observed}
    for values in Runner(planned.model.model, planned.observed).run(digits(0, 32)):
        for t, v in values.items():
            seen[t].append(v)
    activations = activation_params(planned, {t: extent(np.concatenate(v)) for t, v in seen.items()})
    fine = weight_params(planned, weight_ranges(planned, None, [], Watching(SharedValues())))
    weights = {slot: replace(p, scale=(p.scale * COARSE).astype(np.float32)) for slot, p in fine.items()}
    recipe = Recipe()

    def integer(refinements: Refinements) -> IntegerModel:
        return rewritten(
            assign(planned, activations, refinements.weights, recipe, refinements.codes, refinements.biases)
        )

    subject = RefinedOperator(planned, activations, weights, integer(Refinements(weights)), recipe.executor)
    observers = {p.multiplied.data: (RowSums(p),) for p in refinable(planned)}
    seen_rows = observe(planned.model.model, digits(0, 32), Observations(observers))
    sums = {p.multiplied.operator: seen_rows.of[p.multiplied.data][0].total(range(32)) for p in refinable(planned)}
    refinements = refined(subject, methods, digits(0, 32), sums)
    return compare_models(MODEL, integer(refinements).model, digits(100, 164)).sqnr


@pytest.fixture(scope="module")
def nearest(planned: Scheme) -> float:
    return sqnr(planned, Refining())


@pytest.mark.slow
@pytest.mark.parametrize(
    "methods",
    [
        Refining(bias=BiasCorrection.ANALYTIC),
        Refining(bias=BiasCorrection.EMPIRICAL),
        Refining(rounding=Rounding.GPTQ),
        Refining(rounding=Rounding.ADAROUND),
        Refining(rounding=Rounding.BIT_SPLIT),
        Refining(match_inputs=True, rounding=Rounding.GPTQ),
        Refining(match_variance=True, bias=BiasCorrection.EMPIRICAL),
    ],
    ids=lambda m: f"{m.rounding.value}, {m.bias.value}{', inputs' * m.match_inputs}{', variance' * m.match_variance}",
)
def test_beats_rounding_to_nearest(planned: Scheme, nearest: float, methods: Refining) -> None:
    assert sqnr(planned, methods) > nearest + 1


def rows_of(product: MatrixProduct, x: np.ndarray) -> np.ndarray:
    """All rows by group, [G, N, K]."""
    rows = np.concatenate(list(product.blocks(x)))
    by_group = rows.reshape(len(rows), product.taps, product.groups, -1).transpose(2, 0, 1, 3)
    return by_group.reshape(product.groups, len(rows), -1)


def test_rows_times_matrix_is_what_the_float_model_makes(planned: Scheme) -> None:
    """The matrices stand for the operators: their products with the rows, plus bias, before the activation function."""
    sample = digits(0, 1)[0]
    floats = planned.model
    checked = set()
    for m in planned.multiplied:
        one = matrix_product(floats, m)
        assert one is not None
        (made,) = floats.graph.op(m.operator).outputs
        values = Runner(floats.model, [m.data, made]).one(sample)
        rows, matrix = rows_of(one, values[m.data]), one.matrix(floats.constants[m.tensor])
        products = np.einsum("gnk,gok->ngo", rows, matrix).reshape(values[made].shape)
        bias = 0 if m.bias is None else floats.constants[m.bias]
        options = floats.graph.op(m.operator).options
        assert options is not None
        low, high = {0: (-np.inf, np.inf), 1: (0, np.inf), 3: (0, 6)}[options["fused_activation_function"]]
        np.testing.assert_allclose(np.clip(products + bias, low, high), values[made], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(one.weights(matrix), floats.constants[m.tensor])
        checked.add(floats.graph.op(m.operator).name)
    assert checked == {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
