"""Which profiles a dump fits: ties, mixes, and nothing at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import suites
from support.dense_device import array_of
from support.single_op import T, build
from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.verification.localization import Localizer, alone
from tflq.diagnosis.apart import profiles_apart
from tflq.diagnosis.localization import localize
from tflq.diagnosis.mistakes.device import computation
from tflq.diagnosis.profile_fit import FitVerdict, candidates, fit
from tflq.diagnosis.runtimes import compatible
from tflq.engine.api.files import load
from tflq.engine.api.many import part_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES, by_name
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.fit import fit_document, fit_report
from tflq.model.flatbuf import read
from tflq.model.ir import Model, view
from tflq.model.surgery.cut import cut

Array = NDArray[Any]
FC = ("FullyConnectedOptions", {"fused_activation_function": 0})
MODELS = suites.ROOT / "golden" / "models"
SINGLE = suites.ROOT / "golden" / "singleop" / "models"


def device(model: Model, profiles: Mapping[str, str], otherwise: str) -> dict[int, Array]:
    """All tensors of a run in which each type of operator is computed as under a profile of its own."""
    graph = view(model)
    rng = np.random.default_rng(5)
    values: dict[int, Array] = {
        t: rng.integers(-128, 128, graph.tensors[t].shape).astype(np.int8) for t in graph.inputs
    }
    for index, operator in enumerate(graph.ops):
        name = profiles.get(operator.builtin, otherwise)
        part = part_of(model, (index,), values)
        values |= part.run(part.plan(by_name(name)))
    return values


@pytest.fixture(scope="module")
def mobilenet() -> Model:
    return load(MODELS / "digits_mobilenet_int8.tflite")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tflm+single-rounding", "tflm-cmsis-nn-single", "litert-xnnpack"])
def test_a_profile_or_its_variant_is_among_those_that_fit(mobilenet: Model, name: str) -> None:
    found = fit(mobilenet, [Dump("", device(mobilenet, {}, name))])
    assert found.verdict == FitVerdict.FITS
    assert name in found.fitting
    assert found.unexplained == found.unknown == ()
    assert all(name in names for names in found.mix.values())


def test_of_equals_the_nearest_to_what_its_user_runs_is_the_best() -> None:
    model = load(SINGLE / "softmax_i8_1.tflite")
    dump = Dump("", device(model, {}, "tflm"))
    for base in ("tflm", "litert-ref", "tflite-2.7-ref"):
        found = fit(model, [dump], base)
        assert found.best == found.fitting[0] == base
        assert {"tflm", "litert-ref", "tflite-2.7-ref"} <= set(found.ties)


def test_a_mix_is_told_by_type_of_operator(mobilenet: Model) -> None:
    dump = Dump("", device(mobilenet, {"CONV_2D": "litert-opt", "DEPTHWISE_CONV_2D": "litert-xnnpack"}, "tflm"))
    found = fit(mobilenet, [dump])
    assert found.verdict == FitVerdict.MIX
    assert found.fitting == found.unknown == ()
    assert "litert-opt" in found.mix["CONV_2D"]
    assert "litert-xnnpack" in found.mix["DEPTHWISE_CONV_2D"]
    assert {op for ops in found.parts.values() for op in ops} == set(found.mix)


def test_nothing_fits_an_arithmetic_that_no_profile_has() -> None:
    model = load(SINGLE / "softmax_i8_1.tflite")
    values = device(model, {}, "litert-ref")
    output = view(model).outputs[0]
    found = fit(model, [Dump("", {**values, output: values[output] ^ 1})])
    assert (found.verdict, found.fitting, found.unknown) == (FitVerdict.NONE, (), (0,))


def test_too_few_results_name_no_profile(mobilenet: Model) -> None:
    """Only the outputs of one run: ten codes, most of them at the end of their type."""
    values = device(mobilenet, {}, "litert-opt")
    graph = view(mobilenet)
    found = fit(mobilenet, [Dump("", {t: values[t] for t in (*graph.inputs, *graph.outputs)})])
    assert found.verdict == FitVerdict.UNTOLD
    assert (len(found.compared), len(found.operators), found.elements) == (1, 20, 10)
    assert found.informative < found.needed
    document = fit_document(found)
    assert (document["best"], document["verdict"]) == (None, "cannot tell")
    assert document["compared"]["operators"] == 1
    assert document["compared"]["of"] == 20
    said = [line.text for line in lines_of(fit_report(found))]
    assert said[0].startswith("Cannot tell: ")
    assert "every operator" not in said[0]
    assert said[1].startswith("  compared: 1 of 20 operators, 10 elements")


def test_operators_that_were_not_compared_are_said(mobilenet: Model) -> None:
    values = device(mobilenet, {}, "tflm")
    graph = view(mobilenet)
    kept = {*graph.inputs, graph.op(0).outputs[0], graph.op(1).outputs[0]}
    first = next(iter(lines_of(fit_report(fit(mobilenet, [Dump("", {t: values[t] for t in kept})])))))
    assert "explains the 2 operators compared of 20" in first.text


def test_what_a_runtime_without_a_profile_computes_names_no_profile() -> None:
    """A float convolution, rounded half to even: the bits of XNNPACK's profiles, and of TVM."""
    model = load(SINGLE / "tie_fc_i8_0.tflite")
    graph = view(model)
    rng = np.random.default_rng(5)
    (fed,) = graph.inputs
    x = rng.integers(-128, 128, graph.tensors[fed].shape).astype(np.int8)
    reals = {t: q for t in range(len(graph.tensors)) if (q := graph.tensors[t].quantization) is not None}
    _, w, b = graph.op(0).inputs
    weights = array_of(model, graph.tensors[w], np.int8).astype(np.float64)
    bias = array_of(model, graph.tensors[b], np.int32).astype(np.float64)
    scale = reals[fed].scale.astype(np.float64) * reals[w].scale
    (made,) = graph.outputs
    sums = (x.reshape(-1, weights.shape[1]) - reals[fed].zero_point) @ weights.T + bias
    codes = np.rint(sums * scale / reals[made].scale) + reals[made].zero_point
    output = np.clip(codes, -128, 127).astype(np.int8).reshape(graph.tensors[made].shape)
    found = fit(model, [Dump("", {fed: x, made: output})])
    assert found.foreign
    assert any("xnnpack" in name for name in found.fitting)
    assert (found.verdict, fit_document(found)["best"]) == (FitVerdict.UNTOLD, None)
    assert fit_document(found)["unexplained"] == [0]
    assert "TVM" in next(iter(lines_of(fit_report(found)))).text


