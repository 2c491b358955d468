"""Products, lines and threads as numba compiles them for older processors, of which this one has every feature."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tflq.engine.jit.processors import features, machine

TESTS = Path(__file__).parents[2]
CHOSEN = (*(f"engine/microkernels/test_{name}.py" for name in ("products", "lines", "called", "sums")),)

_SSE = "+sse2 +ssse3 +sse4.1 +sse4.2 +popcnt +cx16"
_AVX2 = f"{_SSE} +avx +avx2 +fma +f16c +bmi +bmi2"
_AVX512 = f"{_AVX2} +avx512f +avx512bw +avx512cd +avx512dq +avx512vl"
#: The form that bytes take, LLVM's name of a processor, and features; numba derives none of them from the name.
PROCESSORS = (
    ("sse2", "x86-64", "+sse2 +cx16"),
    ("avx2", "haswell", _AVX2),
    ("avx-vnni", "alderlake", f"{_AVX2} +avxvnni"),
    ("avx512-bw", "skylake-avx512", _AVX512),
    ("avx512-vnni", "icelake-server", f"{_AVX512} +avx512vnni"),
)


def test_processors_stand_for_their_forms() -> None:
    from tflq.engine.microkernels.kernel import ranked

    for name, _, words in PROCESSORS:
        assert ranked("x86_64", words.replace("+", "").split(), False)[0].name == name


@pytest.mark.slow
@pytest.mark.parametrize(("form", "cpu", "words"), PROCESSORS, ids=[name for name, *_ in PROCESSORS])
def test_on_processor(form: str, cpu: str, words: str) -> None:
    missing = set(words.replace("+", "").split()) - features()
    if machine() != "x86_64" or missing:
        pytest.skip(f"this processor lacks {', '.join(sorted(missing)) or 'x86-64'}")
    environment = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": words.replace(" ", ",")}
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "-m", "not slow"]
    run = subprocess.run(
        [*command, *(str(TESTS / test) for test in CHOSEN)],
        env=environment,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert f"form {form}" in run.stdout
