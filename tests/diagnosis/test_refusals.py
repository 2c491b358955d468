"""Logs of runtimes that refuse a model: causes before consequences, and a change that makes the model run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tflq
from support import suites
from support.each import each
from tflq.diagnosis.refusals import find_refusal
from tflq.diagnosis.why import Party
from tflq.errors import InputError
from tflq.model.ir import view

PATH = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
MODEL = tflq.load(PATH)
FAILED = "AllocateTensors() failed"


@each(
    ("lines", "kind", "fix"),
    [
        (
            "Didn't find op for builtin opcode 'CONV_2D' version '9'. An older version might be supported.",
            "operator",
            r"lower the version: its types need 3 only.*AddConv2D\(\)",
        ),
        ("Didn't find op for builtin opcode 'BATCH_MATMUL'", "operator", r"AddBatchMatMul\(\)"),
        ("Failed to get registration from op code AVERAGE_POOL_2D", "operator", r"AddAveragePool2D\(\)"),
        ("Failed to resize buffer. Requested: 21840, available 9012, missing: 12828", "arena", "12,828 bytes larger"),
        ("Failed to allocate tail memory. Requested: 64, available: 32, missing: 32", "arena", "32 bytes larger"),
        ("Arena size is too small for all buffers. Needed 9000 but only 8000 was available.", "arena", "1,000 bytes"),
        (
            "Couldn't register builtin op #22, resolver size is too small (2)",
            "resolver-size",
            f"OpResolver<{len({op.name for op in view(MODEL).ops})}>",
        ),
        ("Hybrid models are not supported on TFLite Micro.", "hybrid", "representative_dataset"),
        ("Model provided is schema version 0 not equal to supported version 3", "schema", "alignment"),
        ("RuntimeError: Encountered unresolved custom op: edgetpu-custom-op.", "edge-tpu", "load_delegate"),
        ("RuntimeError: Encountered unresolved custom op: MyOp.", "custom", "AddCustom"),
        ("Select TensorFlow op(s), included in the given model, is(are) not supported", "flex", "Flex delegate"),
        ("ADD    2    Operation is working on an unsupported data type", "edge-tpu-types", "INT8"),
        ("fully_connected.cc:409 filter->type == kTfLiteInt8 was not true.", "condition", "lint"),
        ("Type INT16 (7) not supported.", "types", "lint"),
        ("Node number 3 (DEPTHWISE_CONV_2D) failed to prepare.", "failed", "the reason"),
        ("Node SOFTMAX (number 1f) failed to prepare with status 1", "failed", "the reason"),
        (FAILED, "allocation", "the reason"),
    ],
)
def test_each_refusal_has_a_cause_and_a_fix(lines: str, kind: str, fix: str) -> None:
    found = find_refusal(MODEL, f"boot\n{FAILED}\n{lines}\n" if kind != "allocation" else FAILED)
    assert found is not None
    assert found.cause.kind == f"refused-{kind}"
    assert re.search(fix, found.fix)


def test_other_text_is_no_refusal() -> None:
    assert find_refusal(MODEL, "hello\nInference took 12 ms\nwifi: connected\n") is None


def test_why_reads_the_log_of_a_refusal(tmp_path: Path) -> None:
    log = tmp_path / "board.log"
    log.write_text(f"Failed to resize buffer. Requested: 10, available 4, missing: 6\n{FAILED}\n", encoding="utf-8")
    answer = tflq.why(PATH, log)
    assert answer.fault == Party.USER
    assert answer.refusal is not None
    log.write_text("Node number 99999999 (X) failed to prepare.\n", encoding="utf-8")
    assert tflq.why(PATH, log).fault == Party.OPEN
    log.write_text("hello\n", encoding="utf-8")
    with pytest.raises(InputError, match="no tensor of the model"):
        tflq.why(PATH, log)


def test_long_lines_are_cut() -> None:
    """Patterns see the beginning of a line, so that their time is bounded."""
    for text in ("type " * 200_000, "a.cc:1 " + "x" * 500_000, "Requested: " * 90_000):
        assert find_refusal(MODEL, text) is None
