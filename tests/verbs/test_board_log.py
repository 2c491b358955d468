"""From a board's text to the cause: examples/firmware, compiled and run here, for Arm, and on bare Cortex-M boards."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from support.devices import one
from support.single_op import T
from tflq.comparison.evidence.dumps import load_dump
from tflq.engine.api.files import save
from tflq.errors import GoldenError, InputError
from tflq.model.ir import view
from tflq.typing import Array

FIRMWARE = suites.ROOT / "examples" / "firmware"
MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
DUMP = suites.ROOT / "golden" / "dumps" / "digits_mobilenet_int8.cmsis_single.npz"

#: Compilers, with what runs the program.
COMPILERS = {
    "c": (["gcc", "-std=c99", "-x", "c"], []),
    "c++": (["g++", "-std=c++11", "-x", "c++"], []),
    "arm": (["arm-linux-gnueabihf-gcc", "-std=c99", "-x", "c", "-static"], ["qemu-arm"]),
    "aarch64": (["aarch64-linux-gnu-gcc", "-std=c99", "-x", "c", "-static"], ["qemu-aarch64"]),
}


def require(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@pytest.mark.parametrize("name", COMPILERS)
def test_what_the_header_prints_is_read_back(name: str, tmp_path: Path) -> None:
    compiler, runner = COMPILERS[name]
    for program in (compiler[0], *runner):
        require(program)
    tensors = load_dump(tflq.load(MODEL), DUMP).tensors
    arrays = [
        f"static const unsigned char t{t}[] = {{{','.join(map(str, v.tobytes()))}}};\n" for t, v in tensors.items()
    ]
    calls = [f'  tflq_log(0, {t}, t{t}, sizeof t{t});\n  printf("[12:00:01] tick\\n");\n' for t in tensors]
    source = tmp_path / "firmware.c"
    source.write_text(f'#include "tflq_log.h"\n{"".join(arrays)}int main(void) {{\n{"".join(calls)}  return 0;\n}}\n')
    program = tmp_path / "firmware"
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([*compiler, *warnings, f"-I{FIRMWARE}", str(source), "-o", str(program)], check=True)
    log = tmp_path / "board.log"
    log.write_bytes(subprocess.run([*runner, str(program)], capture_output=True, check=True).stdout)
    read = load_dump(tflq.load(MODEL), log).tensors
    assert read.keys() == tensors.keys()
    for tensor, value in tensors.items():
        np.testing.assert_array_equal(read[tensor], value)


@pytest.mark.slow
def test_the_logs_of_two_builds_are_compared(tmp_path: Path) -> None:
    model = tflq.load(MODEL)
    graph = view(model)
    fed = graph.inputs[0]
    tensors = {fed: np.ones(graph.tensors[fed].shape, np.int8), **load_dump(model, DUMP).tensors}

    def log(name: str, values: dict[int, Array]) -> Path:
        path = tmp_path / name
        path.write_text("".join(f"tensor {t}: {', '.join(map(str, v.ravel()))}\n" for t, v in values.items()))
        return path

    before = log("before.log", tensors)
    same = tflq.diff_goldens(MODEL, before, log("same.txt", tensors))
    assert (same.verdict.value, same.changed) == ("incomplete", ())  # a dump without some tensors
    output = graph.ops[1].outputs[0]
    moved = tensors | {output: tensors[output] ^ 1}
    found = tflq.diff_goldens(MODEL, before, log("after.log", moved))
    assert [one.index for one in found.changed] == [1]
    for values, words in (({output: moved[output]}, "lacks the inputs"), ({fed: tensors[fed] ^ 1}, "another input")):
        with pytest.raises(GoldenError, match=words):
            tflq.diff_goldens(MODEL, before, log("other.log", values))


def test_a_log_of_another_model_is_called_that(tmp_path: Path) -> None:
    path, model = tmp_path / "other.log", tflq.load(MODEL)
    path.write_text("input: 1, 2, 3, 4, 5, 6, 7, 8, 9\n")
    with pytest.raises(InputError, match="may be of another"):
        load_dump(model, path)
    line = "TFLQ 0 9999 1 0 07"
    path.write_text(f"{line} {zlib.crc32(line.encode()):08x}\n")
    with pytest.raises(InputError, match="is of another model"):
        load_dump(model, path)


#: Boards of QEMU, with their processors.
BOARDS = {"mps2-an385": "cortex-m3", "mps2-an386": "cortex-m4", "mps3-an547": "cortex-m55"}
UNITS, DEPTH, ROWS = 24, 16, 8
#: A FULLY_CONNECTED layer that forgets to round.
LAYER = """
#include "tflq_log.h"
static signed char y[ROWS * UNITS];
int main(void) {
  for (int r = 0; r < ROWS; r++)
    for (int u = 0; u < UNITS; u++) {
      int32_t sum = bias[u];
      for (int k = 0; k < DEPTH; k++) sum += (x[r * DEPTH + k] + 5) * w[u * DEPTH + k];
      int64_t scaled = ((int64_t)sum * MANTISSA) >> (31 - SHIFT);
      scaled -= 3;
      y[r * UNITS + u] = (signed char)(scaled < -128 ? -128 : scaled > 127 ? 127 : scaled);
    }
  tflq_log(0, 0, x, sizeof x);
  tflq_log(0, 3, y, sizeof y);
  return 0;
}
"""


@pytest.mark.parametrize("board", BOARDS)
def test_a_layer_that_a_bare_board_computes_is_explained(board: str, tmp_path: Path) -> None:
    require("arm-none-eabi-gcc")
    require("qemu-system-arm")
    rng = np.random.default_rng(7)
    x, w = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((ROWS, DEPTH), (UNITS, DEPTH)))
    bias = rng.integers(-9000, 9000, UNITS).astype(np.int32)
    scales = np.float32(0.05), np.float32(0.01), np.float32(0.031)
    inputs = [
        T("int8", (ROWS, DEPTH), scales[0], -5),
        T("int8", (UNITS, DEPTH), scales[1], 0, value=w),
        T("int32", (UNITS,), scales[0] * scales[1], 0, value=bias),
    ]
    model = one("FULLY_CONNECTED", inputs, T("int8", (ROWS, UNITS), scales[2], -3))
    save(model, tmp_path / "layer.tflite")
    fraction, shift = np.frexp(np.float64(scales[0] * scales[1]) / np.float64(scales[2]))
    numbers = {"ROWS": ROWS, "UNITS": UNITS, "DEPTH": DEPTH, "MANTISSA": round(fraction * 2**31), "SHIFT": int(shift)}
    arrays = {"signed char x": x, "signed char w": w, "int bias": bias}
    source = tmp_path / "layer.c"
    source.write_text(
        "".join(f"#define {name} {value}\n" for name, value in numbers.items())
        + "".join(f"static const {name}[] = {{{','.join(map(str, a.ravel()))}}};\n" for name, a in arrays.items())
        + LAYER
    )
    target = ["-mthumb", f"-mcpu={BOARDS[board]}", "-nostartfiles", "--specs=rdimon.specs"]
    files = [str(FIRMWARE / "cortex_m.c"), str(source), "-o", str(tmp_path / "layer.elf")]
    options = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{FIRMWARE}", f"-T{FIRMWARE / 'cortex_m.ld'}"]
    subprocess.run(["arm-none-eabi-gcc", *target, *options, *files], check=True)
    emulator = ["qemu-system-arm", "-M", board, "-nographic", "-semihosting-config", "enable=on,target=native"]
    ran = subprocess.run([*emulator, "-kernel", tmp_path / "layer.elf"], capture_output=True, check=True, timeout=60)
    (tmp_path / "board.log").write_bytes(ran.stdout)
    found = tflq.why(tmp_path / "layer.tflite", tmp_path / "board.log", "tflm")
    assert found.fault == "device", str(found)
    assert "towards minus infinity" in str(found)
