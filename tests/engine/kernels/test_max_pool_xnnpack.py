"""MAX_POOL_2D of floats by XNNPACK, with NaN, infinities, zeros of both signs and subnormals among the values."""

from __future__ import annotations

from typing import Any

import numpy as np

import tflq
from support.each import each
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, build, litert
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name

Array = np.ndarray[Any, Any]
STRANGE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38], np.float32)


def model(rng: np.random.Generator) -> tuple[bytes, tuple[int, ...]]:
    kernel = rng.integers(1, 5, 2)
    stride, size = [int(rng.integers(1, k + 1)) for k in kernel], rng.integers(4, 12, 2)
    padding = int(rng.integers(0, 2))
    same = [-(-n // s) for n, s in zip(size, stride, strict=True)]
    out = [(n - k) // s + 1 for n, k, s in zip(size, kernel, stride, strict=True)] if padding else same
    channels = int(rng.integers(1, 20))
    shape = (2, *(int(n) for n in size), channels)
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "filter_height": int(kernel[0]),
        "filter_width": int(kernel[1]),
        "fused_activation_function": int(rng.choice([0, 0, 1, 2, 3])),
    }
    y = T("float32", (2, *(int(n) for n in out), channels))
    return build("MAX_POOL_2D", [T("float32", shape)], [y], ("Pool2DOptions", options)), shape


@has_xnnpack_profile
@each("seed", range(40))
def test_pools(seed: int) -> None:
    rng = np.random.default_rng([41, seed])
    file, shape = model(rng)
    x = rng.standard_normal(shape).astype(np.float32) * 4
    for share in (0.0, 0.2):
        fed = np.where(rng.random(shape) < share, rng.choice(STRANGE, shape), x)
        assert_same(run(file, [fed], XNNPACK or ""), litert(file, [fed], "BUILTIN"), f"{seed} {share}")


def test_it_is_exact() -> None:
    file, _ = model(np.random.default_rng(1))
    (step,) = make_plan(tflq.load(file), by_name("litert-xnnpack")).steps
    assert step.promise.word == "exact"
