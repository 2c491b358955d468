"""Float tails: detectors whose output joins boxes in pixels and scores keep both."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result as Done

import tflq
from support import commands
from support.detectors import CLASSES, detector, samples
from tflq.comparison.inspection.layout import layout_of
from tflq.errors import ModelError, OptionError, UnknownNameError
from tflq.model.flatbuf import write
from tflq.model.ir import TensorType, view
from tflq.quantization.judge.tails import APART, NONE
from tflq.quantization.recipe import PRESETS, Recipe, RecipeBudget, Spared
from tflq.quantization.result import Result
from tflq.quantization.scheme.float_graph import prepare
from tflq.quantization.scheme.scheme import tail_region
from tflq.quantization.source import split_outputs

JOINT = ("joint", "last", "corners", "scores-first", "v5")


def quantized(form: str, **fields: object) -> Result:
    return tflq.quantize(detector(form), samples(), replace(Recipe(), **fields))  # type: ignore[arg-type]


def types(model: tflq.Model) -> list[str]:
    graph = view(model)
    return [TensorType(graph.tensors[t].type).label for t in graph.outputs]


def worst(result: Result, form: str) -> float:
    """Return the largest error of scores over calibration samples, by tflq's interpreter."""
    (places,) = (group.places for group in layout_of(view(detector(form))).groups if group.is_scores)
    scores = []
    for model in (detector(form), result.model):
        runner = tflq.Interpreter(model_content=tflq.save(model))
        runner.allocate_tensors()
        given, (taken, *_) = runner.get_input_details()[0], runner.get_output_details()
        found = []
        for picture in samples(8):
            value = picture[None]
            if given["dtype"] != np.float32:
                scale, zero = given["quantization"]
                value = np.clip(np.round(value / scale) + zero, -128, 127).astype(np.int8)
            runner.set_tensor(given["index"], value)
            runner.invoke()
            out = np.asarray(runner.get_tensor(taken["index"]), np.float64)
            if taken["dtype"] != np.float32:
                out = (out - taken["quantization"][1]) * taken["quantization"][0]
            found.append(out.reshape(-1)[places])
        scores.append(np.stack(found))
    assert 0.5 < scores[0].max() <= 1
    return float(np.abs(scores[0] - scores[1]).max())


@pytest.mark.parametrize("form", JOINT)
def test_a_joint_output_gets_a_float_tail_by_default(form: str) -> None:
    result = quantized(form)
    tails = result.report.tails
    assert tails is not None
    assert tails.taken.startswith("float tail from")
    assert types(result.model) == ["float32"]
    plain = next(tail for tail in tails.tried if tail.name == NONE)
    assert plain.ratios["scores"] < 5 < 20 < tails.best.ratios["scores"]
    assert tails.best.loss < plain.loss / 4
    assert worst(result, form) < 0.1
    assert {remark.text.partition(":")[0] for remark in result.report.kept_float} == {"float tail"}


def test_without_a_tail_the_scores_are_lost() -> None:
    result = quantized("joint", float_tail="none")
    assert result.report.tails is None
    assert types(result.model) == ["int8"]
    assert worst(result, "joint") > 0.3


def test_integer_outputs_that_are_asked_for_stay_integer() -> None:
    result = quantized("joint", output_type="int8")
    assert types(result.model) == ["int8"]
    assert result.report.tails is None or not result.report.tails.operators


def test_a_tail_is_the_cheapest_that_suffices() -> None:
    tails = quantized("joint").report.tails
    assert tails is not None
    longest = max((tail for tail in tails.tried if tail.name.startswith("float")), key=lambda tail: tail.operators)
    assert tails.best.loss <= 1.05 * longest.loss
    assert tails.best.operators <= longest.operators
    assert APART in {tail.name for tail in tails.tried}


def test_a_named_tail_is_taken_without_trials() -> None:
    model = detector("joint")
    last = len(view(model).ops) - 1
    result = quantized("joint", float_tail=str(last))
    assert [remark.index for remark in result.report.kept_float] == [last]
    assert result.report.tails is not None
    assert result.report.tails.tried == ()
    with pytest.raises(UnknownNameError):
        quantized("joint", float_tail="no_such_tensor")


def test_split_outputs_have_scales_of_their_own() -> None:
    result = quantized("joint", split_outputs=True)
    assert types(result.model) == ["int8", "int8"]
    assert result.report.tails is None
    shapes = [view(result.model).tensors[t].shape for t in view(result.model).outputs]
    assert shapes == [(1, 4, 64), (1, CLASSES, 64)]
    for form in ("apart", "v5"):
        with pytest.raises(ModelError, match="split"):
            split_outputs(detector(form))


def test_options_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(OptionError, match="float_tail"):
        Recipe(float_tail="3", output_type="int8")
    with pytest.raises(OptionError, match="portable"):
        Recipe(split_outputs=True, portable=("all",))


