"""The fuzzer of graphs: what it draws, and that it finds a difference."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import fuzz_graphs
import numpy as np
import pytest

from graphfuzz.drawing import Drawn, draw
from opfuzz.remote import Remote
from support.processors import has_xnnpack_profile
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read


def drawn(count: int) -> list[Drawn]:
    return [one for one in (draw(1, number) for number in range(count)) if one is not None]


def test_graphs_are_of_many_kinds_and_the_same_each_time() -> None:
    graphs = drawn(150)
    names = {name for one in graphs for name in one.names}
    assert len(graphs) > 140
    assert {"CONV_2D", "FULLY_CONNECTED", "DEQUANTIZE", "RESHAPE", "MEAN", "TRANSPOSE_CONV", "CONCATENATION"} <= names
    assert len(names) > 40
    assert {sample.dtype.name for one in graphs for sample in one.samples[0]} == {"float32", "int8", "uint8", "int16"}
    assert any(
        make_plan(read(one.model), by_name("litert-ref")).operands[0].shape[0] != one.samples[0][0].shape[0]
        for one in graphs
    )
    assert [one.model for one in drawn(20)] == [one.model for one in graphs[: len(drawn(20))]]


@has_xnnpack_profile
def test_tflq_has_the_bits_of_litert(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    monkeypatch.setattr(sys, "argv", ["fuzz_graphs.py", "--count", "20", "--seed", "2"])
    assert fuzz_graphs.main() == 0, capsys.readouterr().out


def test_one_changed_code_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    run = fuzz_graphs.run

    def changed(one: Drawn, profile: str) -> list[list[np.ndarray]]:
        outputs = run(one, profile)
        outputs[1][0].reshape(-1).view(np.uint8)[0] ^= 1
        return outputs

    monkeypatch.setattr(fuzz_graphs, "run", changed)
    number = next(k for k in range(20) if (one := draw(1, k)) is not None and one.samples[0][0].dtype != np.float32)
    words = ["--only", str(number), "--against", "litert-ref", "--save", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fuzz_graphs.py", *words])
    assert fuzz_graphs.main() == fuzz_graphs.FOUND
    assert "differs: " in capsys.readouterr().out
    assert {path.suffix for path in tmp_path.iterdir()} == {".tflite", ".npz"}


def test_what_one_side_refuses_is_found() -> None:
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    one = next(one for one in drawn(20) if one.names)
    runtime = Remote([sys.executable], "ai_edge_litert.interpreter", "BUILTIN_REF")
    broken = replace(one, model=one.model[: len(one.model) // 2])
    assert fuzz_graphs.judge(broken, "litert-ref", runtime)[0] == fuzz_graphs.REFUSED
    runtime.close()
