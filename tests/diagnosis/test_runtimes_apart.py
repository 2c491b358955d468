"""Installed runtimes side by side: groups keep their order, errors their owner, and nothing absent is started."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from support import suites
from tflq.comparison.goldens.golden import Golden, InputFacts, Observation
from tflq.comparison.goldens.record import outputs_recorder
from tflq.comparison.inputs.prepare import PLAIN
from tflq.diagnosis.runtimes import runtimes_apart
from tflq.engine.api.files import subject
from tflq.engine.runtimes import RUNTIMES
from tflq.errors import InputError, RuntimeFailed, RuntimeMissing

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def golden(value: int) -> Golden:
    return Golden((Observation((), (np.array([value]),), {}),), False, InputFacts("random", 0, 1), {})


def recorded(name: str) -> Golden:
    """A runtime: its name ends with the value of its output, or begins with how it fails."""
    if name.startswith("missing"):
        raise RuntimeMissing(name, "not installed")
    if name.startswith("failing"):
        raise RuntimeFailed(name, "aborted")
    return golden(int(name[-1]))


def test_groups_and_failures_are_in_the_order_of_the_names() -> None:
    apart = runtimes_apart(recorded, ["missing", "b1", "failing", "a2", "c1"])
    assert (apart.groups, dict(apart.failed)) == ((("b1", "c1"), ("a2",)), {"failing": "aborted"})
    assert (apart.subject("b1"), apart.subject("a2"), apart.subject("other")) == ("a2", "b1", "b1")


def test_runtimes_wait_for_each_other_at_no_point() -> None:
    together = threading.Barrier(3, timeout=30)  # breaks unless all three run at the same time

    def record(name: str) -> Golden:
        together.wait()
        return golden(int(name[-1]))

    assert runtimes_apart(record, ["a1", "b1", "c1"]).groups == (("a1", "b1", "c1"),)


@pytest.mark.parametrize(
    ("names", "error"), [([], RuntimeMissing), (["missing"], RuntimeMissing), (["missing", "failing"], RuntimeFailed)]
)
def test_without_any_answer_the_gravest_error_is_raised(names: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        runtimes_apart(recorded, names)


def test_other_errors_are_not_lost_in_a_thread() -> None:
    with pytest.raises(ZeroDivisionError):
        runtimes_apart(lambda _name: golden(1 // 0), ["a1"])


def test_an_absent_runtime_is_missing_without_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(RUNTIMES["tflm"], adapter="no_such_module_anywhere")
    assert absent.is_absent
    assert not replace(absent, python="/usr/bin/python3").is_absent  # another Python may have it
    assert not replace(absent, adapter="numpy").is_absent
    monkeypatch.setitem(RUNTIMES, "tflm", absent)
    monkeypatch.setattr("subprocess.Popen", None)
    with pytest.raises(RuntimeMissing, match="install"):
        outputs_recorder(subject(str(MODEL)), "tflm", None, 1, PLAIN)()


def test_bad_inputs_are_refused_before_anything_runs() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    with pytest.raises(InputError):
        outputs_recorder(subject(str(MODEL)), "litert-ref", "no such thing", 1, PLAIN)


def test_equal_values_of_other_bytes_are_the_same() -> None:
    """NaN has many bit patterns, and equal strings lie at many addresses."""

    def other(name: str) -> Golden:
        nan = np.array([0x7FC00000 + int(name[-1]), 0x3F800000], np.uint32).view(np.float32)
        text = np.array([b"".join([b"one ", name[:1].encode()])], object)
        return Golden((Observation((), (nan, text), {}),), False, InputFacts("random", 0, 1), {})

    assert runtimes_apart(other, ["a1", "a2", "b1"]).groups == (("a1", "a2"), ("b1",))
