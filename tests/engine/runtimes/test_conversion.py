"""Keras files and SavedModels become float models; where there is no TensorFlow, the extra is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import tflq
from support.pythons import fake_python
from tflq.engine.runtimes.conversion import converted, is_of_tensorflow
from tflq.engine.runtimes.converter import MISSING
from tflq.errors import RuntimeFailed, RuntimeMissing
from tflq.face.cli.main import cli

MAKE = """
import keras, sys
keras.utils.set_random_seed(1)
given = keras.Input((6, 6, 2), name="picture")
x = keras.layers.Conv2D(4, 3, activation="relu")(given)
x = keras.layers.Dense(3, activation="softmax", name="scores")(keras.layers.Flatten()(x))
model = keras.Model(given, x)
model.save(sys.argv[1] + "/m.keras")
model.save(sys.argv[1] + "/m.h5")
model.export(sys.argv[1] + "/saved")
import numpy
numpy.save(sys.argv[1] + "/expected.npy", model(numpy.load(sys.argv[1] + "/x.npy")).numpy())
"""
SOURCES = ("m.keras", "m.h5", "saved")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a model in three forms, inputs x and expected outputs; and the Python that made them."""
    python = os.environ.get("TFLQ_TENSORFLOW_PYTHON", "")
    if not python:
        pytest.skip("TFLQ_TENSORFLOW_PYTHON names no Python that has tensorflow")
    folder = tmp_path_factory.mktemp("keras")
    np.save(folder / "x.npy", np.random.default_rng(0).random((12, 6, 6, 2), np.float32))
    subprocess.run([python, "-c", MAKE, str(folder)], check=True, capture_output=True)
    return folder, python


@pytest.mark.parametrize("source", SOURCES)
def test_a_converted_model_computes_what_keras_computes(source: str, made: tuple[Path, str]) -> None:
    folder, python = made
    interpreter = tflq.Interpreter(model_content=converted(folder / source, python))
    interpreter.allocate_tensors()
    (given,), (wanted,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert given["shape"].tolist() == [1, 6, 6, 2]
    for row, expected in zip(np.load(folder / "x.npy"), np.load(folder / "expected.npy"), strict=True):
        interpreter.set_tensor(given["index"], row[None])
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(wanted["index"])[0], expected, atol=1e-5)


def test_a_keras_file_is_quantized_and_compared(made: tuple[Path, str], tmp_path: Path) -> None:
    folder, python = made
    out = str(tmp_path / "int8.tflite")
    words = [str(folder / "m.keras"), "--calibration", str(folder / "x.npy"), "--recipe", "fast", "--python", python]
    done = CliRunner().invoke(cli, ["quantize", *words, "-o", out])
    assert done.exit_code == 0, done.output
    again = ["compare", str(folder / "m.keras"), out, "--inputs", str(folder / "x.npy"), "--python", python]
    assert "same top-1 in 12 of 12 samples" in CliRunner().invoke(cli, again).stdout
    api = tflq.quantize(folder / "saved", folder / "x.npy", "fast", python=python)
    assert api.report.comparison.sqnr > 25


def test_the_extra_is_named_where_tensorflow_is_missing(tmp_path: Path) -> None:
    (tmp_path / "m.keras").write_bytes(b"")
    python = fake_python(tmp_path, f"echo No module named tensorflow; exit {MISSING}")
    np.save(tmp_path / "x.npy", np.zeros((1, 1), np.float32))
    with pytest.raises(RuntimeMissing, match="install the extra `tensorflow`"):
        tflq.quantize(tmp_path / "m.keras", tmp_path / "x.npy", python=python)
    words = ["quantize", str(tmp_path / "m.keras"), "--calibration", str(tmp_path / "x.npy"), "--python", python]
    assert CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "o.tflite")]).exit_code == 4
    with pytest.raises(RuntimeMissing, match="no Python at"):
        converted(tmp_path / "m.keras", "/no/such/python")


def test_a_keras_model_in_memory_is_saved_for_the_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class KerasModel:
        def save(self, path: Path) -> None:
            path.write_bytes(b"from memory")

    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(Model=KerasModel))
    assert is_of_tensorflow(KerasModel())
    assert converted(KerasModel(), fake_python(tmp_path, 'cp "$2" "$3"')) == b"from memory"


def test_what_tensorflow_says_is_told(tmp_path: Path) -> None:
    python = fake_python(tmp_path, "echo no model at all; exit 1")
    with pytest.raises(RuntimeFailed, match=r"cannot convert .*no model at all"):
        converted(tmp_path / "m.h5", python)


def test_paths_tell_what_needs_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    assert not is_of_tensorflow(tmp_path / "saved")
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    assert is_of_tensorflow(str(tmp_path / "saved"))
    assert is_of_tensorflow("M.H5")
    assert not is_of_tensorflow("m.tflite")
    assert not is_of_tensorflow(b"TFL3")
