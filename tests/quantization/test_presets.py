"""Every preset in every mode: what it makes loads in LiteRT, with the very bits that tflq gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tflq
from support import suites
from support.float_graphs import min_max
from support.processors import XNNPACK
from tflq.comparison.results import Verdict
from tflq.model.ir import view
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.recipe import PRESETS, TYPES, Mode, Recipe

pytestmark = pytest.mark.slow

GOLDEN = suites.ROOT / "golden" / "models"
FLOAT = GOLDEN / "digits_autoencoder_float.tflite"


def rows(count: int) -> list[np.ndarray]:
    graph = view(tflq.load(FLOAT))
    shape = graph.tensors[graph.inputs[0]].shape
    return list(suites.digits().images[:count].reshape(count, *shape))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.value)
@pytest.mark.parametrize("preset", PRESETS)
def test_litert_gives_the_same_bits(preset: str, mode: Mode) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    if mode is Mode.DYNAMICX4 and XNNPACK is None:
        pytest.skip("no profile has the sums of blocks of XNNPACK on this processor")
    result = tflq.quantize(FLOAT, rows(8), replace(PRESETS[preset], mode=mode))
    found = result.report
    assert found.check.error is None
    assert found.check.report is not None
    assert found.check.report.verdict == Verdict.SAME
    assert not [candidate.error for candidate in found.ranking if candidate.error]
    assert not found.kept_float
    graph, data = view(result.model), TYPES[mode].data
    assert graph.tensors[graph.inputs[0]].type.label == ("float32" if data is None else data.label)
    assert found.comparison.sqnr > (25 if mode is not Mode.INT8X4 else plain(mode, rows(8)) + 9)


def plain(mode: Mode, inputs: list[np.ndarray]) -> float:
    """Signal-to-noise ratio, dB, of the model with observed ranges and all weights rounded to nearest.

    With weights of four bits it is 15.2 dB; presets reach 24.8 to 29.0 dB.
    """
    model = tflq.load(FLOAT)
    samples = [{view(model).inputs[0]: row} for row in inputs]
    return compare_models(model, min_max(model, samples, Recipe(mode=mode)).integer.model, samples).sqnr


def test_presets_go_from_few_configurations_to_many() -> None:
    fast, balanced, best = (PRESETS[name].candidates for name in ("fast", "balanced", "best"))
    assert len(fast) < len(balanced) < len(best)
    for candidates in (fast, balanced, best):
        assert len(set(candidates)) == len(candidates)
