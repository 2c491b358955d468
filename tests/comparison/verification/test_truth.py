"""A verdict claims no more than was compared: outputs, samples, operators, subgraphs; and it decides the exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import Result

import tflq
from support import commands
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.results import InputFacts, Status, Verdict, verdict_of
from tflq.comparison.verification.verifying import verify
from tflq.devices.suites.judge import SuiteVerdict
from tflq.diagnosis.profile_fit import FitVerdict
from tflq.engine.runtimes import Description, RuntimeOutputs
from tflq.face.cli.answer import VERDICTS, Exit, exit_of_verdict
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Record, Subgraph, TensorSpec, TensorType
from tflq.proof import Word

F32, BOOL = TensorType.FLOAT32, TensorType.BOOL
X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
Y, C = np.abs(X), np.arange(6, dtype=np.float32).reshape(2, 3)
ABS = (OperatorCode(101, "ABS"),)
ONE = (Operator(0, (0,), (1,)),)
CONSTANTS = (Buffer(), Buffer(C.view(np.uint8).ravel()))


def spec(name: str, buffer: int = 0) -> TensorSpec:
    return TensorSpec(name, F32, (2, 3), buffer)


def graph(operators: tuple[Operator, ...], outputs: tuple[int, ...], name: str | None = None) -> Subgraph:
    """Tensors x, y = ABS(x), and a constant c."""
    return Subgraph((spec("x"), spec("y"), spec("c", 1)), (0,), outputs, operators, name)


def model(*graphs: Subgraph) -> Model:
    return Model(3, ABS, graphs, CONSTANTS)


WHOLE = model(graph(ONE, (1, 0, 2)))  # an operator's result, the input, a constant
RIGHT = (Y, X, C)


def golden(*samples: tuple[np.ndarray | None, ...], tensors: np.ndarray | None = None) -> Golden:
    """A recording of outputs, and of the operator's results where these are given."""
    known: Mapping[int, np.ndarray] = {} if tensors is None else {1: tensors}
    seen = tuple(Observation((X,), outputs, known) for outputs in samples)
    return Golden(seen, tensors is not None, InputFacts("arrays", None, len(seen)), {})


def saved(place: Path, recorded: Golden, of: Model = WHOLE) -> tuple[Path, Path]:
    tflq.save(of, place / "m.tflite")
    recorded.save(place / "g.npz")
    return place / "m.tflite", place / "g.npz"


# --- the exit code ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdicts", [Verdict, SuiteVerdict, FitVerdict, Word])
def test_every_verdict_has_an_exit_code(verdicts: type[Enum]) -> None:
    for verdict in verdicts:
        good = verdict.value in ("same", "accepted", "passes", "fits", "equal")
        assert (exit_of_verdict(verdict) == Exit.SAME) == good


def test_no_two_verdicts_of_a_name_mean_different_things() -> None:
    assert VERDICTS["differs"] == Exit.DIFFERS
    assert VERDICTS["nothing compared"] == Exit.UNSUPPORTED


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_outputs_alone_that_differ_are_listed_everywhere(mode: str, wrong: int, tmp_path: Path) -> None:
    outputs = tuple(value + (k == wrong) for k, value in enumerate(RIGHT))
    path, recorded = saved(tmp_path, golden(outputs, tensors=Y))
    files = tmp_path / "j.xml", tmp_path / "s.json"
    words = ("verify", path, "--golden", recorded, "--mode", mode)
    result = commands.tflq(*words, "--junit", files[0], "--sarif", files[1])
    assert (result.exit_code, result.stdout.split()[0]) == (1, "DIFFERS"), result.output
    suite = ElementTree.fromstring(files[0].read_text())
    (failure,) = suite.iter("failure")
    assert (suite.get("failures"), failure.get("message")[:6]) == ("1", "6 of 6")
    assert int(suite.get("tests")) == len(list(suite.iter("testcase")))
    (issue,) = json.loads(files[1].read_text())["runs"][0]["results"]
    assert issue["message"]["text"].startswith(f"output {wrong} ")
    document = json.loads(commands.tflq(*words, "--json").stdout)
    assert [t["status"] for t in document["outputs"]].index("differs") == wrong
    assert document["elements"]["differing"] == 6


