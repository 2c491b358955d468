"""`tflq/kernels/add_sub/optimized.py` against live LiteRT: which shapes vector code takes."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build

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
