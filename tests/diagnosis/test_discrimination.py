"""Inputs that tell causes apart: what each cause gives is held against scalar code."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from support.commands import tflq
from support.dense_device import MODEL, array_of, dense, parameters
from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.inputs.read import make_inputs
from tflq.diagnosis.apart import discriminate
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.hypotheses import hypotheses
from tflq.diagnosis.localization import operator_alone
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.face.cli.main import cli
from tflq.model.ir import Model, view

ROUNDINGS: dict[str, Callable[[float], int]] = {
    "rounds towards minus infinity, in float64": math.floor,
    "rounds half up, in float64": lambda value: math.floor(value + 0.5),
}


def explained(model: Model, dump: Dump, index: int, *names: str) -> Explanation:
    profile = PROFILES["litert-ref"]
    known = {h.name: h for h in hypotheses(operator_alone(model, dump, index, profile), profile)}
    return Explanation(index, profile.name, 0, 1, tuple(Cause((known[name],), 1, 1) for name in names))


def test_each_cause_gives_what_scalar_code_gives() -> None:
    model, profile = load(MODEL), PROFILES["litert-ref"]
    graph = view(model)
    index = next(i for i, o in enumerate(graph.ops) if o.builtin == "FULLY_CONNECTED")
    plan = make_plan(model, profile)
    given = {t: np.zeros(graph.tensors[t].shape, np.int8) for t in graph.inputs}
    dump = Dump("", run(plan, given, keep_all=True).values)
    told = discriminate(model, dump, explained(model, dump, index, *ROUNDINGS), profile)
    assert told.of_model
    assert told.groups == ((0,), (1,))
    (trial,) = told.trials
    before = run(plan, dict(zip(graph.inputs, trial.inputs, strict=True)), keep_all=True).values
    operator = graph.op(index)
    rows = before[operator.inputs[0]].reshape(-1, graph.tensors[operator.inputs[1]].shape[1])
    for values, rounding in zip(trial.expected, ROUNDINGS.values(), strict=True):
        (got,) = values.values()
        np.testing.assert_array_equal(got.reshape(len(rows), -1), dense(model, index, rows, rounding))


def test_causes_that_are_one_are_not_told_apart() -> None:
    model, profile = load(MODEL), PROFILES["litert-ref"]
    graph = view(model)
    values = run(
        make_plan(model, profile), {t: np.ones(graph.tensors[t].shape, np.int8) for t in graph.inputs}, keep_all=True
    )
    dump = Dump("", values.values)
    same = explained(model, dump, 1, "rounds half to even, in float64", "rounds half away from zero, in float64")
    told = discriminate(model, dump, same, profile)
    assert told.trials == ()
    assert told.groups == ((0, 1),)


def test_a_batch_holds_inputs_on_which_rare_differences_show() -> None:
    """Rounding once and twice differ by an element in thousands: too few for twelve inputs of ten outputs each."""
    model, profile = load(MODEL.with_name("digits_mobilenet_int8.tflite")), PROFILES["litert-ref"]
    index = len(view(model).ops) - 2
    while view(model).op(index).builtin != "FULLY_CONNECTED":
        index -= 1
    graph = view(model)
    image = {t: np.ones(graph.tensors[t].shape, np.int8) for t in graph.inputs}
    dump = Dump("", run(make_plan(model, profile), image, keep_all=True).values)
    told = discriminate(
        model, dump, explained(model, dump, index, "rounds half up, in fixed point", "rounds twice"), profile
    )
    assert not told.of_model
    assert told.groups == ((0,), (1,))
    (trial,) = told.trials
    operator = graph.op(index)
    weights, bias, result = (graph.tensors[t] for t in (*operator.inputs[1:3], operator.outputs[0]))
    x = trial.inputs[0].reshape(1, -1)
    source = graph.tensors[operator.inputs[0]]
    w, b = array_of(model, weights, np.int8), array_of(model, bias, np.int32)
    centred = x.astype(np.int64) - int(parameters(source).zero_point[0])
    sums = (centred @ w.astype(np.int64).T + b).reshape(-1).tolist()
    scale = float(parameters(source).scale[0]), float(parameters(result).scale[0])
    for values, rounding in zip(trial.expected, (once, twice), strict=True):
        reals = [scale[0] * float(s) / scale[1] for s in np.broadcast_to(parameters(weights).scale, len(sums))]
        codes = [rounding(t, r) + int(parameters(result).zero_point[0]) for t, r in zip(sums, reals, strict=True)]
        (got,) = values.values()
        assert got.reshape(-1).tolist() == [min(max(code, -128), 127) for code in codes]


def fixed(real: float) -> tuple[int, int]:
    fraction, shift = math.frexp(real)
    return math.floor(fraction * 2**31 + 0.5), shift


def once(total: int, real: float) -> int:
    mantissa, shift = fixed(real)
    return (total * mantissa + (1 << 30 - shift)) >> 31 - shift


def twice(total: int, real: float) -> int:
    mantissa, shift = fixed(real)
    high = (total * mantissa + (1 << 30)) >> 31
    return int(math.copysign((abs(high) + (1 << -shift - 1)) >> -shift, high))


@pytest.mark.slow
def test_the_command_writes_inputs_that_run_takes(tmp_path: Path) -> None:
    model = str(MODEL.with_name("digits_mobilenet_int8.tflite"))
    dump, apart = str(tmp_path / "dump.npz"), str(tmp_path / "apart.npz")
    runner = CliRunner()
    seeded = ["--inputs", "random", "--seed", "3", "--all-tensors"]
    assert runner.invoke(cli, ["run", model, "--profile", "litert-xnnpack", *seeded, "-o", dump]).exit_code == 0
    _keep_only(dump, 7)  # other operators of its type would tell some of the causes apart
    done = runner.invoke(cli, ["explain", model, "--dump", dump, "--op", "7", "--discriminate", apart])
    assert "distinguished by" in done.output
    with np.load(apart) as entries:
        causes = [str(entries[name]) for name in entries.files if name.startswith("cause")]
        assert causes[0] == "litert-ref+single-rounding"  # the nearest to the profile that is explained
        assert "litert-xnnpack" in causes
        results = [entries[name] for name in entries.files if name.startswith("s0_cause")]
    assert len(results) > 1
    assert len({value.tobytes() for value in results}) > 1
    made = make_inputs(load(model), apart)
    assert len(made.samples) >= 1
    assert runner.invoke(cli, ["run", model, "--inputs", apart, "-o", str(tmp_path / "again.npz")]).exit_code == 0


def _keep_only(dump: str, op: int) -> None:
    """Leave a dump what one operator reads and makes."""
    operator = view(load(MODEL.with_name("digits_mobilenet_int8.tflite"))).op(op)
    wanted = {f"t{tensor}" for tensor in (*operator.inputs, *operator.outputs)}
    with np.load(dump) as entries:
        kept: Any = {name: entries[name] for name in entries.files if name in wanted}
    assert kept
    np.savez(dump, **kept)


@pytest.mark.parametrize("flag", [["--html", "page.html"], ["--discriminate", "apart.npz"]])
def test_without_a_dump_there_is_nothing_to_tell_apart(flag: list[str]) -> None:
    done = tflq("explain", MODEL, "--element", "0,0", *flag)
    assert done.exit_code == 2
    assert "give --dump" in done.output
