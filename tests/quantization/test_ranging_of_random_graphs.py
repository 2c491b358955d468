"""Every way to choose ranges, on random float graphs: the runtime loads what comes out and gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.float_graphs import random_graph, samples
from tflq.engine.api.interpreter import Interpreter
from tflq.model.flatbuf import write
from tflq.quantization.build.build import build
from tflq.quantization.build.task import Task
from tflq.quantization.recipe.ranging import Objective, Order, RangeRule, Ranging, Search, Solving, Target, Watch
from tflq.quantization.recipe.recipe import Methods, Mode, Recipe
from tflq.quantization.scheme.float_graph import prepare

pytestmark = pytest.mark.slow

runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

GOLDEN, OUTPUT = Solving.GOLDEN_SECTION, Target.OUTPUT
RANGINGS = [
    Ranging(Watch.RELATIVE, activations=Search(), weights=Search(Objective.L2, GOLDEN, OUTPUT)),
    Ranging(activations=Search(Objective.L2, GOLDEN, OUTPUT), weights=Search(Objective.KL)),
    Ranging(Watch.VALUES, RangeRule.EXTEND, Search(Objective.KL, Solving.ALTERNATING_ENDS), order=Order.LAYER_BY_LAYER),
    Ranging(Watch.MOVING_AVERAGE, RangeRule.UNSIGNED, Search(Objective.JENSEN_SHANNON, GOLDEN), order=Order.ONLINE),
    Ranging(
        Watch.FIRST_BATCH,
        RangeRule.SYMMETRIC,
        Search(Objective.COSINE, Solving.OCTAV),
        Search(Objective.L2, Solving.ALTERNATING_CODES),
        Order.WEIGHTS_FIRST,
        two_passes=True,
    ),
    Ranging(Watch.PERCENTILE, activations=Search(Objective.WEIGHTED_L2), weights=Search(Objective.EARTH_MOVER)),
]


def outputs(interpreter: Any, sample: dict[int, Any]) -> list[Any]:
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), sample.values(), strict=True):
        scale, zero_point = detail["quantization"]
        if scale:
            limits = np.iinfo(detail["dtype"])
            value = np.clip(np.rint(value / scale) + zero_point, limits.min, limits.max).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ranging", RANGINGS, ids=lambda r: f"{r.watch.value}, {r.order.value}")
def test_the_runtime_gives_the_same_bits(ranging: Ranging, seed: int) -> None:
    model, given = random_graph(seed), samples(random_graph(seed), seed)
    for mode in (Mode.INT8, Mode.INT16X8):
        data = write(build(Task(prepare(model), given, Recipe(mode=mode), Methods(ranging=ranging))).integer.model)
        try:
            live = runtime.Interpreter(
                model_content=data, experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_REF
            )
        except ValueError:  # the reference resolver lacks some operators
            outputs(runtime.Interpreter(model_content=data), given[0])
            continue
        ours = outputs(Interpreter(model_content=data), given[0])
        for got, wanted in zip(ours, outputs(live, given[0]), strict=True):
            np.testing.assert_array_equal(got, wanted)
