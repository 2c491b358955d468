"""Images, real values and floats of dumps become what an integer input takes; errors say what is missing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import commands, suites
from tflq.comparison.evidence.dumps import dump_of, load_dumps
from tflq.comparison.inputs.prepare import InputPreparation, preparation, quantized
from tflq.comparison.inputs.read import input_specs, make_inputs
from tflq.engine.api.files import load
from tflq.errors import GoldenError, InputError, TypeMismatchError
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Subgraph, TensorSpec, TensorType, view

PATH = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
MODEL = load(PATH)
SPEC = input_specs(MODEL)[0]
SCALE, ZERO = float(SPEC.quantization.scale[0]), int(SPEC.quantization.zero_point[0])


def run(*words: object, **options: Any) -> Any:
    return commands.tflq("run", *words, **options)


def picture(path: Path, value: int) -> Path:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    _, height, width, channels = SPEC.shape
    images.fromarray(np.full((height, width, channels), value, np.uint8).squeeze()).save(path)
    return path


def test_real_values_are_rounded_half_away_from_zero_and_clamped() -> None:
    steps = np.array([0.5, -0.5, 1.5, 2.4999, 1000, -1000], np.float32)
    expected = np.clip(np.array([1, -1, 2, 2, 1000, -1000]) + ZERO, -128, 127)
    scaled = (steps * np.float32(SCALE)).astype(np.float32)
    back = (scaled / np.float32(SCALE)).astype(np.float32)
    kept = back == steps  # where the product with the scale lost nothing
    assert kept[[0, 1, 4, 5]].all()
    assert quantized(SPEC, scaled)[kept].tolist() == expected[kept].tolist()
    with pytest.raises(InputError, match="NaN"):
        quantized(SPEC, np.full(SPEC.shape, np.nan, np.float32))


def test_quantized_inputs_are_what_litert_s_quantize_gives() -> None:
    """tflq's QUANTIZE kernel is held against LiteRT elsewhere."""
    from support.toys import graph, tensor
    from tflq.model.ir import TensorType

    real = np.random.default_rng(0).normal(0, SCALE * 80, SPEC.shape).astype(np.float32)
    model = graph(
        [tensor(TensorType.FLOAT32, SPEC.shape), tensor(TensorType.INT8, SPEC.shape, quantization=SPEC.quantization)],
        [("QUANTIZE", [0], [1])],
        [0],
        [1],
    )
    interpreter = tflq.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, real)
    interpreter.invoke()
    assert np.array_equal(quantized(SPEC, real), interpreter.get_tensor(1))


def test_floats_for_an_integer_input_name_the_remedy() -> None:
    real = np.zeros(SPEC.shape, np.float32)
    with pytest.raises(TypeMismatchError, match="--quantize-inputs"):
        make_inputs(MODEL, [real])
    (made,) = make_inputs(MODEL, [real], how=InputPreparation(quantize=True)).samples
    assert (made[0].dtype, set(made[0].ravel().tolist())) == (np.int8, {ZERO})


def test_a_folder_of_images_is_as_many_samples(tmp_path: Path) -> None:
    for k, value in enumerate((0, 255)):
        picture(tmp_path / f"{k}.png", value)
    made = make_inputs(MODEL, tmp_path, how=preparation(0, 255))
    expected = [quantized(SPEC, np.full(SPEC.shape, real, np.float32)) for real in (0, 1)]
    assert [np.array_equal(sample[0], e) for sample, e in zip(made.samples, expected, strict=True)] == [True, True]
    with pytest.raises(InputError, match="--mean"):
        make_inputs(MODEL, tmp_path)


def test_run_lists_the_likeliest_classes_of_an_image(tmp_path: Path) -> None:
    image = picture(tmp_path / "a.png", 100)
    (tmp_path / "labels.txt").write_text("".join(f"digit {k}\n" for k in range(10)))
    words = ["--inputs", image, "--mean", "0", "--std", "255", "--labels", tmp_path / "labels.txt"]
    done = run(PATH, *words, "-o", tmp_path / "o.npz")
    assert done.exit_code == 0, done.stderr
    (codes,) = np.load(tmp_path / "o.npz").values()
    best = np.argsort(-codes.ravel().astype(int), kind="stable")[:5]
    line = done.stdout.splitlines()[0]
    assert line.startswith("top 5 of ")
    assert [part.split()[1] for part in line.partition(": ")[2].split(", ")] == [str(k) for k in best]


def test_a_dash_is_standard_input_and_output() -> None:
    done = run("-", "-o", "-", input=PATH.read_bytes())
    assert done.exit_code == 0, done.stderr
    assert len(np.load(io.BytesIO(done.stdout_bytes)).files) == 1


@pytest.mark.parametrize("kind", ["dequantized", "whole"])
def test_a_dump_may_hold_floats(kind: str) -> None:
    spec = next(t for t in view(MODEL).tensors if t.quantization is not None and len(t.quantization.scale) == 1)
    index = view(MODEL).tensors.index(spec)
    codes = np.random.default_rng(1).integers(-128, 128, spec.shape).astype(np.int8)
    scale, zero = np.float32(spec.quantization.scale[0]), int(spec.quantization.zero_point[0])
    floats = (codes.astype(np.float32) - zero) * scale if kind == "dequantized" else codes.astype(np.float32)
    assert np.array_equal(dump_of(MODEL, {index: floats}).tensors[index], codes)
    with pytest.raises(InputError, match="not dequantized codes"):
        dump_of(MODEL, {index: floats + np.float32(0.3 * scale)})


