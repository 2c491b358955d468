"""Keras files and SavedModels become float models; where there is no TensorFlow, the extra is named."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tflq
from support import commands, suites
from support.pythons import fake_python as plain_python
from support.running import run_once
from support.single_op import T, build
from tflq.engine.runtimes.conversion import conversions, converter_of
from tflq.engine.runtimes.converter import CANNOT, MISSING
from tflq.errors import CalibrationError, RuntimeFailed, RuntimeMissing
from tflq.quantization.source import float_model
from tflq.typing import Array

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
#: A converter that writes its own words as a model, and no values to check it with.
WRITE = 'printf "$2 $3" > "$5"; printf \'{"by": "fake 1.0"}\' > "${5%.tflite}.json"; cp "$0.npz" "${5%.tflite}.npz"'
MODELS = Path(__file__).resolve().parents[3] / "golden/models"
SOURCES = ("m.keras", "m.h5", "saved")


def fake_python(folder: Path, script: str, **values: Array) -> str:
    """The path of a Python that runs a script of the shell, and the values that a converter beside it computed."""
    python = plain_python(folder, script)
    np.savez(f"{python}.npz", **values)
    return python


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
    interpreter = tflq.Interpreter(model_content=next(conversions(folder / source, python)).data)
    interpreter.allocate_tensors()
    (given,), (wanted,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert given["shape"].tolist() == [1, 6, 6, 2]
    assert given["shape_signature"].tolist() == [-1, 6, 6, 2]
    for row, expected in zip(np.load(folder / "x.npy"), np.load(folder / "expected.npy"), strict=True):
        interpreter.set_tensor(given["index"], row[None])
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(wanted["index"])[0], expected, atol=1e-5)


MAKE_ONNX = """
import numpy, onnx, sys
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
random = numpy.random.default_rng(1)
constants = {"w": random.normal(0, 0.4, (4, 3, 3, 3)), "f": random.normal(0, 0.3, (5, 144))}
nodes = [
    helper.make_node("Conv", ["picture", "w"], ["c"]),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("Flatten", ["r"], ["v"]),
    helper.make_node("Gemm", ["v", "f"], ["scores"], transB=1),
]
shapes = {"picture": (3, 8, 8), "scores": (5,)}
edges = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *shape]) for name, shape in shapes.items()]
held = [numpy_helper.from_array(value.astype(numpy.float32), name) for name, value in constants.items()]
graph = helper.make_graph(nodes, "net", edges[:1], edges[1:], held)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
onnx.save(model, sys.argv[1] + "/m.onnx")
given = numpy.load(sys.argv[1] + "/x.npy").transpose(0, 3, 1, 2)
numpy.save(sys.argv[1] + "/expected.npy", ReferenceEvaluator(model).run(None, {"picture": given})[0])
"""


def test_an_onnx_file_is_quantized(tmp_path: Path) -> None:
    python = os.environ.get("TFLQ_ONNX2TF_PYTHON", "")
    if not python:
        pytest.skip("TFLQ_ONNX2TF_PYTHON names no Python that has onnx2tf")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((12, 8, 8, 3), np.float32))
    subprocess.run([python, "-c", MAKE_ONNX, str(tmp_path)], check=True, capture_output=True)
    before = (tmp_path / "m.onnx").read_bytes()
    interpreter = tflq.Interpreter(model_content=tflq.save(float_model(tmp_path / "m.onnx", python)))
    interpreter.allocate_tensors()
    (given,), (wanted,) = interpreter.get_input_details(), interpreter.get_output_details()
    for row, expected in zip(np.load(tmp_path / "x.npy"), np.load(tmp_path / "expected.npy"), strict=True):
        interpreter.set_tensor(given["index"], row[None])
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(wanted["index"])[0], expected, atol=1e-5)
    made = tflq.quantize(tmp_path / "m.onnx", tmp_path / "x.npy", "fast", python=python)
    assert made.report.comparison.sqnr > 25
    assert (tmp_path / "m.onnx").read_bytes() == before
    np.save(tmp_path / "first.npy", np.load(tmp_path / "x.npy").transpose(0, 3, 1, 2))
    with pytest.raises(CalibrationError, match="channels come first: move axis 1 to the end"):
        tflq.quantize(tmp_path / "m.onnx", tmp_path / "first.npy", "fast", python=python)


def test_a_keras_file_is_quantized_and_compared(made: tuple[Path, str], tmp_path: Path) -> None:
    folder, python = made
    out = str(tmp_path / "int8.tflite")
    words = [str(folder / "m.keras"), "--calibration", str(folder / "x.npy"), "--recipe", "fast", "--python", python]
    done = commands.tflq("quantize", *words, "-o", out)
    assert done.exit_code == 0, done.output
    again = ["compare", str(folder / "m.keras"), out, "--inputs", str(folder / "x.npy"), "--python", python]
    assert "same top-1 in 12 of 12 samples" in commands.tflq(*again).stdout
    api = tflq.quantize(folder / "saved", folder / "x.npy", "fast", python=python)
    assert api.report.comparison.sqnr > 25


def test_the_package_is_named_where_the_converter_is_missing(tmp_path: Path) -> None:
    (tmp_path / "m.keras").write_bytes(b"")
    python = fake_python(tmp_path, f"exit {MISSING}")
    np.save(tmp_path / "x.npy", np.zeros((1, 1), np.float32))
    with pytest.raises(RuntimeMissing, match=r"pip install 'tensorflow>=2.18', or .* --python PATH"):
        tflq.quantize(tmp_path / "m.keras", tmp_path / "x.npy", python=python)
    words = ["quantize", str(tmp_path / "m.keras"), "--calibration", str(tmp_path / "x.npy"), "--python", python]
    assert commands.tflq(*words, "-o", tmp_path / "o.tflite").exit_code == 4
    with pytest.raises(RuntimeMissing, match="no Python at"):
        next(conversions(tmp_path / "m.keras", "/no/such/python"))


def test_a_converter_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    lacks, has = (tmp_path / name for name in ("lacks", "has"))
    for folder, script in ((lacks, f"exit {MISSING}"), (has, WRITE)):
        folder.mkdir()
        fake_python(folder, script)
    monkeypatch.setattr(sys, "executable", str(lacks / "python"))
    monkeypatch.setenv("PATH", str(has), prepend=os.pathsep)
    (has / "python").rename(has / "python3")
    (has / "python.npz").rename(has / "python3.npz")
    found = next(conversions(tmp_path / "m.onnx"))
    assert (found.data, found.by, found.python) == (b"onnx2tf open", "fake 1.0", str(has / "python3"))


def test_a_batch_of_one_follows_an_open_one_that_cannot_be_converted(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    python = fake_python(tmp_path, f'[ "$3" = one ] || exit {CANNOT}; {WRITE}')
    assert next(conversions(tmp_path / "m.onnx", python)).data == b"onnx2tf one"


def test_a_keras_model_in_memory_is_saved_for_the_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class KerasModel:
        def save(self, path: Path) -> None:
            path.write_bytes(b"from memory")

    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(Model=KerasModel))
    assert converter_of(KerasModel()) == "tensorflow"
    python = fake_python(tmp_path, f'{WRITE}; cp "$4" "$5"')
    assert next(conversions(KerasModel(), python)).data == b"from memory"


def test_the_converter_s_error_is_reported_without_its_log(tmp_path: Path) -> None:
    log = r"echo I0000 00:00:1 1 port.cc:153] on; printf '10%%\r90%%\r\033[31mno model at all\033[0m\n'"
    python = fake_python(tmp_path, f"{log}; exit 1")
    with pytest.raises(RuntimeFailed, match=r"cannot convert [^ ]*m.h5: no model at all$"):
        next(conversions(tmp_path / "m.h5", python))
    with pytest.raises(RuntimeFailed, match="ended with status 0, printed nothing and wrote no model"):
        next(conversions(tmp_path / "m.h5", fake_python(tmp_path, "exit 0")))


def test_a_converted_file_that_is_no_model_is_the_converter_s_fault(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    with pytest.raises(RuntimeFailed, match=r"wrote no valid \.tflite file"):
        tflq.quantize(tmp_path / "m.onnx", [[np.zeros((1, 1), np.float32)]], python=fake_python(tmp_path, WRITE))


@pytest.mark.parametrize("size", [0.0, np.nan])
def test_a_converter_that_changes_the_values_is_refused(size: float, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    model = MODELS / "digits_autoencoder_float.tflite"
    given = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    rows = suites.digits().images[:4].reshape(4, 8, 8, 1)
    right = run_once(tflq.Interpreter(str(model)), [given.transpose(0, 2, 3, 1)])[0]
    script = f"{WRITE}; cp {model} $5"
    python = fake_python(tmp_path, script, **{"i/x": given, "o/y": right})
    assert len(float_model(tmp_path / "m.onnx", python).subgraphs) == 1
    wrong = fake_python(tmp_path, script, **{"i/x": given, "o/y": np.full_like(right, size)})
    with pytest.raises(RuntimeFailed, match=r"computes other values than .*m\.onnx: of random inputs, "):
        tflq.quantize(tmp_path / "m.onnx", rows, "fast", python=wrong)


def test_the_converter_is_named_in_reports(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    tensors = [T("float32", (1, 4)), T("float32", (3, 4), value=0.1 * np.arange(12).reshape(3, 4)), None]
    float_file = build("FULLY_CONNECTED", tensors, [T("float32", (1, 3))], ("FullyConnectedOptions", {}))
    (tmp_path / "float.tflite").write_bytes(float_file)
    python = fake_python(tmp_path, f"{WRITE}; cp {tmp_path / 'float.tflite'} $5")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((8, 1, 4), np.float32))
    out, words = str(tmp_path / "o.tflite"), [str(tmp_path / "m.onnx"), "--python", python]
    samples = str(tmp_path / "x.npy")
    command = ["quantize", *words, "--calibration", samples, "--recipe", "fast", "-o", out]
    done = commands.tflq(*command)
    assert done.exit_code == 0, done.output
    assert f"{tmp_path / 'm.onnx'} converted by fake 1.0" in done.stdout
    following = done.stdout.splitlines()[-1]
    assert f"--python {python}" in following
    again = shlex.split(following.removeprefix("Next: tflq ").replace("OTHER_SAMPLES", samples))
    document = json.loads(commands.tflq(*again, "--json").stdout)
    assert document["reference"]["converter"] == "fake 1.0"
    assert "converter" not in document["other"]


def test_content_decides_which_converter_is_needed(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    assert not converter_of(tmp_path / "saved")
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    assert converter_of(str(tmp_path / "saved")) == "tensorflow"
    contents = {
        "a.bin": (b"\x89HDF\r\n\x1a\n", "tensorflow"),
        "b.H5": (b"", "tensorflow"),
        "c.pb": (b"\x08\x09\x12\x07pytorch", "onnx2tf"),
        "d.onnx": (b"\x18\0\0\0TFL3", ""),
        "e.tflite": (b"", ""),
    }
    for name, (data, wanted) in contents.items():
        (tmp_path / name).write_bytes(data)
        assert converter_of(tmp_path / name) == wanted, name
    assert not converter_of("missing.keras")
    assert not converter_of(b"TFL3")
