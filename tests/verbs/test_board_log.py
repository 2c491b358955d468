"""From a board's text to the cause: examples/firmware/tflq_log.h, compiled and run here and for Arm."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.comparison.verification.evidence.dumps import load_dump

HEADER = suites.ROOT / "examples" / "firmware" / "tflq_log.h"
MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
DUMP = suites.ROOT / "golden" / "dumps" / "digits_mobilenet_int8.cmsis_single.npz"

#: Compilers, with what runs the program.
COMPILERS = {
    "c": (["gcc", "-std=c99", "-x", "c"], []),
    "c++": (["g++", "-std=c++11", "-x", "c++"], []),
    "arm": (["arm-linux-gnueabihf-gcc", "-std=c99", "-x", "c", "-static"], ["qemu-arm"]),
    "aarch64": (["aarch64-linux-gnu-gcc", "-std=c99", "-x", "c", "-static"], ["qemu-aarch64"]),
}


@pytest.mark.parametrize("name", COMPILERS)
def test_what_the_header_prints_is_read_back(name: str, tmp_path: Path) -> None:
    compiler, runner = COMPILERS[name]
    for program in (compiler[0], *runner):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    tensors = load_dump(tflq.load(MODEL), DUMP).tensors
    arrays = [
        f"static const unsigned char t{t}[] = {{{','.join(map(str, v.tobytes()))}}};\n" for t, v in tensors.items()
    ]
    calls = [f'  tflq_log(0, {t}, t{t}, sizeof t{t});\n  printf("[12:00:01] tick\\n");\n' for t in tensors]
    source = tmp_path / "firmware.c"
    source.write_text(f'#include "tflq_log.h"\n{"".join(arrays)}int main(void) {{\n{"".join(calls)}  return 0;\n}}\n')
    program = tmp_path / "firmware"
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([*compiler, *warnings, f"-I{HEADER.parent}", str(source), "-o", str(program)], check=True)
    log = tmp_path / "board.log"
    log.write_bytes(subprocess.run([*runner, str(program)], capture_output=True, check=True).stdout)
    read = load_dump(tflq.load(MODEL), log).tensors
    assert read.keys() == tensors.keys()
    for tensor, value in tensors.items():
        np.testing.assert_array_equal(read[tensor], value)
    if name == "c":
        board, archive = tflq.why(MODEL, log), tflq.why(MODEL, DUMP)
        assert board.fault == archive.fault
        assert board.fit is not None
        assert archive.fit is not None
        assert board.fit.fitting == archive.fit.fitting != ()
