"""Many profiles at once: groups, profiles that refuse the model, how far a model is proved."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import Result

import tflq
from support import commands, suites
from support.commands import validate
from tflq.engine.profiles import PROFILES, by_name
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import view
from tflq.proof import Proof, Word, prove
from tflq.proof.proof import pairs

SINGLE = suites.ROOT / "golden" / "singleop" / "models"
DIGITS = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
TIE = SINGLE / "tie_conv_i8_0.tflite"
#: The first two agree on all operators of DIGITS, `litert-ref` differs in FULLY_CONNECTED.
NAMES = ("tflite-2.14-ref", "tflm", "litert-ref", "litert-xnnpack")


def run(*words: object) -> Result:
    return commands.tflq("prove", *words)


@pytest.fixture(scope="module")
def digits() -> Proof:
    return prove(DIGITS, NAMES)


def test_groups_are_what_pairs_are(digits: Proof) -> None:
    """Two profiles share a group exactly if their pair is equal."""
    model = tflq.load(DIGITS)
    for operator in digits.operators:
        home = {name: number for number, group in enumerate(operator.groups) for name in group}
        found = pairs(model, operator.index, [by_name(name) for name in NAMES])
        assert [(v.first, v.second) for v in found] == list(combinations(NAMES, 2))
        for verdict in found:
            if verdict.word == Word.EQUAL:
                assert home[verdict.first] == home[verdict.second]
            if verdict.word == Word.DIFFERS:
                assert home[verdict.first] != home[verdict.second]


def test_each_verdict_is_on_the_first_profile(digits: Proof) -> None:
    for operator in digits.operators:
        assert [(v.first, v.second) for v in operator.verdicts] == [(NAMES[0], name) for name in NAMES[1:]]
        assert operator.groups[0][0] == NAMES[0]
        assert operator.word == Word.DIFFERS or len(operator.groups) == 1 or operator.word == Word.UNDECIDED


def test_all_leaves_out_what_refuses_the_model() -> None:
    refused = next(SINGLE.glob("*conv*u8_0.tflite"))
    proof = prove(refused, "all")
    left_out = {refusal.profile for refusal in proof.refused}
    assert {"tflm", "tflm-cmsis-nn"} <= left_out
    assert not left_out & set(proof.profiles)
    assert left_out | set(proof.profiles) == set(PROFILES) - {"spec"}
    assert all("unsupported" in refusal.reason for refusal in proof.refused)
    assert all(name not in group for o in proof.operators for group in o.groups for name in left_out)
    named = prove(refused, ["litert-ref", "tflm"])  # a profile that is named counts
    assert named.word == Word.UNDECIDED


def test_a_profile_that_differs_in_one_operator_is_found(digits: Proof) -> None:
    dense = next(o for o in digits.operators if o.op == "FULLY_CONNECTED")
    assert dense.word == digits.word == Word.DIFFERS
    assert {*NAMES[:2]} <= set(dense.groups[0])
    assert all(v.witness is not None for v in dense.verdicts if v.word == Word.DIFFERS)


def test_accumulators_have_their_bias() -> None:
    """By hand: each weight times the nearest and farthest code less the zero point, and the bias."""
    (operator,) = prove(TIE, ["litert-ref", "tflm"]).operators
    graph = view(tflq.load(TIE))
    x, w, b = graph.op(0).inputs
    weights, bias = graph.constant(w), graph.constant(b)
    assert weights is not None
    assert bias is not None
    low, high = -128 - graph.zero_point(x), 127 - graph.zero_point(x)
    rows = weights.reshape(len(weights), -1).astype(int).tolist()
    least = [sum(min(w * low, w * high) for w in row) + int(b) for row, b in zip(rows, bias, strict=True)]
    most = [sum(max(w * low, w * high) for w in row) + int(b) for row, b in zip(rows, bias, strict=True)]
    assert operator.accumulators == (min(least), max(most))


def test_coverage_ends_at_the_first_operator_that_differs() -> None:
    proof = prove(DIGITS, ["litert-ref", "tflite-2.14-ref"])
    (one,) = proof.coverage
    graph = view(tflq.load(DIGITS))
    different = [o.index for o in proof.operators if o.word != Word.EQUAL]
    assert len(different) == 1
    assert set(one.outside) >= set(different)
    assert set(one.edge) == {t for t in graph.op(different[0]).inputs if t in graph.computed}
    below = {t for op in graph.ops[different[0] :] for t in op.outputs}
    assert not below & set(one.covered)
    assert set(one.covered) == {t for op in graph.ops[: different[0]] for t in op.outputs}


def test_coverage_is_whole_if_all_is_equal() -> None:
    proof = prove(DIGITS, NAMES[:2])
    (one,) = proof.coverage
    assert proof.word == Word.EQUAL
    assert one.is_whole
    assert set(one.outputs) == set(one.edge)


@pytest.mark.slow
def test_the_verb_takes_a_list_and_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("schema: tflq/profile/1\nbase: tflm\n", encoding="utf-8")
    result = run(DIGITS, "--between", *NAMES[:2], mine)
    assert (result.exit_code, "3 profiles" in result.stdout) == (0, True), result.output
    assert "the same bits for every input" in result.stdout
    assert run(DIGITS, "--between", *NAMES[:3]).exit_code == 1
    assert run(DIGITS, "--between", *NAMES[:2], "--and", NAMES[2]).exit_code == 1
    found = run(DIGITS, "--all", mine, "--json")
    document = json.loads(found.stdout)
    validate(document, "prove")
    assert document["profiles"][0] == str(mine)
    assert found.exit_code == 1


@pytest.mark.slow
def test_the_verb_lists_few_rows_for_many_profiles() -> None:
    lines = run(DIGITS, "--all").stdout.splitlines()
    assert re.match(r"\d+ profiles: 20 operators: ", lines[0])
    assert int(lines[0].split()[0]) > 40
    assert len(lines) < 35
    assert sum(" differs " in line for line in lines[1:]) <= 15


def test_a_model_that_every_profile_refuses_is_not_decided() -> None:
    result = run(DIGITS, "--all", "--memory-limit", 1)
    assert result.exit_code == 3, result.output
    assert "nothing is proved" in result.stdout


@pytest.mark.parametrize("words", [(), ("--between", "litert-ref"), ("--between", "litert-ref", "nobody")])
def test_misuse(words: tuple[str, ...]) -> None:
    assert run(DIGITS, *words).exit_code == 2


def test_misuse_in_python() -> None:
    with pytest.raises(OptionError, match="at least two"):
        prove(DIGITS, "litert-ref")
    with pytest.raises(UnknownNameError):
        prove(DIGITS, ["nobody", "all"])


@pytest.mark.slow
def test_mobilenet_v2_under_all_profiles() -> None:
    if suites.missing():
        pytest.skip(suites.missing())
    model = suites.SHARED / "suites/real/models/coral/mobilenet_v2_1.0_224_quant.tflite"
    proof = prove(model, "all")
    assert {r.profile for r in proof.refused} == {name for name in PROFILES if name.startswith("tflm")}
    assert proof.counts[Word.UNDECIDED] <= 1
