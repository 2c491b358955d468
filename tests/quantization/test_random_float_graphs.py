"""Random float graphs quantize in every mode, load in LiteRT and give the very bits that tflq gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from support.float_graphs import Array, min_max, random_graph, samples
from tflq.comparison.verification import Verdict
from tflq.engine.api.interpreter import Interpreter
from tflq.model.flatbuf import write
from tflq.quantization.recipe.recipe import Mode, Recipe

pytestmark = pytest.mark.slow

runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

GRAPHS = 50


def outputs(interpreter: Any, inputs: dict[int, Array]) -> list[Array]:
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs.values(), strict=True):
        interpreter.set_tensor(detail["index"], as_codes(value, detail))
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def as_codes(value: Array, detail: Any) -> Array:
    scale, zero_point = detail["quantization"]
    if detail["dtype"] == np.float32 or not scale:
        return value
    limits = np.iinfo(detail["dtype"])
    codes: Array = np.clip(np.rint(value / scale) + zero_point, limits.min, limits.max).astype(detail["dtype"])
    return codes


def live(data: bytes, resolver: Any) -> Any:
    return runtime.Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=resolver)


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_every_mode_gives_the_runtimes_bits(seed: int) -> None:
    model = random_graph(seed)
    given = samples(model, seed)
    for mode in Mode:
        data = write(min_max(model, given, Recipe(mode=mode)).integer.model)
        try:
            interpreter = live(data, runtime.OpResolverType.BUILTIN_REF)
        except ValueError:  # the reference resolver lacks some operators
            verify_under_the_full_resolver(data)
        else:
            for got, want in zip(
                outputs(Interpreter(model_content=data), given[0]), outputs(interpreter, given[0]), strict=True
            ):
                np.testing.assert_array_equal(got, want, err_msg=f"mode {mode.value}")
        outputs(live(data, runtime.OpResolverType.AUTO), given[0])


def verify_under_the_full_resolver(data: bytes) -> None:
    """Float operators that stay may be close, as far as was measured."""
    report = tflq.verify(data, against="litert-opt", profile="litert-opt")
    assert report.verdict in (Verdict.SAME, Verdict.CLOSE)
