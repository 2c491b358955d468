"""Every document that is printed follows its published schema."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from support import suites
from support.commands import validate
from support.reports import REPORT
from tflq.comparison.inspection.operators import inspect
from tflq.errors import ModelError, UnsupportedError
from tflq.face.report.json import dumps, error_document
from tflq.face.report.verbs.inspect import inspect_document
from tflq.face.report.verbs.verify import junit, verify_document


def check(kind: str, text: str) -> dict:

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    document = json.loads(text, parse_constant=refuse)
    validate(document, kind)
    return document


@pytest.mark.parametrize("golden", [True, False])
def test_a_verification(golden: bool) -> None:
    report = replace(REPORT, against={}, golden="g.npz") if golden else REPORT
    document = check("verify", dumps(verify_document(report)))
    assert (document["verdict"], document["first_divergent"]) == ("differs", 1)
    assert [o["status"] for o in document["operators"]] == [
        "exact",
        "differs",
        "differs",
        "not compared",
        "not compared",
        "close",
    ]
    assert document["elements"] == {"compared": 36, "differing": 4}
    assert document["operators"][5]["promise"] == {"word": "close", "ulp": 4, "reason": "order"}
    assert document["operators"][4]["promise"] is None
    assert document["operators"][1]["tensors"][0]["difference"]["first"]["expected"] == "NaN"


@pytest.mark.parametrize("name", ["digits_mobilenet_int8", "digits_lstm_int8", "digits_mobilenet_float"])
def test_an_inspection(name: str) -> None:
    document = check("inspect", dumps(inspect_document(inspect(suites.ROOT / f"golden/models/{name}.tflite"))))
    assert document["schema"] == "tflq/inspect/1"
    assert all((o["constants"] is None) or (o["reason"] is None) for o in document["operators"])


@pytest.mark.parametrize(
    "error",
    [UnsupportedError("ADD", version=9), ModelError("x", expected=(1, None), got=object()), KeyboardInterrupt()],
    ids=lambda e: type(e).__name__,
)
def test_an_error(error: BaseException) -> None:
    assert check("error", dumps(error_document(error, 2)))["kind"] == type(error).__name__


def test_junit_has_one_case_per_operator() -> None:
    suite = junit(REPORT)
    cases = suite.findall("testcase")
    assert [c.get("name").split()[1] for c in cases] == ["ADD", "CONV_2D", "TANH", "ODD", "MUL", "EXP"]
    assert all(c.get("name").split()[0].isdecimal() for c in cases)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("6", "2", "2")
    assert "2 of 9 elements differ" in cases[1].find("failure").get("message")
    assert [c.find("skipped") is not None for c in cases] == [False, False, False, True, True, False]
    assert cases[5].find("failure") is None
    assert "by up to 3 ULP" in cases[5].find("system-out").text
