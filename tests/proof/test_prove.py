"""`prove`: what is called different differs when run, what is called equal survives trials."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import tflq
from support import commands, suites
from support.commands import validate
from support.graphs import Graph, Op
from support.graphs import build as build_graph
from support.single_op import T, build
from tflq.engine.profiles import by_name
from tflq.proof import ProfileVerdict, Word, prove
from tflq.proof import operator as surroundings
from tflq.proof.codes import trials
from tflq.proof.operator import BoundOperator, bind, compare
from tflq.proof.proof import pairs

SINGLE = suites.ROOT / "golden" / "singleop" / "models"
PROFILES = ("litert-ref", "litert-opt", "litert-xnnpack", "tflite-2.14-ref", "tflite-2.14-opt", "tflm")
MODELS = sorted(SINGLE.glob("*_0.tflite"))
MOBILENET = "suites/real/models/coral/mobilenet_v2_1.0_224_quant.tflite"


def verdicts(model: Path, *profiles: str) -> list[ProfileVerdict]:
    """The verdicts on the only operator under every pair."""
    chosen = [by_name(name) for name in profiles or PROFILES]
    found = pairs(tflq.load(model), 0, chosen)
    assert len(found) == len(list(combinations(chosen, 2)))
    return list(found)


def outputs(model: Path, profile: str, inputs: dict[int, np.ndarray]) -> list[np.ndarray]:
    """By the drop-in interpreter, which knows nothing of proofs."""
    interpreter = tflq.Interpreter(model, profile=profile)
    interpreter.allocate_tensors()
    for tensor, value in inputs.items():
        interpreter.set_tensor(tensor, value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS[::4], ids=lambda path: path.stem)
def test_differences_are_shown_and_equality_survives(model: Path) -> None:
    for verdict in verdicts(model):
        if verdict.word == Word.DIFFERS:
            assert verdict.witness is not None
            one, other = (outputs(model, p, dict(verdict.witness.inputs)) for p in (verdict.first, verdict.second))
            at = verdict.witness.element
            assert (one[0][at], other[0][at]) == (verdict.witness.first, verdict.witness.second)
            assert one[0][at] != other[0][at]
        elif verdict.word == Word.EQUAL:
            survive(model, 0, verdict, rounds=20)


def survive(model: Path, index: int, verdict: ProfileVerdict, rounds: int) -> None:
    loaded = tflq.load(model)
    first, second = (bind(loaded, index, by_name(p)) for p in (verdict.first, verdict.second))
    assert isinstance(first, BoundOperator)
    assert isinstance(second, BoundOperator)
    for inputs in trials(first, seed=1, rounds=rounds):
        assert compare(first, second, inputs) is None, (model, verdict)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_equality_survives_ten_thousand_trials(model: Path) -> None:
    seen = set()
    for verdict in verdicts(model):
        is_plain = verdict.reason.startswith("the same kernel")
        if verdict.word == Word.EQUAL and not is_plain and verdict.reason not in seen:
            seen.add(verdict.reason)
            survive(model, 0, verdict, rounds=10_000)


def test_a_tie_is_reached() -> None:
    """Half away and half up part at ties below zero: the input is made for one."""
    (verdict,) = verdicts(SINGLE / "tie_conv_i8_0.tflite", "litert-ref", "litert-opt")
    assert verdict.word == Word.DIFFERS
    assert verdict.witness is not None
    assert verdict.witness.accumulator is not None
    assert abs(int(verdict.witness.first) - int(verdict.witness.second)) == 1


def test_a_refusal_is_not_decided() -> None:
    model = next(SINGLE.glob("*conv*u8_0.tflite"))
    (verdict,) = verdicts(model, "litert-ref", "tflm")
    assert (verdict.word, "refused by tflm" in verdict.reason) == (Word.UNDECIDED, True)


def run(*words: object) -> Result:
    return commands.tflq("prove", *words)


def test_the_verb_writes_what_it_found(tmp_path: Path) -> None:
    model, kept = SINGLE / "tie_conv_i8_0.tflite", tmp_path / "w.npz"
    words = (model, "--between", "litert-ref", "litert-opt", "--and", "tflite-2.14-ref")
    result = run(*words, "--witnesses", kept)
    assert result.exit_code == 1, result.output
    assert "differs" in result.stdout
    found = run(*words, "--json")
    document = json.loads(found.stdout)
    validate(document, "prove")
    assert document["counts"] == {"equal": 0, "differs": 1, "not decided": 0}
    assert document["operators"][0]["groups"] == [["litert-ref", "tflite-2.14-ref"], ["litert-opt"]]
    with np.load(kept) as arrays:
        keys = set(arrays.files)
        assert len(keys - {"tflq_names"}) == 1


def test_exit_codes_say_which_verdict() -> None:
    model = SINGLE / "tie_conv_i8_0.tflite"
    assert run(model, "--between", "litert-ref", "tflm").exit_code == 0
    assert "the same bits for every input" in run(model, "--between", "litert-ref", "tflm").stdout
    refused = next(SINGLE.glob("*conv*u8_0.tflite"))
    assert run(refused, "--between", "litert-ref", "tflm").exit_code == 3
    assert run(model, "--between", "litert-ref", "nobody").exit_code == 2


@pytest.mark.slow
def test_mobilenet_v2_is_decided() -> None:
    if suites.missing():
        pytest.skip(suites.missing())
    found = prove(suites.SHARED / MOBILENET, [p for p in PROFILES if p != "tflm"])
    words = [v.word for o in found.operators for v in o.verdicts]
    assert words.count(Word.UNDECIDED) <= 0.05 * len(words)
    for operator in found.operators:
        assert all(v.witness is not None for v in operator.verdicts if v.word == Word.DIFFERS)


def requantized(multiplier: float, weight: int) -> tflq.Model:
    """QUANTIZE by a factor, then FULLY_CONNECTED with one weight and the factor 1/2."""
    tensors = [
        T("int8", (1, 1), 0.25 * multiplier),
        T("int8", (1, 1), 0.25),
        T("int8", (1, 1), 1.0, value=[[weight]]),
        T("int8", (1, 1), 0.5),
    ]
    ops = [Op("QUANTIZE", (0,), (1,)), Op("FULLY_CONNECTED", (1, 2), (3,), ("FullyConnectedOptions", {}), 4)]
    return tflq.load(build_graph(Graph(tensors, (0,), (1, 3), ops)))


def test_a_witness_holds_no_code_that_the_operator_before_never_gives() -> None:
    """Ties need odd sums: after a QUANTIZE that doubles codes, only the saturated 127 is odd."""
    pair = [by_name("litert-ref"), by_name("litert-xnnpack")]
    (odd,) = pairs(requantized(1.0, 1), 1, pair)
    assert odd.word is Word.DIFFERS
    (even,) = prove(requantized(2.0, 1), [profile.name for profile in pair]).operators[1].verdicts
    witness = even.witness
    assert witness is None or set(np.ravel(next(iter(witness.inputs.values())))) <= {*range(-128, 127, 2), 127}


def test_what_one_runtime_refuses_is_never_equal() -> None:
    """XNNPACK cannot define a move between two scales; LiteRT does not load a dimension that is not there."""
    pool = {"padding": 1, "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    moved = build(
        "MAX_POOL_2D", [T("int8", (1, 3, 3, 2), 0.1, 0)], [T("int8", (1, 2, 2, 2), 0.2, 0)], ("Pool2DOptions", pool)
    )
    (first,) = pairs(tflq.load(moved), 0, [by_name("litert-ref"), by_name("litert-xnnpack")])
    assert first.word == Word.UNDECIDED
    beyond = build("RELU", [T("int8", (2, 3), 0.5, 0, axis=3)], [T("int8", (2, 3), 0.5, 0)], version=2)
    (second,) = pairs(tflq.load(beyond), 0, [by_name("litert-ref"), by_name("litert-opt")])
    assert second.word == Word.UNDECIDED


def test_fusions_are_found_once_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    own = surroundings.fusions
    monkeypatch.setattr(
        surroundings, "fusions", lambda graph, profile: found.append(profile.name) or own(graph, profile)
    )
    profiles = ["litert-ref", "litert-xnnpack"]
    tflq.prove(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite", profiles)
    assert found == profiles
