"""Growth of a difference, the worked element and the order of the first screen, on a dump of another profile."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.results import CompareMode, Verdict
from tflq.diagnosis.amplification import amplify
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.findings import Findings, investigate, work_out
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.face.report.verbs.element import parting_steps
from tflq.face.report.verbs.explain import choice_texts
from tflq.model.ir import Model, view

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
REFERENCE = by_name("litert-ref")
Values = dict[int, Any]


@pytest.fixture(scope="module")
def model() -> Model:
    return load(MODEL)


@pytest.fixture(scope="module")
def values(model: Model) -> Values:
    """A run of the reference on a random image."""
    graph = view(model)
    spec = graph.tensors[graph.inputs[0]]
    image = np.random.default_rng(0).random(spec.shape, np.float32)
    if np.dtype(spec.type.label) != np.float32:
        image = np.random.default_rng(0).integers(-128, 128, spec.shape).astype(spec.type.label)
    return run(make_plan(model, REFERENCE), {graph.inputs[0]: image}, keep_all=True).values


def with_fault(model: Model, values: Values, index: int, amount: int) -> tuple[Values, Values]:
    """The device's tensors, whose operator `index` gave `amount` more in its first element; and only that result."""
    tensor = view(model).op(index).outputs[0]
    wrong = values[tensor].copy()
    wrong.flat[0] = np.clip(int(wrong.flat[0]) + amount, -128, 127)
    return {**values, tensor: wrong}, {tensor: wrong}


def test_growth_is_what_a_run_from_the_faulty_tensor_gives(model: Model, values: Values) -> None:
    """The chain after operator 2 has no second path up to operator 3: a fault is carried on by the kernels alone."""
    graph = view(model)
    device, fault = with_fault(model, values, 2, 100)
    growth = amplify(OperatorCase(model, (Dump("", device),), 2, REFERENCE))
    assert [spread.index for spread in growth.spreads] == list(range(3, len(graph.ops)))
    state = carried_on(model, {**values, **fault}, 2)
    for operator, spread in zip(graph.ops[3:], growth.spreads, strict=True):
        apart = state[operator.outputs[0]].astype(np.int64) - values[operator.outputs[0]]
        assert spread.difference.differing == np.count_nonzero(apart)
        assert spread.difference.largest == np.abs(apart).max(initial=0)
    (choice,) = growth.choices
    before, after = (v[graph.outputs[0]].argmax() for v in (values, state))
    assert choice.flipped == int(before != after)


def carried_on(model: Model, values: Values, index: int) -> Values:
    """What the kernels behind operator `index` make of `values`, step by step."""
    plan, state = make_plan(model, REFERENCE), dict(values)
    for step in plan.steps[index + 1 :]:
        assert step.prepared is not None
        inputs = [state.get(t, plan.constants[t]) for t in step.inputs]
        state[step.outputs[0]] = np.asarray(step.prepared.eval(step.prepared.data, *inputs))
    return state


def test_each_of_several_differences_is_followed_alone(model: Model, values: Values) -> None:
    """A device with two faults: what the first one does, and then the second one besides."""
    graph = view(model)
    one = carried_on(model, with_fault(model, values, 2, 100)[0], 2)
    both = carried_on(model, with_fault(model, one, 18, 60)[0], 18)
    found = investigate(model, [Dump("", both)], REFERENCE)
    assert [o.index for o in found.differing] == [2, 18]
    growths = sorted(found.growths, key=lambda growth: growth.index)
    for growth, before, after in zip(growths, (values, one), (one, both), strict=True):
        made = [graph.op(i).outputs[0] for i in range(growth.index + 1, len(graph.ops))]
        apart = [np.abs(after[t].astype(np.int64) - before[t]) for t in made]
        assert len(growth.reached) == sum(bool(a.any()) for a in apart)
        largest = growth.farthest.difference.largest if growth.farthest else 0
        assert largest == max(int(a.max()) for a in apart)
        (choice,) = growth.choices
        assert choice.flipped == int(before[graph.outputs[0]].argmax() != after[graph.outputs[0]].argmax())


def test_the_last_operators_difference_may_flip_the_choice(model: Model, values: Values) -> None:
    output, last = view(model).outputs[0], len(view(model).ops) - 1
    wrong = values[output][:, ::-1].copy()
    growth = amplify(OperatorCase(model, (Dump("", {**values, output: wrong}),), last, REFERENCE))
    (choice,) = growth.choices
    assert choice.first == (0, int(values[output].argmax()), int(wrong.argmax()))
    (text,) = choice_texts(growth)
    assert "flips in 1 of 1 rows" in text


def test_a_dump_without_what_later_operators_need_says_so(model: Model, values: Values) -> None:
    operator = view(model).op(3)
    device, _ = with_fault(model, values, 3, 5)
    kept = {t: device[t] for t in (operator.inputs[0], operator.outputs[0])}
    growth = amplify(OperatorCase(model, (Dump("", kept),), 3, REFERENCE))
    assert "neither in the dump nor can be computed" in growth.reason
    assert not growth.spreads