def test_a_golden_of_outputs_that_differ_has_test_cases(tmp_path: Path) -> None:
    path, recorded = saved(tmp_path, golden((Y + 1, X, C)))
    result = commands.tflq("verify", path, "--golden", recorded, "--junit", tmp_path / "j.xml")
    suite = ElementTree.fromstring((tmp_path / "j.xml").read_text())
    assert (result.exit_code, suite.get("tests"), suite.get("failures")) == (1, "3", "1")


# --- what was compared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
def test_all_outputs_that_fit_are_the_same(mode: str) -> None:
    report = verify(WHOLE, golden(RIGHT, RIGHT, tensors=Y), mode=mode)
    assert (report.verdict, report.compared) == (Verdict.SAME, 2 * 3 * 6)
    assert [t.covered_by for t in report.outputs] == [0, None, None]
    assert (report.coverage.operators, report.coverage.outputs, report.coverage.is_whole) == ((1, 1), (3, 3), True)


@pytest.mark.parametrize("outputs", [(0,), (2,), (0, 2, 0)])
def test_outputs_that_no_operator_makes_are_compared(outputs: tuple[int, ...]) -> None:
    without = model(graph((), outputs))
    values = tuple(RIGHT[{1: 0, 0: 1, 2: 2}[t]] for t in outputs)
    report = verify(without, golden(values))
    assert (report.verdict, report.compared) == (Verdict.SAME, 6 * len(outputs))
    for k in range(len(outputs)):
        wrong = tuple(-value if k == i else value for i, value in enumerate(values))
        assert verify(without, golden(wrong)).verdict == Verdict.DIFFERS


@pytest.mark.parametrize("tensors", [False, True])
def test_nothing_compared_is_never_the_same(tensors: bool) -> None:
    report = verify(WHOLE, replace(golden((None, None, None)), tensors=tensors))
    assert (report.verdict, report.compared) == (Verdict.NOTHING, 0)
    assert exit_of_verdict(report.verdict) == 3


def test_nothing_compared_is_an_error_in_junit(tmp_path: Path) -> None:
    from tflq.face.report.verbs.verify import junit

    suite = junit(verify(WHOLE, golden((None, None, None))))
    assert (suite.get("errors"), len(list(suite.iter("error")))) == ("1", 1)


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
@pytest.mark.parametrize("present", range(3))
def test_values_of_some_samples_are_not_all(mode: str, present: int, tmp_path: Path) -> None:
    samples = [RIGHT if k == present else (None, None, C) for k in range(3)]
    recorded = golden(*samples)
    if mode == "isolated":
        known = [({1: Y} if k == present else {}) for k in range(3)]
        seen = tuple(replace(o, tensors=t) for o, t in zip(recorded.observations, known, strict=True))
        recorded = replace(recorded, observations=seen, tensors=True)
    path, file = saved(tmp_path, recorded)
    result = commands.tflq("verify", path, "--golden", file)
    assert (result.exit_code, result.stdout.split()[0]) == (3, "INCOMPLETE"), result.output
    assert "compared in 1 of 3 samples only" in result.stdout
    assert verify(path, file).coverage.outputs[1] == 3
    assert not verify(path, file).coverage.is_whole


def test_a_difference_goes_before_what_is_missing() -> None:
    assert verify(WHOLE, golden((Y + 1, X, C), (None, None, None))).verdict == Verdict.DIFFERS


def test_subgraphs_that_nothing_runs_are_not_compared() -> None:
    report = verify(model(graph(ONE, (1,)), graph(ONE, (1,), "decode")), golden((Y,), tensors=Y))
    assert report.verdict == Verdict.INCOMPLETE
    (missing,) = report.coverage.missing
    assert missing.startswith("1 operator of subgraph 1 decode")


