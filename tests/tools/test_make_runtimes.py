"""Runtimes that are made for tools/agree.py: what is compiled, what an emulated processor is, what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from build_micro import core_sources, includes, kernel_sources, library_sources, main
from make_aarch64 import PROCESSORS, describe_processor

KERNELS = "tflite-micro/tensorflow/lite/micro/kernels"


def write(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def test_kernels_of_cmsis_nn_replace_those_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path, *(f"{KERNELS}/{name}.cc" for name in ("conv", "conv_test", "cast", "cmsis_nn/conv")))
    plain, replacing = kernel_sources(tmp_path / "tflite-micro")
    assert [p.name for p in plain] == ["cast.cc"]
    assert [p.parent.name for p in replacing] == ["cmsis_nn"]


def test_tests_and_float_kernels_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, *(f"CMSIS-NN/Source/Add/{name}.c" for name in ("arm_add_s8", "arm_add_f32", "arm_add_f16")))
    write(tmp_path, *(f"tflite-micro/tensorflow/lite/micro/{name}.cc" for name in ("memory", "memory_test", "mock_x")))
    assert [p.stem for p in library_sources(tmp_path)] == ["arm_add_s8"]
    assert [p.stem for p in core_sources(tmp_path / "tflite-micro")] == ["memory"]


def test_headers_have_the_version_that_the_schema_asks_for(tmp_path: Path) -> None:
    parts = {"MAJOR": 25, "MINOR": 9, "REVISION": 23}
    schema = " && ".join(f"FLATBUFFERS_VERSION_{part} == {number}" for part, number in parts.items())
    write(tmp_path, "tflite-micro/tensorflow/lite/schema/schema_generated.h", text=schema)
    base = "".join(f"#define FLATBUFFERS_VERSION_{part} 1\n" for part in parts)
    write(tmp_path, "flatbuffers/include/flatbuffers/base.h", text=base)
    write(tmp_path, "flatbuffers/include/flatbuffers/other.h")
    (tmp_path / "made").mkdir()
    includes(tmp_path, tmp_path / "made")
    made = (tmp_path / "made/flatbuffers/base.h").read_text(encoding="utf-8")
    assert made.splitlines() == [f"#define FLATBUFFERS_VERSION_{part} {number}" for part, number in parts.items()]
    assert (tmp_path / "made/flatbuffers/other.h").exists()


def test_missing_checkouts_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ruy").mkdir()
    monkeypatch.setattr(sys, "argv", ["build_micro.py", str(tmp_path), "-o", str(tmp_path / "out")])
    assert main() == 2
    assert "tflite-micro, CMSIS-NN, flatbuffers, gemmlowp\n" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", PROCESSORS)
def test_an_emulated_machine_has_one_processor(tmp_path: Path, name: str) -> None:
    part, variant, features = PROCESSORS[name]
    describe_processor(tmp_path, part, variant, features)
    facts = (tmp_path / "proc/cpuinfo").read_text(encoding="utf-8")
    assert f"CPU part\t: {part:#x}\n" in facts
    assert facts.count("processor") == 1
    assert (tmp_path / "sys/devices/system/cpu/present").read_text(encoding="utf-8") == "0\n"
