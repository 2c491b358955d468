"""`tflq/engine/kernels/add_sub.py` against live LiteRT: which shapes vector code takes."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.running import run_once
from support.single_op import FULL, T, build, litert
from tflq.engine.api.interpreter import Interpreter

OPTIONS = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}
SHAPES = [
    ((4, 33), (1, 4, 33)),
    ((1, 1, 4, 33), (4, 33)),
    ((48,), (1, 1, 48)),
    ((4, 33), (33,)),
    ((4, 1, 33), (3, 33)),
    ((2, 3, 17), ()),
    ((1,), (2, 35)),
]


@pytest.mark.slow
@pytest.mark.parametrize("op", OPTIONS)
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_int16_of_unequal_rank(op: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Half of the first operand's codes are ties of the output, which the second's rounding decides."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rng = np.random.default_rng(len(first) + 8 * len(second))
    out = np.broadcast_shapes(first, second)
    operands = [T("int16", first, 0.75), T("int16", second, 0.75 * 2**-16)]
    model = build(op, operands, [T("int16", out, 1.5)], (OPTIONS[op], {}), version=2)
    sample = [rng.integers(-40, 40, shape, dtype=np.int16) for shape in (first, second)]
    report = tflq.verify(model, against="litert-opt", inputs=sample)
    assert (report.verdict.value, report.compared) == ("same", int(np.prod(out)))


@pytest.mark.parametrize("type_", ["int8", "uint8"])
@pytest.mark.parametrize("shape", [(1, 16), (3, 21), (1, 7)])
def test_sums_beyond_16_bits_wrap_in_whole_blocks(type_: str, shape: tuple[int, int]) -> None:
    """Scales so far apart that XNNPACK leaves them, too."""
    zero = 0 if type_ == "int8" else 128
    a, b = T(type_, shape, 1.0, zero), T(type_, shape, 1.0, zero)
    model = build("ADD", [a, b], [T(type_, shape, 1 / 400, zero + 3)], ("AddOptions", {}), version=2)
    rng = np.random.default_rng(5)
    codes = [rng.integers(0, 256, shape).astype(np.uint8).view(type_) for _ in range(2)]
    for resolver, profile in ((FULL, "litert-opt"), ("BUILTIN", "litert-xnnpack")):
        interpreter = Interpreter(model_content=model, profile=profile)
        (made,) = run_once(interpreter, codes)
        (wanted,) = litert(model, codes, resolver)
        assert (made == wanted).all(), profile
