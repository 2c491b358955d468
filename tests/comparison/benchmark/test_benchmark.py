"""Profiles and runtimes timed in turns: what is compared, and what happens to sides that fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.graphs import Graph, Op, build
from support.pythons import fake_python
from support.single_op import T
from tflq.comparison.bench import Benchmark, BenchSide, compare, ratio
from tflq.errors import FileAccessError, OptionError, RuntimeFailed, RuntimeMissing, UnknownNameError, UnsupportedError

SMALL = suites.ROOT / "golden" / "singleop" / "models" / "leaky_relu_01.tflite"
DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"


@pytest.mark.slow
def test_sides_take_turns_and_bits_are_compared() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    benchmark = Benchmark(SMALL, ["litert-ref"], ["litert-ref"], runs=30)
    (case,) = benchmark.run().cases
    ours, theirs = case.sides
    assert (ours.is_tflq, theirs.is_tflq) == (True, False)
    assert (theirs.bits, theirs.failure) == ("same", "")
    assert len(ours.turns) == len(theirs.turns) >= 3
    assert min(len(ours.times), len(theirs.times)) >= 30
    assert ours.description is not None
    assert ours.description.package == "tflq"
    assert all(side.minimum <= side.median and 0 < side.ready < 600 and side.peak > 1 << 20 for side in case.sides)
    assert [op.op for op in case.operators] == ["LEAKY_RELU"]
    assert not benchmark.result.interrupted


@pytest.mark.slow
def test_profiles_race_each_other_and_other_bits_are_named() -> None:
    """CONV_2D on ties rounds otherwise under single rounding."""
    model = suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite"
    inputs = suites.ROOT / "golden" / "singleop" / "recorded" / "tie_conv_i8_0.npz"
    found = Benchmark(model, ["litert-ref", "litert-ref+single-rounding"], (), inputs=inputs, seconds=0).run()
    (case,) = found.cases
    assert [side.name for side in case.sides] == ["litert-ref", "litert-ref+single-rounding"]
    assert case.sides[1].bits == "differs"
    assert case.operators[0].macs > 0
    assert found.missing == {}


def test_a_runtime_that_ends_is_one_side_without_times(tmp_path: Path) -> None:
    python = fake_python(tmp_path, "echo 'no such luck' >&2; exit 7")
    found = Benchmark(SMALL, against=["litert-ref"], seconds=0, python=python).run()
    (case,) = found.cases
    assert case.base is not None
    assert case.sides[1].failure == "litert-ref: ended with status 7 while starting: no such luck"
    assert not case.sides[1].is_timed
    assert case.sides[1].bits == "not compared"


def test_a_runtime_that_is_not_installed_is_named_or_refused(tmp_path: Path) -> None:
    python = str(tmp_path / "no python")
    found = Benchmark(SMALL, seconds=0, python=python).run()
    assert len(found.cases[0].sides) == 1
    assert "no Python at" in found.missing["litert-xnnpack"]
    with pytest.raises(RuntimeMissing, match="no Python at"):
        Benchmark(SMALL, against=["tflm"], seconds=0, python=python).run()


def test_what_cannot_be_timed_is_refused() -> None:
    with pytest.raises(FileAccessError):
        Benchmark("missing.tflite")
    with pytest.raises(UnknownNameError):
        Benchmark(SMALL, ["nothing"])
    with pytest.raises(UnknownNameError):
        Benchmark(SMALL, against=["nothing"])
    with pytest.raises(OptionError):
        Benchmark(SMALL, [])
    newer = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
    with pytest.raises(UnsupportedError, match="RESIZE_BILINEAR: unsupported") as refused:
        Benchmark(newer, ["tf-1.15-ref"], ()).run()
    assert refused.value.index == 0


@pytest.mark.slow
def test_every_signature_is_a_case() -> None:
    benchmark = Benchmark(DECODER, against=(), seconds=0)
    found = benchmark.run()
    assert [case.name for case in found.cases] == ["prefill_8", "decode"]
    assert all(case.base is not None and case.operators for case in found.cases)


def test_a_model_without_elements_and_without_a_file() -> None:
    none = T("float32", (0, 3))
    model = build(Graph([none, none], (0,), (1,), [Op("ABS", (0,), (1,))]))
    (case,) = Benchmark(model, against=(), seconds=0).run().cases
    assert case.base is not None
    assert case.operators[0].rate == 0


def test_only_equal_bits_are_the_same() -> None:
    one, other = np.zeros(3, np.float32), -np.zeros(3, np.float32)
    assert compare([{"0": one}], [{"0": one.copy()}]) == ("same", "")
    assert compare([{"0": one}], [{"0": other}]) == ("differs", "1 of 1 outputs differ")
    assert compare([{"0": one}], [{"0": one.astype(np.float64)}])[0] == "differs"
    assert compare([{"0": one}], [{"0": one[None]}])[0] == "differs"
    assert compare([{"0": one, "1": one}], [{"0": one}])[0] == "not compared"
    assert compare([{}], [{}])[0] == "not compared"


def test_a_ratio_is_that_of_turns() -> None:
    """The machine was half as fast in the second turn: the sides are compared within each."""
    one = BenchSide("a", is_tflq=True, turns=[[2.0, 2.0], [4.0], [2.0]])
    other = BenchSide("b", is_tflq=False, turns=[[1.0], [2.0, 2.0, 2.0], [1.0]])
    found = ratio(one, other)
    assert (found.median, found.low, found.high, found.minimum) == (2.0, 2.0, 2.0, 2.0)


def test_a_first_side_that_fails_later_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.engine.runtimes.timed import Contestant

    def broken(self: Contestant, seconds: float) -> tuple[list[float], int]:
        if seconds:
            raise RuntimeFailed(self.name, "aborted")
        return [], 0

    monkeypatch.setattr(Contestant, "burst", broken)
    benchmark = Benchmark(SMALL, against=(), seconds=0)
    with pytest.raises(RuntimeFailed, match="aborted"):
        benchmark.run()
    assert benchmark.result.interrupted