def test_subgraphs_that_an_operator_runs_are_compared_with_it() -> None:
    condition = TensorSpec("p", BOOL, ())
    options = Record("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2})
    main = Subgraph((condition, spec("x"), spec("y")), (0, 1), (2,), (Operator(1, (0, 1), (2,), options),))
    inner = Subgraph((spec("x"), spec("y")), (0,), (1,), ONE)
    whole = Model(3, (*ABS, OperatorCode(118, "IF")), (main, inner, inner), (Buffer(),))
    seen = Observation((np.array(True), X), (Y,), {2: Y})
    report = verify(whole, Golden((seen,), True, InputFacts("arrays", None, 1), {}))
    assert report.verdict == Verdict.SAME
    assert [(one.index, one.callers) for one in report.apart] == [(1, {("", 0): "IF"}), (2, {("", 0): "IF"})]
    assert len(report.coverage.inside) == 2


def test_a_recording_that_contradicts_itself_has_a_note() -> None:
    """The plain run's output is compared with the whole model, the one that was read with its operator."""

    class Reads:
        name = "reads"

        def describe(self) -> Description:
            return Description("reads", "", "", "", 1, "", "", "")

        def run(self, models: list[bytes], samples: list[tuple[np.ndarray, ...]]) -> RuntimeOutputs:
            return RuntimeOutputs(self.describe(), (((Y,),), ((Y + 1,),)))

    report = verify(model(graph(ONE, (1,))), Reads(), inputs=[X])
    assert report.verdict == Verdict.DIFFERS
    assert any("is not the recorded result of operator 0" in note for note in report.notes)
    assert [o.status for o in report.operators] == [Status.DIFFERS]
    assert [t.status for t in report.outputs] == [Status.EXACT]


def test_the_summary_of_several_models_knows_nothing_compared(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, golden((None, None, None)))
    other = tmp_path / "n.tflite"
    other.write_bytes(path.read_bytes())
    (tmp_path / "n.npz").write_bytes((tmp_path / "g.npz").read_bytes())
    (tmp_path / "m.npz").write_bytes((tmp_path / "g.npz").read_bytes())
    result = commands.tflq("verify", path, other, "--baseline", tmp_path / "{stem}.npz")
    assert result.exit_code in (2, 3), result.output
    assert "SAME" not in result.stdout


def test_the_verdict_of_statuses() -> None:
    assert verdict_of([Status.EXACT], 0) == Verdict.NOTHING
    assert verdict_of([Status.DIFFERS], 0) == Verdict.DIFFERS  # shapes that differ
    assert verdict_of([Status.EXACT, Status.NOT_COMPARED], 1) == Verdict.INCOMPLETE
    assert verdict_of([Status.EXACT, Status.CLOSE], 1) == Verdict.CLOSE


# --- two recordings ---------------------------------------------------------------------------------------------------


def compared(place: Path, first: Golden, second: Golden) -> Result:
    path, one = saved(place, first)
    second.save(place / "other.npz")
    return commands.tflq("golden", "diff", one, place / "other.npz", "--model", path)


@pytest.mark.parametrize(
    ("second", "code", "word"),
    [
        (golden(RIGHT, tensors=Y), 0, "same bits"),
        (golden((Y, X + 1, C), tensors=Y), 1, "outputs differ"),
        (golden((None, None, C), tensors=Y), 3, "INCOMPLETE"),
        (golden(RIGHT), 0, "1 of 1 operators, 3 of 3 outputs"),
        (golden((None, X, C)), 3, "INCOMPLETE"),
    ],
)
def test_golden_diff_says_what_it_compared(second: Golden, code: int, word: str, tmp_path: Path) -> None:
    result = compared(tmp_path, golden(RIGHT, tensors=Y), second)
    assert result.exit_code == code, result.output
    assert word in result.stdout


def test_golden_diff_of_nothing_is_not_the_same(tmp_path: Path) -> None:
    result = compared(tmp_path, golden((Y, None, None)), golden((None, X, C)))
    assert result.exit_code == 3, result.output
    assert "NOTHING COMPARED" in result.stdout


def test_a_gap_between_samples_is_refused(tmp_path: Path) -> None:
    path, file = saved(tmp_path, golden(RIGHT))
    entries = {name: value for name, value in np.load(file).items() if name != "tflq_golden"}
    gap = {name.replace("s0_", "s2_"): value for name, value in entries.items()}
    np.savez(file, **entries, **gap)
    result = commands.tflq("verify", path, "--golden", file)
    assert (result.exit_code, "sample 2" in result.output) == (2, True), result.output
