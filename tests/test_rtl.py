"""The hardware kit: designs of examples/rtl reproduce exported vectors, and every planted fault is caught."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import tflq

GOLDEN, EXAMPLES = suites.ROOT / "golden" / "rtl", suites.ROOT / "examples" / "rtl"
needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
#: A design, its text, and the text of a fault.
FAULTS = {
    "no left shift": ("requantize", "accumulator <<< left", "accumulator"),
    "left shift off by one": ("requantize", "accumulator <<< left", "accumulator <<< (left + 1)"),
    "left shift saturates": (
        "requantize",
        "accumulator <<< left",
        "((accumulator <<< left) >>> left == accumulator) ? accumulator <<< left : 32'sh7fffffff",
    ),
    "product cut to 48 bits": ("requantize", "nudged >>> 31", "$signed(nudged[47:0]) >>> 31"),
    "product without a sign": ("requantize", "shifted * mantissa", "$unsigned(shifted) * $unsigned(mantissa)"),
    "first rounding cut off": ("requantize", "product + 64'sd1073741824", "product"),
    "first rounding half down": ("requantize", "64'sd1073741824", "64'sd1073741823"),
    "first rounding half away": (
        "requantize",
        "product + 64'sd1073741824",
        "product + (product < 0 ? 64'sd1073741823 : 64'sd1073741824)",
    ),
    "mantissa of 16 bits": ("requantize", "shifted * mantissa", "shifted * (mantissa & 32'shffff0000)"),
    "second rounding cut off": ("requantize", "((remainder > threshold) ? 32'sd1 : 32'sd0)", "32'sd0"),
    "second rounding half up": ("requantize", "((high_word < 0) ? 32'sd1 : 32'sd0)", "32'sd0"),
    "second rounding half down": ("requantize", "((high_word < 0) ? 32'sd1 : 32'sd0)", "32'sd1"),
    "second rounding away from zero": ("requantize", "remainder > threshold", "remainder > 0"),
    "shift to the right without a sign": ("requantize", "(high_word >>> right)", "(high_word >> right)"),
    "right shift of 3 bits' width": ("requantize", "wire [5:0] right", "wire [2:0] right"),
    "zero point after the clamp": (
        "requantize",
        "(moved < low) ? low : (moved > high) ? high : moved",
        "((scaled < low) ? low : (scaled > high) ? high : scaled) + zero_point",
    ),
    "no clamp below": ("requantize", "(moved < low) ? low : ", ""),
    "no clamp above": ("requantize", "(moved > high) ? high : ", ""),
    "clamp one code early": ("requantize", "(moved > high) ? high", "(moved > high - 1) ? high - 1"),
    "wraps at 8 bits": (
        "requantize",
        "assign code = (moved < low) ? low : (moved > high) ? high : moved",
        "wire signed [7:0] cut = moved[7:0]; assign code = cut",
    ),
    "accumulator of 16 bits": (
        "mac_array",
        "$signed(accumulators[32*c +: 32]) +",
        "$signed(accumulators[32*c +: 16]) +",
    ),
    "weight without a sign": ("mac_array", "$signed(weights[16*c +: 16])", "{24'd0, weights[16*c +: 8]}"),
    "bias left out": ("mac_array", "<= bias[32*c +: 32]", "<= 32'd0"),
    "value of 8 bits": ("mac_array", "value * weight", "$signed(value[7:0]) * weight"),
}
NAMES = {"requantize": "requantizer", "mac_array": "pointwise"}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    for name in NAMES.values():
        words = ["golden", "export", str(GOLDEN / f"{name}.npz"), "--model", str(GOLDEN / f"{name}.tflite")]
        done = tflq(*words, "--verilog", "0", "-o", folder, "--json")
        assert done.exit_code == 0, done.output
        document = json.loads(done.stdout)
        assert document["recorded"] is True
        if name == "requantizer":
            assert [case for case, count in document["coverage"].items() if not count] == []
    return folder


def simulated(design: str, text: str, vectors: Path, folder: Path) -> str:
    (folder / f"{design}.v").write_text(text)
    sources = [str(EXAMPLES / f"test_{design}.v"), str(folder / f"{design}.v")]
    build = ["iverilog", "-g2005-sv", "-I", str(vectors), "-o", str(folder / "built"), *sources]
    subprocess.run(build, check=True, capture_output=True, timeout=60)
    run = ["vvp", str(folder / "built"), f"+vectors={vectors}"]
    return subprocess.run(run, check=True, capture_output=True, text=True, timeout=60).stdout


@needs_icarus
@pytest.mark.parametrize("design", NAMES)
def test_a_design_reproduces_every_stage(design: str, vectors: Path, tmp_path: Path) -> None:
    assert "PASS" in simulated(design, (EXAMPLES / f"{design}.v").read_text(), vectors, tmp_path)


@needs_icarus
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault: str, vectors: Path, tmp_path: Path) -> None:
    design, right, wrong = FAULTS[fault]
    text = (EXAMPLES / f"{design}.v").read_text()
    assert text.count(right) == 1
    assert "FAIL" in simulated(design, text.replace(right, wrong), vectors, tmp_path)


@needs_icarus
def test_cocotb_passes(vectors: Path, tmp_path: Path) -> None:
    python = os.environ.get("TFLQ_COCOTB_PYTHON", "")
    if not python:
        pytest.skip("TFLQ_COCOTB_PYTHON names no Python that has cocotb")
    script = [python, str(EXAMPLES / "test_cocotb.py"), str(vectors)]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "requantize: PASS" in done.stdout
    assert "mac_array: PASS" in done.stdout


def test_codes_of_vectors_are_those_of_the_recording(vectors: Path) -> None:
    recorded = np.load(GOLDEN / "requantizer.npz")
    (name,) = (key for key in recorded.files if "out" in key)
    words = [int(line, 16) for line in (vectors / "requantizer_codes.hex").read_text().split()]
    assert np.array_equal(np.array(words, np.uint32).view(np.int32), recorded[name].reshape(-1))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--verilog", "0"], 2),  # no model
        (["--verilog", "9", "--model", str(GOLDEN / "pointwise.tflite")], 3),  # no such operator
        (["--verilog", "-1", "--model", str(GOLDEN / "pointwise.tflite")], 3),
        (["--verilog", "0", "--model", str(GOLDEN / "pointwise.tflite"), "--profile", "litert-xnnpack"], 3),
        (["--verilog", "0", "--model", str(GOLDEN / "pointwise.tflite"), "--checksums"], 2),
        (["--verilog", "0", "--model", str(GOLDEN / "requantizer.tflite")], 2),  # another model
    ],
)
def test_strange_words_write_nothing(words: list[str], code: int, tmp_path: Path) -> None:
    done = tflq("golden", "export", GOLDEN / "pointwise.npz", *words, "-o", tmp_path)
    assert done.exit_code == code, done.output
    assert list(tmp_path.iterdir()) == []