def test_the_first_differing_element_is_worked_out(model: Model, values: Values) -> None:
    device, _ = with_fault(model, values, 3, 7)
    found = investigate(model, [Dump("", device)], REFERENCE)
    assert isinstance(found, Findings)
    assert (found.verdict, found.first.index if found.first else None) == ("differs", 3)
    assert found.element is not None
    assert found.element.trace.index == (0, 0, 0, 0)
    tensor = view(model).op(3).outputs[0]
    assert found.element.got == device[tensor].flat[0]
    assert found.element.trace.working.steps[-1].value == values[tensor].flat[0]


def test_an_element_is_worked_out_where_nothing_differs(model: Model, values: Values) -> None:
    found = investigate(model, [Dump("", dict(values))], REFERENCE, element=(0, 1))
    assert found.verdict == "same"
    assert found.element is not None
    assert found.element.got == found.element.trace.expected == values[view(model).outputs[0]][0, 1]


def test_end_to_end_the_cause_may_lie_before(model: Model, values: Values) -> None:
    device, _ = with_fault(model, values, 2, 100)
    state = carried_on(model, device, 2)
    found = investigate(model, [Dump("", state)], REFERENCE, op=3, mode=CompareMode.CUMULATIVE)
    assert found.operators[3].differs
    assert found.explanation is not None
    assert found.explanation.verdict == "same"
    first = investigate(model, [Dump("", state)], REFERENCE).first
    assert first is not None
    assert first.index == 2


def test_the_sample_that_differs_most_is_worked_out(model: Model, values: Values) -> None:
    device, _ = with_fault(model, values, 3, 7)
    found = investigate(model, [Dump("", dict(values)), Dump("", device)], REFERENCE)
    assert (found.sample, found.first.index if found.first else None) == (1, 3)
    assert found.element is not None
    assert found.element.got != found.element.trace.expected


def test_a_mistake_is_worked_out_beside_the_profile(model: Model, values: Values) -> None:
    """A device that cuts the fraction off: its sums are the profile's own, taken out of the profile's steps."""
    tensor = view(model).op(18).outputs[0]
    wrong = values[tensor].copy()
    for index in np.ndindex(wrong.shape):
        worked = work_out(model, {t: values[t] for t in view(model).inputs}, REFERENCE, index, 18)
        steps = {step.name: step.value for step in worked.trace.working.steps}
        zero_point = steps["output zero point added"] - steps["rounded half away from zero"]
        wrong[index] = np.clip(math.trunc(steps["multiplied in float64"]) + zero_point, -128, 127)
    found = investigate(model, [Dump("", {**values, tensor: wrong})], REFERENCE, op=18)
    assert found.element is not None
    assert found.element.other is not None
    assert found.element.other.working.steps[-1].value == found.element.got
    ours, theirs = parting_steps(found.element) or (None, None)
    assert ours is not None
    assert theirs is not None
    assert abs(int(ours.value) - int(theirs.value)) == 1
    assert ours.name == "rounded half away from zero"


def said(*arguments: str) -> str:
    return tflq("explain", MODEL, *arguments).stdout


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("dump") / "dump.npz")
    arguments = ["run", str(MODEL), "--profile", "litert-opt", "--all-tensors", "-o", path]
    assert tflq(*arguments).exit_code == 0
    return path


@pytest.mark.slow
def test_the_first_screen_keeps_its_order(dump: str) -> None:
    text = said("--dump", dump)
    marks = ["DIFFERS ", "First divergent operator: ", "elements differ, by up to", "Cause", "Element [", "Next: tflq "]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "parts from it at" in text
    assert len(text[: places[-1]].splitlines()) < 40


def test_an_element_without_a_dump(tmp_path: Path) -> None:
    document = json.loads(said("--element", "0,3", "--op", "18", "--json"))
    validate(document, "element")
    assert (document["element"]["got"], document["element"]["operator"]) == (None, 18)
    assert document["element"]["steps"][-1]["value"] == document["element"]["expected"]
    assert len(document["element"]["taps"]) == 64  # all of them; text shows the first and the last
    text = said("--element", "0,3", "--op", "18")
    assert "sum of products" in text
    assert "got" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --dump"),
        (("--element", "0,x"), "is not an index"),
        (("--element", "0,99"), "does not lie in the output"),
        (("--element", "0,0", "--op", "99"), "the model has operators 0 to"),
    ],
)
def test_misuse_is_told(arguments: tuple[str, ...], message: str) -> None:
    done = tflq("explain", MODEL, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_outputs_alone_that_agree_are_the_same(model: Model, values: Values) -> None:
    """Inner tensors that were not given leave nothing open; with some of them given, the others do."""
    graph = view(model)
    ends = {t: values[t] for t in (*graph.inputs, *graph.outputs)}
    for mode in CompareMode:
        found = investigate(model, [Dump("", ends)], REFERENCE, mode=mode)
        assert (found.verdict, found.is_of_outputs) == (Verdict.SAME, True), mode
    inner = graph.op(3).outputs[0]
    assert investigate(model, [Dump("", {**ends, inner: values[inner]})], REFERENCE).verdict == Verdict.INCOMPLETE
    wrong = {**ends, graph.outputs[0]: values[graph.outputs[0]] ^ 1}
    assert investigate(model, [Dump("", wrong)], REFERENCE).verdict == Verdict.DIFFERS
    without = investigate(model, [Dump("", {t: ends[t] for t in graph.outputs})], REFERENCE)
    assert (without.verdict, without.is_of_outputs) == (Verdict.INCOMPLETE, False)
