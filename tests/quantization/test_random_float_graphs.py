"""Random float graphs quantize in every mode, load in LiteRT and give the very bits that tflq gives."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.float_graphs import min_max, random_graph, samples
from support.running import litert, run_reals
from tflq.comparison.results import Verdict
from tflq.engine.api.interpreter import Interpreter
from tflq.model.flatbuf import write
from tflq.quantization.recipe import Mode, Recipe

pytestmark = pytest.mark.slow

pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

GRAPHS = 50


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_every_mode_gives_the_runtimes_bits(seed: int) -> None:
    model = random_graph(seed)
    given = samples(model, seed)
    for mode in Mode:
        data = write(min_max(model, given, Recipe(mode=mode)).integer.model)
        try:
            interpreter = litert(data)
        except ValueError:  # the reference resolver lacks some operators
            verify_under_the_full_resolver(data)
        else:
            for got, want in zip(
                run_reals(Interpreter(model_content=data), given[0].values()),
                run_reals(interpreter, given[0].values()),
                strict=True,
            ):
                np.testing.assert_array_equal(got, want, err_msg=f"mode {mode.value}")
        run_reals(litert(data, "AUTO"), given[0].values())


def verify_under_the_full_resolver(data: bytes) -> None:
    """Float operators that stay may be close, as far as was measured."""
    report = tflq.verify(data, against="litert-opt", profile="litert-opt")
    assert report.verdict in (Verdict.SAME, Verdict.CLOSE)
