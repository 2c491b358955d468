"""The machine code that an installation makes is that of models in golden/, the most common first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import ship_code

import tflq
from support import suites
from support.running import run
from tflq.engine.jit.code_store import shipped_unpacked
from tflq.engine.jit.processors import levels


def test_the_first_models_are_there_and_come_first() -> None:
    common, made = (
        [(piece.name, piece.profile) for piece in pieces()] for pieces in (ship_code.common, ship_code.work)
    )
    assert made[: len(common)] == common
    assert common[: len(ship_code.PROFILES)] == [(ship_code.FIRST, profile) for profile in ship_code.PROFILES]
    assert len(set(made)) == len(made)
    assert {profile for _, profile in common} == set(ship_code.PROFILES)
    assert {*ship_code.CONTRACTIONS} <= {path.stem for path in ship_code.SINGLE.iterdir()}


def test_one_pixel_has_the_results_of_that_pixel() -> None:
    file = Path(suites.ROOT, "golden/singleop/models", f"{ship_code.POINTWISE}.tflite")
    whole, pixel = tflq.Interpreter(str(file)), tflq.Interpreter(model_content=ship_code.one_pixel(tflq.load(file)))
    (at,), (out,) = whole.get_input_details(), whole.get_output_details()
    image = np.random.default_rng(0).integers(0, 256, at["shape"], dtype=np.uint8)
    for interpreter, value in ((whole, image), (pixel, image[:, :1, :1])):
        interpreter.allocate_tensors()
        interpreter.set_tensor(at["index"], value)
        interpreter.invoke()
    expected = whole.get_tensor(out["index"])[:, :1, :1]
    assert np.array_equal(pixel.get_tensor(out["index"]), expected)


@pytest.mark.parametrize(
    "name",
    [*ship_code.CONTRACTIONS[:1], *(pytest.param(n, marks=pytest.mark.slow) for n in ship_code.CONTRACTIONS[1:])],
)
def test_other_numbers_of_channels_repeat_the_first_ones(name: str) -> None:
    model = tflq.load(Path(suites.ROOT, "golden/singleop/models", f"{name}.tflite"))
    (graph,) = model.subgraphs
    codes = (
        np.random.default_rng(0)
        .integers(0, 128, graph.tensors[graph.inputs[0]].shape)
        .astype("uint8" if "u8" in name else "int8")
    )
    (whole,) = run(model, [codes], "litert-ref")
    for count in ship_code.CHANNELS:
        (repeated,) = run(ship_code.with_channels(model, count), [codes], "litert-ref")
        assert np.array_equal(repeated, np.take(whole, np.arange(count) % whole.shape[-1], axis=-1))


def test_variants_are_images_and_pixels_of_every_number_of_channels() -> None:
    model = tflq.load(Path(suites.ROOT, "golden/singleop/models", f"{ship_code.POINTWISE}.tflite"))
    shapes = [one.subgraphs[0].tensors[one.subgraphs[0].outputs[0]].shape for one in ship_code.variants(model)]
    assert shapes[:2] == [(1, 8, 8, ship_code.CHANNELS[0]), (1, 1, 1, ship_code.CHANNELS[0])]
    assert len(shapes) == 2 * len(ship_code.CHANNELS)


@pytest.mark.slow
def test_equal_words_give_equal_files(tmp_path: Path) -> None:
    """An installation depends on no clock, and not on the number of processes."""
    level = levels()[0].name
    for number in (1, 2):
        ship_code.make([level], tmp_path / str(number), number, True)
    one, two = ((tmp_path / str(number) / f"{level}.code").read_bytes() for number in (1, 2))
    assert one == two
    names = {name.rpartition("-")[0] for name in shipped_unpacked(one)}
    assert {f"tflq.engine.microkernels.{name}_into" for name in ("product.tile", "taps.line", "sums.sum")} <= names