def test_models_without_weights_have_no_tail() -> None:
    assert tail_region(prepare(detector("joint")))
    bare = tflq.load(_without_weights())
    assert tail_region(prepare(bare)) == frozenset()


def _without_weights() -> bytes:
    from support.graphs import Graph, Op, build
    from support.single_op import T

    join = ("ConcatenationOptions", {"axis": 1, "fused_activation_function": 0})
    tensors = [T("float32", (1, 4, 8)), T("float32", (1, 3, 8)), T("float32", (1, 3, 8)), T("float32", (1, 7, 8))]
    ops = [Op("LOGISTIC", (1,), (2,)), Op("CONCATENATION", (0, 2), (3,), join)]
    return build(Graph(tensors, (0, 1), (3,), ops))


def test_a_resumed_run_tries_no_tail_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.quantization.judge import tails

    journal = tmp_path / "run.journal"
    recipe = Recipe()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tflq.quantization.pipeline.choose", stop)
    with pytest.raises(KeyboardInterrupt):
        tflq.quantize(detector(), samples(), recipe, resume=journal)
    monkeypatch.undo()
    built: list[object] = []
    original = tails.build
    monkeypatch.setattr(tails, "build", lambda task: built.append(task) or original(task))
    result = tflq.quantize(detector(), samples(), recipe, resume=journal)
    assert built == []
    assert tflq.save(result.model) == tflq.save(quantized("joint").model)


def test_the_verb_reports_the_tail_and_its_alternatives(tmp_path: Path) -> None:
    (tmp_path / "float.tflite").write_bytes(write(detector("joint")))
    (tmp_path / "two.yaml").write_text("candidates: [{}, {equalize: 0.5}]")
    np.save(tmp_path / "x.npy", samples(16))
    words = [
        "quantize",
        tmp_path / "float.tflite",
        "--calibration",
        tmp_path / "x.npy",
        "--recipe",
        tmp_path / "two.yaml",
    ]

    def quantize(*more: object) -> Done:
        return commands.tflq(*[*words, "-f", "-o", tmp_path / "made.tflite", *more])

    done = quantize("--json", "--html", tmp_path / "page.html")
    assert done.exit_code in (0, 5), done.output
    document = json.loads(done.stdout)
    names = [tail["name"] for tail in document["tails"]["tried"]]
    assert NONE in names
    assert document["tails"]["taken"] in names
    assert set(document["ranking"][0]["ratios"]) == {"boxes", "scores"}
    assert "Treatments of the outputs" in (tmp_path / "page.html").read_text(encoding="utf-8")
    done = quantize()
    assert "float tail: " in done.stdout
    assert "--split-outputs" in done.stdout
    done = quantize("--float-tail", "none")
    assert "float tail: " not in done.stdout
    assert "part " in done.stdout.splitlines()[0]
    assert "Next: tflq verify" in quantize("--split-outputs").stdout


def test_a_budget_counts_the_worst_part() -> None:
    """The whole output has 27 dB, its scores none: a bound of 20 dB spares operators although the whole has more."""
    recipe = Recipe(
        float_tail="none", budget=RecipeBudget(least_sqnr=8.0, spared=Spared.FLOAT), output_type=TensorType.FLOAT32
    )
    result = tflq.quantize(detector("joint"), samples(), recipe)
    assert result.report.spared
    assert min(result.report.comparison.figures.ratios.values()) >= 8.0
    assert result.report.comparison.leading == min(result.report.comparison.figures.ratios.values())


def test_requantizing_adds_no_tail() -> None:
    """Biases alone may change: the codes of a joint output stay."""
    integer = quantized("apart", float_tail="none").model
    again = tflq.quantize(integer, samples(), Recipe(), requantize=True)
    assert again.report.tails is None
    assert [op.name for op in view(again.model).ops] == [op.name for op in view(integer).ops]
    assert types(again.model) == types(integer)


@pytest.mark.parametrize("mode", ["uint8", "int8x4", "dynamic", "weights"])
def test_modes_with_integer_activations_have_tails(mode: str) -> None:
    result = quantized("joint", mode=mode)
    tails = result.report.tails
    assert (tails is not None and bool(tails.operators)) == (mode in ("uint8", "int8x4"))
    assert types(result.model) == ["float32"]


def test_an_interrupted_search_keeps_the_tail_and_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.quantization.judge import contest

    original = contest.Leader.note
    counted: list[object] = []

    def note(leader: contest.Leader, *outcome: object) -> None:
        original(leader, *outcome)  # type: ignore[arg-type]
        counted.append(outcome)
        if len(counted) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(contest.Leader, "note", note)
    recipe = replace(PRESETS["fast"], float_tail="auto")
    result = tflq.quantize(detector(), samples(), recipe, keep_best=True)
    assert result.report.interrupted
    assert result.report.recipe == recipe
    assert types(result.model) == ["float32"]
    assert min(result.report.comparison.figures.ratios.values()) > 10
