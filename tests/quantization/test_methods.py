"""Each documented method runs by itself on two networks, and LiteRT runs its file."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

import tflq
from support.float_graphs import FloatGraph
from tflq.model.ir import Model
from tflq.quantization.recipe import (
    BiasCorrection,
    Objective,
    RangeRule,
    RangeTarget,
    Rounding,
    Solving,
    Watch,
    WatchOrder,
)
from tflq.quantization.recipe_files import recipe_from

#: More samples than are judged without holding a quarter back.
COUNT = 12


def dense() -> Model:
    """Two layers and a softmax."""
    g = FloatGraph(1)
    x = g.given(1, 8)
    for count in (6, 3):
        weights = g.weights(count, g.shape(x)[-1])
        (x,) = g.op("FULLY_CONNECTED", [x, weights, g.bias(count)], {"fused_activation_function": count // 6})
    return g.model([g.unary("SOFTMAX", x, {"beta": 1.0})])


def convolutional() -> Model:
    """A convolution, one for each channel, and the residual addition of the first."""
    g = FloatGraph(2)
    options = {"padding": 0, "fused_activation_function": 1}
    options |= dict.fromkeys(("stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"), 1)
    (x,) = g.op("CONV_2D", [g.given(1, 4, 4, 2), g.weights(3, 3, 3, 2), g.bias(3)], options)
    operands = [x, g.weights(1, 3, 3, 3), g.bias(3)]
    (y,) = g.op("DEPTHWISE_CONV_2D", operands, {**options, "depth_multiplier": 1})
    return g.model(g.op("ADD", [x, y], {"fused_activation_function": 0}))


def words(kind: type[Enum]) -> list[str]:
    return [word.value for word in kind]


METHODS: list[dict[str, Any]] = [
    *({"ranging": {"watch": word}} for word in words(Watch)),
    *({"ranging": {"watch": word, "two_passes": True}} for word in words(Watch)),
    *({"ranging": {"rule": word}} for word in words(RangeRule)),
    *({"ranging": {"order": word}} for word in words(WatchOrder)),
    *(
        {"ranging": {place: {name: word}}}
        for place in ("activations", "weights")
        for name, kind in {"objective": Objective, "solver": Solving, "target": RangeTarget}.items()
        for word in words(kind)
    ),
    *({"refining": {"rounding": word}} for word in words(Rounding)),
    *({"refining": {"bias": word}} for word in words(BiasCorrection)),
    *({"refining": {name: True}} for name in ("match_inputs", "match_variance")),
    {"equalize": 0.5},
]
#: The methods of the default selection; all others are slow together.
FEW = [{"ranging": {"watch": "first-batch"}}, {"refining": {"rounding": "gptq"}}]


@pytest.mark.parametrize("network", [dense, convolutional], ids=lambda network: network.__name__)
@pytest.mark.parametrize(
    "method", [m if m in FEW else pytest.param(m, marks=pytest.mark.slow) for m in METHODS], ids=str
)
def test_a_method_runs_by_itself_and_litert_runs_its_file(method: dict[str, Any], network: Any) -> None:
    model, random = network(), np.random.default_rng(3)
    shape = model.subgraphs[0].tensors[model.subgraphs[0].inputs[0]].shape
    given = random.normal(size=(COUNT, *shape[1:])).astype(np.float32)
    recipe = recipe_from({"candidates": [method], "turns": 1, "input_type": "float32", "output_type": "float32"})
    made = tflq.save(tflq.quantize(model, given, recipe).model)
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(model_content=made)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], given[:1])
    interpreter.invoke()
    assert np.isfinite(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])).all()
