"""Roots from the processor's estimate, compared with the kernels in LiteRT's package on the processor of the data."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from support.float_sweeps import floats_of_any_kind
from support.package_kernels import call
from tflq.engine.numerics import estimates
from tflq.engine.numerics import xnnpack as functions

KERNELS = {
    "vrsqrt_ukernel__avx512f_rsqrt_u32": functions.AVX512.rsqrt,
    "vsqrt_ukernel__avx512f_rsqrt_u16": functions.AVX512.sqrt,
}


def signature() -> int:
    """The CPUID signature of this processor, 0 where Linux does not describe it."""
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if "AuthenticAMD" not in text:
        return 0
    family, model, stepping = (
        int(re.findall(rf"^{name}\s*: (\d+)$", text, re.MULTILINE)[0]) for name in ("cpu family", "model", "stepping")
    )
    return (family - 15) << 20 | (model >> 4) << 16 | 15 << 8 | (model & 15) << 4 | stepping


@pytest.mark.parametrize("name", KERNELS)
def test_it_has_the_bits_of_the_package(name: str) -> None:
    if hex(signature()) not in estimates.CPU:
        pytest.skip(f"the estimate was read on {estimates.CPU}")
    function, x = KERNELS[name], floats_of_any_kind(1 << 20)
    assert function is not None
    got, want = function(x), call(f"xnn_f32_{name}", x)
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), [(x[i], got[i], want[i]) for i in np.flatnonzero(~same)[:4]]


@pytest.mark.parametrize("function", KERNELS.values())
def test_roots_are_within_three_units_of_the_last_place(function: functions.Elementwise) -> None:
    x = np.exp(np.random.default_rng(0).uniform(-80, 80, 1 << 16)).astype(np.float32)
    exact = np.sqrt(x.astype(np.float64))
    exact = exact if function is functions.AVX512.sqrt else 1 / exact
    assert (np.abs(function(x) - exact) <= 3 * np.spacing(exact.astype(np.float32))).all()
