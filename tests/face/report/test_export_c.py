"""Goldens as C: plain gcc compiles them, and the test fails where one bit of one output differs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from support import suites
from support.commands import tflq
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.results import InputFacts
from tflq.errors import LimitError, UnsupportedError
from tflq.face.report.verbs.export import c_name, export_c

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
RECORDED = suites.ROOT / "golden" / "recorded" / "digits_mobilenet_int8.npz"

#: A firmware whose outputs come from a file; the last argument flips a bit of one byte.
INVOKE = """
#include <stdio.h>
#include <string.h>
#include "NAME.h"
static const unsigned char outputs_of[][SIZE] = {VALUES};
static int call;
int NAME_invoke(const void *const inputs[], void *const outputs[]) {
  if (memcmp(inputs[0], INPUT, SIZE_IN)) return 1;
  memcpy(outputs[0], outputs_of[call++], SIZE);
  return 0;
}
"""


def compiler() -> str:
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler")
    return found


def built(place: Path, name: str, golden: dict[str, np.ndarray], flip: int = -1) -> Path:
    """The program: the exported test with a firmware that gives the recorded outputs of one sample."""
    value = golden["s0_out0"].copy()
    if flip >= 0:
        value.reshape(-1).view(np.uint8)[flip] ^= 1
    text = INVOKE.replace("NAME", name).replace("INPUT", f"g_{name}_sample0_input0_data")
    text = text.replace("SIZE_IN", f"g_{name}_sample0_input0_data_size").replace("SIZE", str(value.nbytes))
    (place / "invoke.c").write_text(text.replace("VALUES", f"{{{', '.join(map(str, value.tobytes()))}}}"))
    words = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-DTFLQ_MAIN", "-o", "program", f"{name}_test.c", "invoke.c"]
    subprocess.run([compiler(), *words], cwd=place, check=True)
    return place / "program"


@pytest.mark.parametrize("more", [(), ("--checksums",), ("--model", MODEL)])
def test_gcc_compiles_it_and_one_bit_fails(more: tuple[object, ...], tmp_path: Path) -> None:
    compiler()
    result = tflq("golden", "export", RECORDED, "-o", tmp_path, "--name", "Digits 8", "--samples", "0:1", *more)
    assert result.exit_code == 0, result.output
    golden = dict(np.load(RECORDED))
    right = subprocess.run([built(tmp_path, "digits_8", golden)], capture_output=True, text=True)
    assert (right.returncode, right.stdout) == (0, "digits_8: PASSED\n")
    wrong = subprocess.run([built(tmp_path, "digits_8", golden, flip=3)], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "digits_8_sample0 output0: " + ("CRC-32" if "--checksums" in more else "byte 3") in wrong.stdout
    assert tflq("golden", "export", RECORDED, "-o", tmp_path, "--name", "Digits 8").exit_code == 2  # there already


EXTREMES = {
    "int8": [-128, 127],
    "int32": [-(2**31), 2**31 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "uint64": [0, 2**64 - 1],
    "float32": [np.nan, -0.0, np.inf, 1e-45],
    "bool": [True, False],
}


def golden_of(value: np.ndarray) -> Golden:
    seen = Observation((value,), (value,), MappingProxyType({}))
    return Golden((seen,), False, InputFacts("arrays", None, 1), {})


@pytest.mark.parametrize("kind", EXTREMES)
def test_every_bit_of_every_type_arrives(kind: str, tmp_path: Path) -> None:
    compiler()
    made = export_c(golden_of(np.array(EXTREMES[kind], kind)), "g")
    (tmp_path / "g.h").write_text(made.header)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "g.h"\nint main(void) {\n'
        "  fwrite(g_g_sample0_output0_data, 1, g_g_sample0_output0_data_size, stdout);\n  return 0;\n}\n"
    )
    words = ["-std=c99", "-Wall", "-Wno-unused-const-variable", "-Werror", "-o", "program", "main.c"]
    subprocess.run([compiler(), *words], cwd=tmp_path, check=True)
    ended = subprocess.run([tmp_path / "program"], capture_output=True, check=True)
    assert ended.stdout == np.array(EXTREMES[kind], kind).tobytes()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(LimitError, match="--checksums"):
        export_c(golden_of(np.zeros(5 << 20, np.int8)), "g")
    with pytest.raises(UnsupportedError, match="strings"):
        export_c(golden_of(np.array([b"x"], object)), "g")
    assert c_name("../Ein Modell-8.v2") == "ein_modell_8_v2"


NAMES = (
    *("8bit", "3", "int", "while", "\u6a21\u578b", "\u30c7\u30fc\u30bf", "\u00e9t\u00e9", "\u00b2x", "\u0664"),
    *("_a", "a" * 300, "-", "\U0001f600"),
)


@pytest.mark.parametrize("name", NAMES)
def test_gcc_compiles_any_name(name: str, tmp_path: Path) -> None:
    compiler()
    result = tflq("golden", "export", RECORDED, "-o", tmp_path, "--name", name, "--samples", "0:1")
    assert result.exit_code == 0, result.output
    program = built(tmp_path, c_name(name), dict(np.load(RECORDED)))
    assert subprocess.run([program], capture_output=True).returncode == 0


def test_other_letters_give_other_names() -> None:
    words = ("\u6a21\u578b", "\u6a21", "\u578b", "\u0664", "4", "a" * 200, "a" * 201)
    assert len({c_name(word) for word in words}) == len(words)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,99}", c_name(word)) for word in (*words, *NAMES))
