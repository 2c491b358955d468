"""Models for several runtimes: judged on all, agreeing as far as scales can make them, and the report's counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.float_graphs import FloatGraph
from tflq.errors import ModelError, OptionError, UnknownNameError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, view
from tflq.model.ir.constants import constant_of
from tflq.quantization.build.build import Task, build
from tflq.quantization.frontier import Sample
from tflq.quantization.judge.contest import judged
from tflq.quantization.judge.journal import Ranked, Score, ranked
from tflq.quantization.params import codes_of
from tflq.quantization.quarters import parted
from tflq.quantization.recipe import Methods, Recipe
from tflq.quantization.recipe_files import changed_recipe
from tflq.quantization.scheme.float_graph import prepare

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"
RUNTIMES = ("litert-xnnpack", "tflm", "tflite-2.14-opt")
SEVERAL = Recipe(runtimes=RUNTIMES[1:])


def images(count: int) -> list[list[np.ndarray]]:
    return [[row[None]] for row in suites.digits().images[:count]]


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """The same recipe with one runtime and with three."""
    path = GOLDEN / "digits_mobilenet_float.tflite"
    return {"one": tflq.quantize(path, images(16), Recipe()), "three": tflq.quantize(path, images(16), SEVERAL)}


def outputs(model: Model, inputs: list[np.ndarray], profile: str) -> np.ndarray:
    """What the drop-in interpreter gives under a profile, sample by sample."""
    interpreter = tflq.Interpreter(model_content=write(model), profile=profile)
    interpreter.allocate_tensors()
    rows = []
    for values in inputs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
        interpreter.invoke()
        rows.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return np.array(rows)


def codes(model: Model, samples: list[list[np.ndarray]]) -> list[np.ndarray]:
    graph = view(model)
    return [codes_of(graph.tensors[graph.inputs[0]], sample[0]) for sample in samples]


def scales(model: Model) -> dict[str, tuple[np.ndarray, np.ndarray, bool]]:
    """Scale, zero point and whether it is a constant, of every tensor by name."""
    return {
        spec.name or "": (spec.quantization.scale, spec.quantization.zero_point, constant_of(model, spec) is not None)
        for spec in view(model).tensors
        if spec.quantization is not None and spec.quantization.scale.size
    }


@pytest.mark.slow
def test_the_counts_are_those_of_the_runtimes_that_run_the_file(made: dict[str, Any]) -> None:
    result = made["three"]
    held_back = [[sample[0]] for sample in parted([{0: row[0]} for row in images(16)])[1]]
    rows = [outputs(result.model, codes(result.model, held_back), profile) for profile in RUNTIMES]
    told = result.report.agreed.portability
    assert told.runtimes == RUNTIMES
    assert (told.samples, told.elements) == (4, rows[0].size)
    assert told.differing == tuple(int(np.count_nonzero(rows[0] != other)) for other in rows[1:])
    model = result.model
    names = [o.builtin for o in view(model).ops]
    assert [(o.index, o.op) for o in told.operators] == list(enumerate(names))


def test_an_operator_alone_differs_as_the_model_of_it_alone_does() -> None:
    g = FloatGraph(3)
    g.op("MUL", [g.given(1, 512), g.constant(g.random.normal(0, 1, (1, 512)))], {"fused_activation_function": 0})
    model = read(write(g.model()))
    random = np.random.default_rng(1)
    samples = [[random.normal(0, 1, (1, 512)).astype(np.float32)] for _ in range(16)]
    agreed = tflq.quantize(model, samples, SEVERAL).report.agreed
    assert agreed is not None
    for found in (agreed.before, agreed.portability):
        assert [o.elements for o in found.operators] == [4 * 512]
        assert found.operators[0].differing == found.differing
    assert sum(agreed.before.differing) > 0  # or this says nothing


@pytest.mark.slow
def test_scales_move_within_half_a_percent_and_fewer_elements_differ(made: dict[str, Any]) -> None:
    agreed = made["three"].report.agreed
    assert agreed.nudges
    assert agreed.portability.total < agreed.before.total
    before, after = scales(made["one"].model), scales(made["three"].model)
    assert before.keys() == after.keys()
    moved = set()
    for name, (scale, zero_point, constant) in before.items():
        new, new_zero_point, _ = after[name]
        np.testing.assert_array_equal(new_zero_point, zero_point)
        if not constant:
            assert abs(float(new[0]) / float(scale[0]) - 1) <= 0.005 + 1e-6
            if new[0] != scale[0]:
                moved.add(name)
    assert moved
    edges = view(made["one"].model)
    assert edges.tensors[edges.inputs[0]].name not in moved
    assert edges.tensors[edges.outputs[0]].name not in moved  # of SOFTMAX: 1/256


def test_the_nudged_model_is_what_its_scales_say(made: dict[str, Any]) -> None:
    """Biases are in units of the nudged scales; weights keep their codes."""
    models = [made[key].model for key in ("one", "three")]
    codes_by_name = [
        {
            s.name: (s.type.label, constant_of(m, s), s.quantization.scale)
            for s in view(m).tensors
            if constant_of(m, s) is not None and s.quantization is not None and s.quantization.scale.size
        }
        for m in models
    ]
    changed = 0
    for name, (kind, values, scale) in codes_by_name[0].items():
        _, other, other_scale = codes_by_name[1][name]
        if kind == "int8":
            np.testing.assert_array_equal(other, values)
        elif kind == "int32":
            real, other_real = values * scale.astype(np.float64), other * other_scale.astype(np.float64)
            assert np.all(np.abs(real - other_real) <= 0.51 * (scale + other_scale))
            changed += int(np.any(scale != other_scale))
    assert changed


def test_ranges_that_the_file_prescribes_stay() -> None:
    g = FloatGraph(5)
    x = g.op("LEAKY_RELU", [g.given(1, 256)], {"alpha": 0.3})[0]
    x = g.op("FAKE_QUANT", [x], {"min": -1.0, "max": 2.0, "num_bits": 8, "narrow_range": False})[0]
    g.op("LEAKY_RELU", [x], {"alpha": 0.3})
    model = read(write(g.model()))
    random = np.random.default_rng(2)
    samples = [[random.normal(0, 1, (1, 256)).astype(np.float32)] for _ in range(16)]
    result = tflq.quantize(model, samples, SEVERAL)
    agreed = result.report.agreed
    assert agreed is not None
    graph = view(result.model)
    prescribed = graph.tensors[graph.op(0).outputs[0]].quantization
    assert prescribed is not None
    assert prescribed.scale[0] == np.float32(3 / 255)
    assert agreed.before.operators[0].differing != (0, 0)  # there was reason to move it
    assert 0 not in {nudge.index for nudge in agreed.nudges}


def test_a_sample_loses_the_mean_of_what_it_loses_on_each_runtime() -> None:
    model = tflq.load(GOLDEN / "digits_mobilenet_float.tflite")
    given: list[Sample] = [{view(model).inputs[0]: row[0]} for row in images(24)]

    def score(recipe: Recipe) -> Score:
        task = Task(prepare(model), given, recipe, Methods())
        return judged(task, build(task), parted(given)[1])

    alone = [score(Recipe(profile=name)) for name in RUNTIMES]
    together = score(SEVERAL)
    assert together.differing > 0
    assert [s.differing for s in alone] == [0, 0, 0]
    for losses in ("divergences", "noises"):
        np.testing.assert_allclose(getattr(together, losses), np.mean([getattr(s, losses) for s in alone], axis=0))


def test_of_even_candidates_the_one_on_which_runtimes_agree_most_is_taken() -> None:
    losses = np.array([0.5, 0.6, 0.5, 0.6])

    def candidate(name: float, factor: float, differing: int, noise: float) -> Ranked:
        return Ranked(Methods(name), Score(losses * factor, 1.0, noise, 3, 4, losses * noise, differing))

    few, many, behind = candidate(0.1, 1.001, 3, 0.1), candidate(0.2, 1.0, 9, 0.001), candidate(0.3, 2.0, 0, 0.001)
    assert [c.methods.equalize for c in ranked([many, behind, few])] == [0.1, 0.2, 0.3]
    plain = [replace(c, score=replace(c.score, divergences=None)) for c in (many, few) if c.score is not None]
    assert [c.methods.equalize for c in ranked(plain)] == [0.2, 0.1]  # no distribution: noise a hundred times as great
    assert [c.methods.equalize for c in ranked([candidate(0.1, 1, 0, 0.1), candidate(0.2, 1, 0, 0.01)])] == [0.2, 0.1]


def test_a_runtime_that_does_not_take_the_model_is_named_with_the_operator() -> None:
    g = FloatGraph(1)
    g.op("GELU", [g.given(1, 8)], {"approximate": False}, version=1)
    samples = [[np.random.default_rng(k).normal(0, 1, (1, 8)).astype(np.float32)] for k in range(8)]
    several = replace(SEVERAL, candidates=(Methods(), Methods(0.5)))
    for recipe in (SEVERAL, several):
        with pytest.raises(ModelError, match=r"runtime tflm does not take the integer model .*GELU"):
            tflq.quantize(read(write(g.model())), samples, recipe)


def test_modes_with_floats_and_unknown_names_are_refused() -> None:
    with pytest.raises(OptionError, match="mode dynamic computes with floats"):
        Recipe(mode="dynamic", runtimes=("tflm",))
    with pytest.raises(UnknownNameError, match="tflmm"):
        changed_recipe(Recipe(), (), None, {}, "litert-xnnpack,tflmm")


def test_names_are_profiles_with_commas_the_first_of_which_refines() -> None:
    changed = changed_recipe(Recipe(), (), None, {}, "tflm, litert-xnn,litert-xnnpack")
    assert (changed.profile, changed.runtimes) == ("tflm", ("litert-xnnpack",))
    assert changed.judges == ("tflm", "litert-xnnpack")
    assert changed_recipe(Recipe(), (), None, {}, "tflm").runtimes == ()


def test_a_shape_in_the_file_does_not_fix_the_number_of_joined_samples() -> None:
    """The autoencoder reshapes to [1, 64]; joined samples were refused, alone and together."""
    path = GOLDEN / "digits_autoencoder_float.tflite"
    made = tflq.quantize(path, images(32), Recipe(runtimes=("tflm",)))
    assert made.report.agreed is not None
    found = made.report.agreed.portability
    held_back = [[sample[0]] for sample in parted([{0: row[0]} for row in images(32)])[1]]
    one, other = (
        outputs(made.model, codes(made.model, held_back[: found.samples]), profile) for profile in found.runtimes
    )
    assert found.elements == one.size
    assert found.differing == (int(np.count_nonzero(one != other)),)
