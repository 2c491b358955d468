"""Equalization leaves the float function as it is, bit by bit, and brings channels together."""

from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.quantization.build.build import Task, build
from tflq.quantization.frontier import Runner
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.ranges.observers import ChannelEnds
from tflq.quantization.recipe import Methods, Recipe
from tflq.quantization.refine.groups import channel_groups, equalized, factors, scaled
from tflq.quantization.scheme.float_graph import FloatModel, prepare
from tflq.typing import Array

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"


def digits_model(name: str) -> tuple[FloatModel, list[dict[int, Array]]]:
    model = prepare(tflq.load(GOLDEN / f"digits_{name}_float.tflite"))
    images = suites.digits().images[:40]
    return model, [{model.graph.inputs[0]: image[None]} for image in images]


def magnitudes(model: FloatModel, samples: list[dict[int, Array]]) -> dict[int, Array]:
    tensors = [t for o in model.graph.ops for t in o.outputs if model.is_float(t) and model.graph.tensors[t].shape]
    seen = {t: ChannelEnds() for t in tensors}
    for values in Runner(model.model, tensors).each(samples):
        seen = {t: seen[t].update(values[t]) for t in tensors}
    return {t: np.maximum(-c.low, c.high) for t, c in seen.items()}


def outputs(model: FloatModel, samples: list[dict[int, Array]]) -> Array:
    return np.concatenate([values[model.graph.outputs[0]] for values in Runner(model.model).each(samples)])


def skewed(model: FloatModel, seed: int) -> FloatModel:
    """The same function with every free channel scaled by a random power of two."""
    random = np.random.default_rng(seed)
    return scaled(
        model, [(g, np.exp2(random.integers(-4, 5, g.size).astype(np.float64))) for g in channel_groups(model)]
    )


@pytest.mark.parametrize("name", ["mobilenet", "autoencoder", "unet", "lstm"])
def test_the_float_function_stays_bit_for_bit(name: str) -> None:
    model, samples = digits_model(name)
    model = skewed(model, 1)
    after = equalized(model, magnitudes(model, samples))
    assert outputs(after, samples).tobytes() == outputs(model, samples).tobytes()


def test_skewed_channels_come_back_together() -> None:
    plain, samples = digits_model("mobilenet")
    model = skewed(plain, 2)
    groups = channel_groups(model)
    assert groups
    after = equalized(model, magnitudes(model, samples))
    before, now = (magnitudes(m, samples) for m in (model, after))
    spread = [np.ptp(np.log2(m[g.tensors[0]][m[g.tensors[0]] > 0])) for m in (before, now) for g in groups]
    assert np.mean(spread[len(groups) :]) < np.mean(spread[: len(groups)]) / 2


def test_strength_one_gives_all_channels_one_magnitude_up_to_a_power_of_two() -> None:
    plain, samples = digits_model("mobilenet")
    model = skewed(plain, 3)
    seen = magnitudes(model, samples)
    for group in channel_groups(model):
        largest = np.max([seen[t] for t in group.tensors], axis=0)
        alike = (largest / factors(model, group, seen, 1.0))[largest > 0]
        assert alike.max() / alike.min() <= 2.0001


def test_tensors_of_the_graphs_edge_are_in_no_group() -> None:
    model, _ = digits_model("mobilenet")
    edge = {*model.graph.inputs, *model.graph.outputs}
    assert all(edge.isdisjoint(group.tensors) for group in channel_groups(model))


def test_wins_against_min_max_where_channels_are_of_all_sizes() -> None:
    plain, samples = digits_model("autoencoder")
    model = skewed(plain, 4)
    plainly, alike = (
        build(Task(model, samples[:20], Recipe(), Methods(equalize=strength))).integer.model for strength in (None, 0.5)
    )
    before, after = (compare_models(model.model, made, samples[20:]).sqnr for made in (plainly, alike))
    assert after > before + 6