def test_a_golden_without_inputs_takes_them_from_elsewhere(tmp_path: Path) -> None:
    golden = suites.ROOT / "golden" / "recorded" / "digits_mobilenet_int8.npz"
    if not golden.exists():
        pytest.skip("the recording is not there")
    entries = dict(np.load(golden))
    inputs = {key: value for key, value in entries.items() if "_in" in key}
    np.savez(tmp_path / "inputs.npz", **inputs)
    np.savez(tmp_path / "outputs.npz", **{k: v for k, v in entries.items() if "_out" in k})
    with pytest.raises(GoldenError, match="--inputs"):
        tflq.verify(PATH, tmp_path / "outputs.npz")
    report = tflq.verify(PATH, tmp_path / "outputs.npz", tmp_path / "inputs.npz")
    assert (report.verdict.value, report.inputs.samples) == ("same", len(inputs))


def test_a_dump_of_outputs_only_leads_to_the_inputs(tmp_path: Path) -> None:
    out = view(MODEL).outputs[0]
    shape = view(MODEL).tensors[out].shape
    np.savez(tmp_path / "d.npz", **{f"t{out}": np.zeros(shape, np.int8)})
    assert len(load_dumps(MODEL, tmp_path / "d.npz")) == 1
    done = commands.tflq("explain", PATH, "--dump", tmp_path / "d.npz", "--json")
    assert "--inputs" in json.dumps(json.loads(done.stdout))


def test_the_hint_spreads_an_image_over_all_codes(tmp_path: Path) -> None:
    result = run(PATH, "--inputs", picture(tmp_path / "grey.png", 7))
    assert result.exit_code == 2
    words = result.stderr.rpartition("; ")[2].split()
    mean, std = (float(words[words.index(word) + 1]) for word in ("--mean", "--std"))
    codes = preparation(mean, std).apply(SPEC, np.arange(256))
    assert codes.tolist() == list(range(-128, 128))


@pytest.mark.parametrize(("std", "warns"), [("1", True), ("1000000", True), ("255", False)])
def test_few_codes_for_many_values_are_warned_of(tmp_path: Path, std: str, warns: bool) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    _, height, width, _ = SPEC.shape
    ramp = np.linspace(0, 255, height * width).reshape(height, width).astype(np.uint8)
    images.fromarray(ramp).save(tmp_path / "ramp.png")
    for words in ([], ["--json"]):
        result = run(PATH, "--inputs", tmp_path / "ramp.png", "--std", std, *words)
        assert result.exit_code == 0
        assert result.stderr.count("tflq: warning: ") == warns, result.stderr
        assert ("codes for" in result.stderr) == warns
    assert json.loads(result.stdout)


def test_one_value_is_not_warned_of(tmp_path: Path) -> None:
    result = run(PATH, "--inputs", picture(tmp_path / "grey.png", 7), "--std", "255")
    assert (result.exit_code, result.stderr) == (0, "")


# --- the order of colours ---------------------------------------------------------------------------------------------


def coloured(channels: int) -> Model:
    """A model that returns its uint8 image."""
    tensors = tuple(TensorSpec(name, TensorType.UINT8, (1, 2, 2, channels)) for name in ("x", "y"))
    shape = TensorSpec("shape", TensorType.INT32, (4,), buffer=1)
    graph = Subgraph((*tensors, shape), (0,), (1,), (Operator(0, (0, 2), (1,)),))
    size = np.array((1, 2, 2, channels), np.int32).tobytes()
    return Model(3, (OperatorCode(22, "RESHAPE"),), (graph,), (Buffer(), Buffer(size)))


@pytest.mark.parametrize(("channels", "mode"), [(3, "RGB"), (4, "RGBA")])
def test_bgr_exchanges_red_and_blue_of_images(channels: int, mode: str, tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pixels = np.arange(4 * channels, dtype=np.uint8).reshape(2, 2, channels)
    photos = tmp_path / "photos"
    photos.mkdir()
    images.fromarray(pixels).convert(mode).save(photos / "a.png")
    tflq.save(coloured(channels), tmp_path / "m.tflite")
    for words, order in (([], [0, 1, 2, 3]), (["--bgr"], [2, 1, 0, 3])):
        for given in (photos / "a.png", f"x={photos / 'a.png'}", photos):
            result = run(tmp_path / "m.tflite", "--inputs", given, "-o", tmp_path / "out.npz", "--force", *words)
            assert result.exit_code == 0, result.output
            with np.load(tmp_path / "out.npz") as found:
                assert np.array_equal(found["y"][0], pixels[..., order[:channels]])


def test_bgr_without_colours_is_refused(tmp_path: Path) -> None:
    result = run(PATH, "--inputs", picture(tmp_path / "grey.png", 7), "--std", "255", "--bgr")
    assert (result.exit_code, "has one channel" in result.stderr) == (2, True)
    result = run(PATH, "--bgr")
    assert (result.exit_code, "none is given" in result.stderr) == (2, True)


def test_calibration_reads_images_in_that_order(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    tensors = tuple(TensorSpec(name, TensorType.FLOAT32, (1, 2, 2, 3)) for name in ("x", "y"))
    graph = Subgraph(tensors, (0,), (1,), (Operator(0, (0,), (1,)),))
    model = Model(3, (OperatorCode(101, "ABS"),), (graph,), (Buffer(),))
    images.fromarray(np.full((2, 2, 3), (10, 20, 30), np.uint8)).save(tmp_path / "a.png")
    for bgr, first in ((False, 10), (True, 30)):
        (sample,) = tflq.Calibration(model, tmp_path, bgr=bgr)
        assert sample[0][0, 0, 0, 0] == first
