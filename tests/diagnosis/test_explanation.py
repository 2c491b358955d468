"""Mistakes planted by scalar code of these tests into a real model's tensors, then sought and named."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.dense_device import MODEL, dense
from tflq.comparison.evidence.dumps import Dump, load_dump
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.causes import Spots, places
from tflq.diagnosis.explanation import explain_operator
from tflq.diagnosis.findings import investigate
from tflq.diagnosis.localization import localize
from tflq.diagnosis.profile_fit import fit
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.explain import place_texts
from tflq.face.report.verbs.fit import fit_report
from tflq.model.ir import Model, view

Array = NDArray[Any]


@pytest.fixture(scope="module")
def model() -> Model:
    return load(MODEL)


@pytest.fixture(scope="module")
def clean(model: Model) -> dict[int, Array]:
    graph = view(model)
    rng = np.random.default_rng(7)
    sample = {t: rng.integers(-128, 128, graph.tensors[t].shape).astype(np.int8) for t in graph.inputs}
    return run(make_plan(model, PROFILES["litert-ref"]), sample, keep_all=True).values


def half_away(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def planted(model: Model, clean: dict[int, Array], tmp_path: Path, rounding: Any, **options: Any) -> tuple[Path, int]:
    """A dump of a device whose first FULLY_CONNECTED makes one mistake, and that operator's index."""
    graph = view(model)
    names = [o.builtin for o in graph.ops]
    index = names.index("FULLY_CONNECTED")
    operator = graph.op(index)
    x = clean[operator.inputs[0]].reshape(-1, graph.tensors[operator.inputs[1]].shape[1])
    values = dict(clean)
    values[operator.outputs[0]] = dense(model, index, x, rounding, **options).reshape(clean[operator.outputs[0]].shape)
    entries: Any = {str(t): v for t, v in values.items()}
    np.savez(tmp_path / "dump.npz", **entries)
    return tmp_path / "dump.npz", index


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rounding", "options", "cause"),
    [
        (math.floor, {}, "rounds towards minus infinity"),
        (math.trunc, {}, "rounds towards zero"),
        (half_away, {"bias_counts": False}, "bias missing"),
    ],
)
def test_a_planted_mistake_is_found_and_named(
    model: Model, clean: dict[int, Array], tmp_path: Path, rounding: Any, options: dict[str, Any], cause: str
) -> None:
    path, index = planted(model, clean, tmp_path, rounding, **options)
    dump = load_dump(model, path)
    found = localize(model, dump, PROFILES["litert-ref"])
    assert next(o.index for o in found if o.differs) == index
    explanation = explain_operator(OperatorCase(model, (dump,), index, PROFILES["litert-ref"]))
    names = [name for h in explanation.exact for name in (h.name, *h.also)]
    assert any(name.startswith(cause) for name in names), explanation


def test_a_mistake_beyond_the_library_stays_undetermined(model: Model, clean: dict[int, Array], tmp_path: Path) -> None:
    path, index = planted(model, clean, tmp_path, lambda v: half_away(v) ^ (half_away(v) & 4))
    explanation = explain_operator(OperatorCase(model, (load_dump(model, path),), index, PROFILES["litert-ref"]))
    assert explanation.verdict == "undetermined"
    assert not explanation.exact


def test_without_a_mistake_nothing_differs(model: Model, clean: dict[int, Array], tmp_path: Path) -> None:
    path, index = planted(model, clean, tmp_path, half_away)
    found = localize(model, load_dump(model, path), PROFILES["litert-ref"], "cumulative")
    assert [o.index for o in found if o.differs] == []
    assert (
        explain_operator(OperatorCase(model, (load_dump(model, path),), index, PROFILES["litert-ref"])).verdict
        == "same"
    )


def test_a_folder_of_npy_raw_and_c_files_is_read(model: Model, clean: dict[int, Array], tmp_path: Path) -> None:
    first, second, third = sorted(clean)[:3]
    np.save(tmp_path / f"{first}.npy", clean[first])
    clean[second].tofile(tmp_path / f"t{second}.bin")
    words = ", ".join(map(str, clean[third].reshape(-1).tolist()))
    (tmp_path / f"tensor_{third}.c").write_text(f"const int8_t out[] = {{ {words} }};  // one array\n")
    (tmp_path / "stranger.bin").write_bytes(b"abc")
    dump = load_dump(model, tmp_path)
    assert dump.unknown == ("stranger",)
    for tensor in (first, second, third):
        np.testing.assert_array_equal(dump.tensors[tensor], clean[tensor])


