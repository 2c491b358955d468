"""Every document that is printed follows its published schema."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import suites

from tflq.errors import ModelError, UnsupportedError
from tflq.ir.schema import data_text
from tflq.kernels.kernel import EXACT, Exactness, close
from tflq.report.json import dumps, error_document, inspect_document, verify_document
from tflq.report.junit import junit
from tflq.runtimes import Description
from tflq.verification.comparing import Difference, First
from tflq.verification.constants import Constants, Stage
from tflq.verification.inspection import inspect
from tflq.verification.results import InputFacts, ModelFacts, OperatorResult, Report, TensorResult

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

STAGE = Stage("output", "DoubleRounding", (0.5, math.inf), (1 << 30, 3), (0, -4), -128, -128, 127)
FOUND = Difference(
    9, 2, "LSB", 3, 1, 1, -1.0, ((-3, 1), (1, 1)), First(1, (0, 1), math.nan, -math.inf)
)  # fmt: skip
NEAR = Difference(9, 2, "ULP", 300, 1, 1, 0.0, ((-16, 1), (1, 1)), First(0, (0, 1), 1e-9, 2e-9), at_scale=3)
RUNTIME = Description(
    "litert-xnnpack", "ai-edge-litert", "2.3.0", "BUILTIN", 1, "3.11", "2.4", "Linux", "XNNPACK", (1, 2)
)


def tensor(difference: Difference | None, reason: str = "", promise: Exactness | None = EXACT) -> TensorResult:
    return TensorResult(4, "a\0b", "int8", (3, 3), difference, reason, promise)


REPORT = Report(
    model=ModelFacts("m.tflite", 7, "0" * 64),
    profile="litert-ref",
    against=RUNTIME,
    golden="",
    mode="isolated",
    inputs=InputFacts("random", 0, 2),
    operators=(
        OperatorResult(0, "ADD", 1, (tensor(Difference(9, 0, "LSB")),)),
        OperatorResult(1, "CONV_2D", 1, (tensor(FOUND),), "", Constants((STAGE,), (("x", 1), ("y", math.nan)))),
        OperatorResult(2, "TANH", 1, (tensor(Difference(9, 0, problem="shape: ...")),)),
        OperatorResult(3, "ODD", 9, (), "unsupported"),
        OperatorResult(4, "MUL", 9, (tensor(None, "no value", None),)),
        OperatorResult(5, "EXP", 1, (tensor(NEAR, promise=close("order", 4)),)),
    ),
    outputs=(),
    notes=("a note",),
)


def check(kind: str, text: str) -> dict:
    schema = json.loads(data_text(f"{kind}.schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    document = json.loads(text, parse_constant=refuse)
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
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
    suite = ElementTree.fromstring(junit(REPORT))
    cases = suite.findall("testcase")
    assert [c.get("classname") for c in cases] == ["ADD", "CONV_2D", "TANH", "ODD", "MUL", "EXP"]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("6", "2", "2")
    assert "2 of 9 elements differ" in cases[1].find("failure").get("message")
    assert [c.find("skipped") is not None for c in cases] == [False, False, False, True, True, False]
    assert cases[5].find("failure") is None
    assert "by up to 3 ULP" in cases[5].find("system-out").text
