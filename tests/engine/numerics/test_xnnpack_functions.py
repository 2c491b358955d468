"""Functions of floats against the kernels in LiteRT's package, for every vector extension that this processor has."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from support.float_sweeps import floats_of_any_kind
from support.package_kernels import call
from support.sweeping import few
from tflq.engine.numerics import xnnpack as functions
from tflq.engine.runtimes.child.tflq_processor import describe

_EXTENSIONS = ("AVX2", "AVX-512", "AVX-512 VNNI")
_OWN = describe()["vectors"] if platform.machine() in ("x86_64", "AMD64") else ""

#: A kernel of the package, the least extension that it needs, and the function.
KERNELS = {
    "vexp_ukernel__fma3_rational_3_2_div_u32": ("AVX2", functions.EXP),
    "vexp_ukernel__avx512f_rational_3_2_div_u16": ("AVX-512", functions.EXP),
    "vtanh_ukernel__fma3_rational_9_8_div_u16": ("AVX2", functions.TANH),
    "vtanh_ukernel__avx512f_rational_9_8_div_u32": ("AVX-512", functions.TANH),
    "vgelu_ukernel__fma3_rational_12_10_div_u16": ("AVX2", functions.GELU),
    "vgelu_ukernel__avx512f_rational_12_10_div_u32": ("AVX-512", functions.GELU),
    "vapproxgelu_ukernel__fma3_rational_12_10_div_u16": ("AVX2", functions.GELU_APPROXIMATE),
    "vapproxgelu_ukernel__avx512f_rational_12_10_div_u32": ("AVX-512", functions.GELU_APPROXIMATE),
    "vsin_ukernel__fma3_rational_5_4_div_u16": ("AVX2", functions.SIN),
    "vsin_ukernel__avx512f_rational_5_4_div_u32": ("AVX-512", functions.SIN),
    "vcos_ukernel__fma3_rational_5_4_div_u16": ("AVX2", functions.COS),
    "vcos_ukernel__avx512f_rational_5_4_div_u32": ("AVX-512", functions.COS),
    "vhswish_ukernel__fma3_u16": ("AVX2", functions.HARD_SWISH),
    "vhswish_ukernel__avx512f_u32": ("AVX-512", functions.HARD_SWISH),
    "vlog_ukernel__fma3_rational_3_3_div_u16": ("AVX2", functions.AVX2.log),
    "vlog_ukernel__avx512f_rational_3_3_div_u16": ("AVX-512", functions.AVX512.log),
    "vsigmoid_ukernel__avx2_rr1_p5_div_u16": ("AVX2", functions.AVX2.logistic),
    "vsigmoid_ukernel__avx512f_rr2_lut32_p2_perm2_scalef_div_u64": ("AVX-512", functions.AVX512.logistic),
    "velu_ukernel__avx2_rr1_lut4_p4_perm_u32": ("AVX2", functions.AVX2.elu),
    "velu_ukernel__avx512f_rr1_p6_u64": ("AVX-512", functions.AVX512.elu),
}


@pytest.mark.parametrize("name", few(KERNELS, *list(KERNELS)[::5]))
@pytest.mark.parametrize("size", few([1, 45, 1 << 20], 1, 45))
def test_it_has_the_bits_of_the_package(name: str, size: int) -> None:
    extension, function = KERNELS[name]
    if _OWN not in _EXTENSIONS[_EXTENSIONS.index(extension) :]:
        pytest.skip(f"this processor lacks {extension}")
    x = floats_of_any_kind(size)
    got, want = function(x), call(f"xnn_f32_{name}", x, (1, 1, 1))
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), [(x[i], got[i], want[i]) for i in np.flatnonzero(~same)[:4]]