def test_a_dump_without_an_operators_inputs_is_computed_up_to_it(
    model: Model, clean: dict[int, Array], tmp_path: Path
) -> None:
    path, index = planted(model, clean, tmp_path, math.floor)
    graph = view(model)
    kept = {*graph.inputs, graph.op(index).outputs[0]}
    with np.load(path) as whole:
        entries: Any = {str(t): whole[str(t)] for t in kept}
    np.savez(tmp_path / "part.npz", **entries)
    dump = load_dump(model, tmp_path / "part.npz")
    found = localize(model, dump, PROFILES["litert-ref"])
    assert [o.index for o in found if o.differences] == [index]
    assert found[index].differs
    explanation = explain_operator(OperatorCase(model, (dump,), index, PROFILES["litert-ref"]))
    assert any("minus infinity" in name for h in explanation.exact for name in (h.name, *h.also))


def test_where_elements_sit_is_told() -> None:
    mask = np.zeros((1, 5, 5, 20), bool)
    mask[0, 0, 2, 17] = mask[0, 3, 4, 18] = True
    assert tuple(place_texts(places(mask))) == (
        "in 2 of 20 channels: 17, 18",
        "only in the channels beyond the last whole block of 16",
        "only in the channels beyond the last whole block of 8",
        "only at the border of the image",
    )
    assert places(np.ones((1, 5, 5, 20), bool)) == Spots(20)


def test_fit_names_no_profile_where_nothing_is_compared(model: Model, clean: dict[int, Array]) -> None:
    only_inputs = Dump("", {t: clean[t] for t in view(model).inputs})
    (line,) = lines_of(fit_report(fit(model, [only_inputs])))
    assert line.text.startswith("Nothing could be compared")


@pytest.mark.slow
def test_what_reproduces_one_sample_has_to_reproduce_the_others(model: Model, clean: dict[int, Array]) -> None:
    graph = view(model)
    names = [o.builtin for o in graph.ops]
    index = names.index("FULLY_CONNECTED")
    operator = graph.op(index)
    plan = make_plan(model, PROFILES["litert-ref"])
    dumps = []
    for seed in range(3):
        given = {
            t: np.random.default_rng(seed).integers(-128, 128, clean[t].shape).astype(np.int8) for t in graph.inputs
        }
        values = dict(run(plan, given, keep_all=True).values)
        rows = values[operator.inputs[0]].reshape(-1, graph.tensors[operator.inputs[1]].shape[1])
        made = dense(model, index, rows, math.floor).reshape(values[operator.outputs[0]].shape)
        dumps.append(Dump("", {**values, operator.outputs[0]: made}))
    profile = PROFILES["litert-ref"]
    one, all_of_them = (
        explain_operator(OperatorCase(model, tuple(some), index, profile)) for some in (dumps[:1], dumps)
    )
    assert all_of_them.elements == 3 * one.elements
    assert any("minus infinity" in name for h in all_of_them.exact for name in (h.name, *h.also))
    wrong = Dump("", {**dumps[1].tensors, operator.outputs[0]: dumps[1].tensors[operator.outputs[0]] ^ np.int8(1)})
    assert not explain_operator(OperatorCase(model, (dumps[0], wrong), index, profile)).exact


@pytest.mark.slow
def test_inputs_that_a_dump_lacks_are_noted(model: Model, clean: dict[int, Array], tmp_path: Path) -> None:
    path, index = planted(model, clean, tmp_path, math.floor)
    graph = view(model)
    dump = load_dump(model, path)
    kept = {*graph.inputs, graph.op(index).outputs[0]}
    part = Dump("", {t: value for t, value in dump.tensors.items() if t in kept})
    found = investigate(model, [part], PROFILES["litert-ref"]).explanation
    assert found is not None
    assert found.assumed == (graph.op(index).inputs[0],)
    whole = investigate(model, [dump], PROFILES["litert-ref"]).explanation
    assert whole is not None
    assert whole.assumed == ()
