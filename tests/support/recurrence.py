"""Random operands of recurrent operators, and runs that carry a state from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support import noting
from support.running import run_once
from support.single_op import Array, T, _bits
from tflq.engine.api.interpreter import Interpreter


def power(rng: np.random.Generator, low: float, high: float) -> float:
    """A scale between 2**low and 2**high; two times in five a power of two."""
    exponent = rng.uniform(low, high)
    return float(2.0 ** (round(exponent) if rng.random() < 0.4 else exponent))


def floats(rng: np.random.Generator, *shape: int, spread: float = 0.5) -> T:
    """Constant float32 weights."""
    return T("float32", shape, value=(rng.standard_normal(shape) * spread).astype(np.float32))


def weights(rng: np.random.Generator, kind: str, *shape: int) -> T:
    """Constant weights; half of the 8-bit ones hold -128, whose sign the source's products lose in places."""
    if kind == "float32":
        return floats(rng, *shape)
    codes = rng.integers(-128 if rng.random() < 0.5 else -127, 128, shape)
    return T(kind, shape, rng.uniform(0.001, 0.01), value=codes if kind == "int8" else codes + 128)


def codes(rng: np.random.Generator, type_: str, low: float, high: float, *shape: int) -> T:
    """Constant symmetric integer weights of a scale between 2**low and 2**high."""
    top = np.iinfo(type_).max
    return T(type_, shape, power(rng, low, high), value=rng.integers(-top, top + 1, shape))


def state(type_: str, *shape: int, scale: float | None = None, zero_point: int = 0) -> T:
    """A variable."""
    return T(type_, shape, scale, zero_point, variable=True)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    """Random activations; the last element of every row has the largest magnitude and others lie halfway between
    its codes."""
    x = rng.standard_normal(shape).astype(np.float32)
    if rng.random() < 0.3 and shape[-1] > 1:
        x = (rng.integers(-100, 100, shape) + rng.choice([0.5, -0.5, 0.49999997], shape)).astype(np.float32)
        x[..., -1] = 127
    return x


def assert_same_runs(model: bytes, runs: Sequence[Sequence[Array]], note: object = "") -> int:
    """Compare several runs, each going on from the state that the one before left; gives how many values differ."""
    runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    resolver = runtime.OpResolverType.BUILTIN_REF
    live: Any = runtime.Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=resolver)
    ours = Interpreter(model_content=model)
    found: set[int] = set()
    for number, inputs in enumerate(runs):
        wanted = run_once(live, inputs)
        for got, want in zip(run_once(ours, inputs), wanted, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape), note
            differ = np.count_nonzero(_bits(got) != _bits(want))
            assert not differ, (note, f"run {number}: {differ} of {got.size} differ")
            found.update(_bits(want).reshape(-1).tolist())
        noting.note(model, [want.size for want in wanted])
    return len(found)