def test_runtimes_are_named_by_package_and_range_of_versions() -> None:
    names = ("tflite-2.7-ref", "tflite-2.11-ref", "litert-ref", "tflite-2.9-ref", "tflm+single-rounding")
    old, new = compatible(map(by_name, names))
    assert (old.package, old.versions) == ("tflite-runtime", ("2.7.0", "2.9.1", "2.11.0"))
    assert (new.package, new.resolver) == ("ai-edge-litert", "BUILTIN_REF")


def test_inputs_tell_profiles_apart_that_fit() -> None:
    model = load(SINGLE / "tie_add_i8_0.tflite")
    graph = view(model)
    zeros = {t: np.zeros(graph.tensors[t].shape, np.int8) for t in graph.inputs}
    dump = Dump("", run(make_plan(model, by_name("tflm")), zeros, keep_all=True).values)
    names = ("tflm", "tflm-cmsis-nn-single", "tflm-esp-nn")
    assert set(names) <= set(fit(model, [dump]).fitting)
    told = profiles_apart(model, dump, names)
    assert (told.causes, told.groups) == (("tflm = tflm-esp-nn", "tflm-cmsis-nn-single"), ((0,), (1,)))
    trial = told.trials[-1]
    for name, expected in zip(("tflm", "tflm-cmsis-nn-single"), trial.expected, strict=True):
        made = run(make_plan(model, by_name(name)), dict(zip(graph.inputs, trial.inputs, strict=True))).values
        np.testing.assert_array_equal(expected[graph.outputs[0]], made[graph.outputs[0]])


@pytest.mark.parametrize("path", ["tie_conv_i8_0", "mean_i8_7", "tie_fc_i8_0", "mul_i16_scales_0", "sum_i8_1"])
def test_profiles_that_are_said_to_compute_alike_give_the_same_bits(path: str) -> None:
    model = load(SINGLE / f"{path}.tflite")
    dump = Dump("", device(model, {}, "litert-ref") if "i16" not in path else sixteen(model))
    part = alone(model, 0)
    columns: dict[Any, set[Any]] = {}
    for profile in candidates(PROFILES["litert-ref"]):
        (found,) = localize(model, dump, profile)
        columns.setdefault(computation(part, profile), set()).add(tuple(sorted(found.differences.items())))
    assert len(columns) > 1
    assert all(len(different) == 1 for different in columns.values())


def sixteen(model: Model) -> dict[int, Array]:
    graph = view(model)
    rng = np.random.default_rng(5)
    fed = {t: rng.integers(-(2**15), 2**15, graph.tensors[t].shape).astype(np.int16) for t in graph.inputs}
    return dict(run(make_plan(model, by_name("litert-ref")), fed, keep_all=True).values)


@pytest.mark.parametrize(("bits", "is_explained"), [(9, False), (19, True)])
def test_a_promise_that_is_not_measured_explains_no_narrower_type(bits: int, is_explained: bool) -> None:
    """Profiles with other kernels are near by 2**-8; a device that rounds to few bits has none of their bits."""
    rng = np.random.default_rng(3)
    weights = T("float32", (5, 32), value=rng.normal(size=(5, 32)).astype(np.float32))
    model = read(build("FULLY_CONNECTED", [T("float32", (1, 32)), weights, None], [T("float32", (1, 5))], FC))
    x = rng.normal(size=(1, 32)).astype(np.float32)
    mantissa, exponent = np.frexp(x @ np.asarray(weights.value).T)
    rounded = np.ldexp(np.rint(mantissa * 2.0**bits) / 2.0**bits, exponent).astype(np.float32)
    fed, made = view(model).inputs[0], view(model).outputs[0]
    found = fit(model, [Dump("", {fed: x, made: rounded})])
    assert bool(found.fitting) is is_explained


def test_profiles_take_an_operator_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles that compute equal bits share one comparison of each operator, however many follow it."""
    model, _ = cut(load(MODELS / "digits_autoencoder_int8.tflite"), (1, 2))
    dump = Dump("", device(model, {}, "litert-ref"))
    compare, asked = Localizer._compared, list[int]()
    monkeypatch.setattr(Localizer, "_compared", lambda *a, **k: asked.append(a[1].index) or compare(*a, **k))
    fit(model, [dump])
    assert 2 < len(asked) < len(candidates(by_name("litert-ref")))
