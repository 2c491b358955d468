"""The machine code that an installation makes is that of models in golden/, the most common first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import ship_code

import tflq
from support import suites


def test_the_first_models_are_there_and_come_first() -> None:
    made = [(path.stem, profile) for path, profile in ship_code.work()]
    assert made[: len(ship_code.FIRST)] == [(name, "litert-ref") for name in ship_code.FIRST]
    assert len(set(made)) == len(made)
    assert ship_code.POINTWISE in ship_code.FIRST


def test_one_pixel_has_the_results_of_that_pixel() -> None:
    file = Path(suites.ROOT, "golden/singleop/models", f"{ship_code.POINTWISE}.tflite")
    whole, pixel = tflq.Interpreter(str(file)), tflq.Interpreter(model_content=ship_code.one_pixel(file))
    (at,), (out,) = whole.get_input_details(), whole.get_output_details()
    image = np.random.default_rng(0).integers(0, 256, at["shape"], dtype=np.uint8)
    for interpreter, value in ((whole, image), (pixel, image[:, :1, :1])):
        interpreter.allocate_tensors()
        interpreter.set_tensor(at["index"], value)
        interpreter.invoke()
    expected = whole.get_tensor(out["index"])[:, :1, :1]
    assert np.array_equal(pixel.get_tensor(out["index"]), expected)
