from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from support.reports import FOUND, REPORT, tensor
from tflq.comparison.results import CompareMode
from tflq.comparison.verification.report import Verification
from tflq.face.report.render import text as layout
from tflq.face.report.verbs.verify import verify_report
from tflq.face.report.wording import stage_text


def text_of(report: Verification, **options: bool) -> str:
    return layout.text_of(layout.lines_of(verify_report(report, **options)), coloured=layout.wants_colour(sys.stdout))


def test_the_first_screen_of_a_failure_is_in_order() -> None:
    text = text_of(REPORT)
    parts = [
        "DIFFERS m.tflite: 4 of 36 elements differ; 1 of 6 operators exact, 1 close, 2 differs, 2 not compared",
        "First divergent operator: 1 CONV_2D at [0, 1] of sample 1: expected nan (litert-xnnpack), "
        "got -inf (profile litert-ref)",
        "Next: tflq inspect m.tflite --op 1",
        "2 of 9 elements differ, by up to 3 LSB: 1 above, 1 below, -1.000 on average",
        "got - expected: -3: 1, +1: 1",
        "stage output: DoubleRounding, channel 1, real inf, Q31 3, shift -4, zero point -128, clamp [-128, 127]",
        "Promised: 3 exact, EXP close, 4 ULP measured",
        "1 tensor not the same bits, but within what was measured: by up to 3 ULP of the largest magnitude",
        "note: a note",
        "ai-edge-litert 2.3.0 BUILTIN, 1 thread, XNNPACK in 3 partitions",
    ]
    positions = [text.find(part) for part in parts]
    assert -1 not in positions, text
    assert positions == sorted(positions)
    assert [line.split()[0] for line in text.splitlines()[:3]] == ["DIFFERS", "First", "Next:"]


def test_exact_operators_are_listed_on_request_only() -> None:
    assert " ADD " not in text_of(REPORT)
    assert " ADD " in text_of(REPORT, all_operators=True)


def test_a_long_list_is_cut_and_says_so() -> None:
    many = tuple(replace(REPORT.operators[1], index=i) for i in range(50))
    assert "... and 30 more" in text_of(replace(REPORT, operators=many))


def test_nothing_is_said_of_promises_where_everything_is_exact() -> None:
    assert "Promised" not in text_of(replace(REPORT, operators=REPORT.operators[:2]))


def test_a_difference_within_its_promise_is_no_difference_and_not_the_same() -> None:
    text = text_of(replace(REPORT, operators=(REPORT.operators[0], REPORT.operators[5])))
    assert text.startswith("CLOSE m.tflite: 2 of 18 elements differ; 1 of 2 operators exact, 1 close")
    assert "First divergent" not in text


def test_outputs_alone_are_told_too() -> None:
    report = replace(REPORT, operators=(), outputs=(tensor(FOUND),), mode=CompareMode.CUMULATIVE)
    text = text_of(report)
    assert "2 of 9 elements differ" in text
    assert "Next: tflq verify m.tflite" in text


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in text_of(REPORT)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in text_of(REPORT)


def test_a_stage_for_all_channels_shows_ranges() -> None:
    stage = REPORT.operators[1].constants.stages[0]
    assert "Q31 3 .. 1073741824, shift -4 .. 0" in stage_text(stage)
