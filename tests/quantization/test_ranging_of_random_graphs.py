"""Every way to choose ranges, on random float graphs: the runtime loads what comes out and gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from support.float_graphs import random_graph, samples
from support.running import litert, run_reals
from tflq.engine.api.interpreter import Interpreter
from tflq.model.flatbuf import write
from tflq.quantization.build.build import Task, build
from tflq.quantization.recipe import (
    Methods,
    Mode,
    Objective,
    RangeRule,
    RangeTarget,
    Ranging,
    Recipe,
    Search,
    Solving,
    Watch,
    WatchOrder,
)
from tflq.quantization.scheme.float_graph import prepare

pytestmark = pytest.mark.slow

pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

GOLDEN, OUTPUT = Solving.GOLDEN_SECTION, RangeTarget.OUTPUT
RANGINGS = [
    Ranging(Watch.RELATIVE, activations=Search(), weights=Search(Objective.L2, GOLDEN, OUTPUT)),
    Ranging(activations=Search(Objective.L2, GOLDEN, OUTPUT), weights=Search(Objective.KL)),
    Ranging(
        Watch.VALUES, RangeRule.EXTEND, Search(Objective.KL, Solving.ALTERNATING_ENDS), order=WatchOrder.LAYER_BY_LAYER
    ),
    Ranging(
        Watch.MOVING_AVERAGE, RangeRule.UNSIGNED, Search(Objective.JENSEN_SHANNON, GOLDEN), order=WatchOrder.ONLINE
    ),
    Ranging(
        Watch.FIRST_BATCH,
        RangeRule.SYMMETRIC,
        Search(Objective.COSINE, Solving.OCTAV),
        Search(Objective.L2, Solving.ALTERNATING_CODES),
        WatchOrder.WEIGHTS_FIRST,
        two_passes=True,
    ),
    Ranging(Watch.PERCENTILE, activations=Search(Objective.WEIGHTED_L2), weights=Search(Objective.EARTH_MOVER)),
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ranging", RANGINGS, ids=lambda r: f"{r.watch.value}, {r.order.value}")
def test_the_runtime_gives_the_same_bits(ranging: Ranging, seed: int) -> None:
    model, given = random_graph(seed), samples(random_graph(seed), seed)
    for mode in (Mode.INT8, Mode.INT16X8):
        data = write(build(Task(prepare(model), given, Recipe(mode=mode), Methods(ranging=ranging))).integer.model)
        try:
            live = litert(data)
        except ValueError:  # the reference resolver lacks some operators
            run_reals(litert(data, "AUTO"), given[0].values())
            continue
        ours = run_reals(Interpreter(model_content=data), given[0].values())
        for got, wanted in zip(ours, run_reals(live, given[0].values()), strict=True):
            np.testing.assert_array_equal(got, wanted)
