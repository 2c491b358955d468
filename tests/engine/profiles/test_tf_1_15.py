"""The profiles `tf-1.15-ref` and `tf-1.15-opt`: golden vectors, and the runtime itself where it is installed.

TFLQ_TF115_PYTHON names a Python that has TensorFlow 1.15, which offers the optimized resolver only.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.running import run, samples_of
from support.single_op import T, build, draw
from tflq.engine.profiles import by_name, with_static_alpha
from tflq.errors import ModelError, UndefinedResultError, UnsupportedError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Record, Subgraph

Array = np.ndarray[Any, Any]
PROFILES = ("tf-1.15-ref", "tf-1.15-opt")
CODES = np.arange(256, dtype=np.uint8)
SINGLE = suites.ROOT / "golden" / "singleop"


@pytest.fixture(scope="module")
def vectors() -> Path:
    if reason := suites.missing():
        pytest.skip(reason)
    return suites.SHARED / "vectors"


def leaky_relu(data: Any, k: int) -> bytes:
    x = T("uint8", (256,), data["input_scale"][k], int(data["input_zero_point"][k]))
    y = T("uint8", (256,), data["output_scale"][k], int(data["output_zero_point"][k]))
    return build("LEAKY_RELU", [x], [y], ("LeakyReluOptions", {"alpha": float(data["alpha"][k])}))


def test_vectors_of_leaky_relu(vectors: Path) -> None:
    data = np.load(vectors / "leaky_relu_r115_uint8.npz")
    for k, aborts in enumerate(data["prepare_status"]):
        profile = PROFILES[k % 2]
        if aborts:
            with pytest.raises(UndefinedResultError):
                run(leaky_relu(data, k), [CODES], profile)
        else:
            np.testing.assert_array_equal(run(leaky_relu(data, k), [CODES], profile)[0], data["y"][k])


def side_by_side(models: list[bytes]) -> bytes:
    """One graph of models with one LEAKY_RELU each, in that order."""
    tensors: list[Any] = []
    operators: list[Operator] = []
    for model in models:
        graph = read(model).subgraphs[0]
        options = Record("LeakyReluOptions", {"alpha": graph.operators[0].options["alpha"]})  # type: ignore[index]
        operators.append(Operator(0, (len(tensors),), (len(tensors) + 1,), options=options))
        tensors += graph.tensors
    ends = range(len(operators))
    graph = Subgraph(
        tuple(tensors), tuple(2 * i for i in ends), tuple(2 * i + 1 for i in ends), tuple(operators), "main"
    )
    return write(Model(3, (OperatorCode(98, "LEAKY_RELU", 1),), (graph,), (Buffer(),)))


def test_vectors_of_leaky_relus_that_share_a_process(vectors: Path) -> None:
    data = np.load(vectors / "leaky_relu_r115_uint8.npz")
    rows = data["same_process_rows"].tolist()
    model = side_by_side([leaky_relu(data, k) for k in rows])
    for name in PROFILES:
        got = run(model, [CODES] * len(rows), with_static_alpha(by_name(name)))
        np.testing.assert_array_equal(np.stack(got), data["same_process_y"])
        apart = run(model, [CODES] * len(rows), name)
        np.testing.assert_array_equal(np.stack(apart), data["y"][rows])
        assert not np.array_equal(np.stack(apart), data["same_process_y"])


def test_recorded_leaky_relus_share_an_alpha() -> None:
    model = (SINGLE / "models" / "leaky_relu_two_2.tflite").read_bytes()
    for name in PROFILES:
        with np.load(SINGLE / "recorded" / "leaky_relu_two_2.npz") as given:
            recorded = {**given, **np.load(SINGLE / "recorded" / f"leaky_relu_two_2@{name}.npz")}
        for inputs, outputs in samples_of(recorded):
            for got, want in zip(run(model, inputs, with_static_alpha(by_name(name))), outputs, strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_vectors_of_rectifiers(vectors: Path, kind: str) -> None:
    data = np.load(vectors / "relux.npz")
    info = np.iinfo(kind)
    codes = np.arange(info.min, info.max + 1).astype(kind)
    short = kind.replace("uint", "u").replace("int", "i")
    for k, scale in enumerate(data["r115_relu_output_scale"]):
        x = T(kind, (256,), 0.37, 3)  # r1.15 does not look at it
        y = T(kind, (256,), scale, int(data[f"r115_relu_{short}_output_zero_point"][k]))
        for op, name in (("RELU6", "relu6"), ("RELU_N1_TO_1", "relu1")):
            (got,) = run(build(op, [x], [y]), [codes], PROFILES[k % 2])
            np.testing.assert_array_equal(got, data[f"r115_{name}_{short}_y"][k], err_msg=f"{op} {k}")


@pytest.mark.parametrize("profile", PROFILES)
def test_what_leaves_memory_unwritten_or_reads_beyond_is_refused(profile: str) -> None:
    mean = build(
        "MEAN",
        [T("int8", (2, 3), 0.1, 0), T("int32", (1,), value=[1])],
        [T("int8", (2,), 0.1, 0)],
        ("ReducerOptions", {"keep_dims": False}),
    )
    mul = build("MUL", [T("int16", (4,), 0.1), T("int16", (1,), 0.1)], [T("int16", (4,), 0.1)])
    for model, inputs in ((mean, [np.zeros((2, 3), np.int8)]), (mul, [np.zeros(4, np.int16), np.zeros(1, np.int16)])):
        with pytest.raises(UndefinedResultError):
            run(model, inputs, profile)


def test_the_reference_resolver_knows_version_1() -> None:
    tensor = T("int8", (2,), 0.1, 0)
    model = build("RELU6", [tensor], [tensor], version=2)
    assert run(model, [np.ones(2, np.int8)], "tf-1.15-opt")[0].tolist() == [1, 1]
    with pytest.raises((UnsupportedError, ModelError)):
        run(model, [np.ones(2, np.int8)], "tf-1.15-ref")


# One column of a product

#: 8 inputs of 1, weights that sum up to -12: -1.5 LSB of output, a tie below zero.
WEIGHTS, REAL, UP, AWAY = (-2, -1, -2, -1, -2, -1, -2, -1), 2.0**-3, -1, -2


def tied_convolution(positions: int, kind: str, units: int = 4, depth: int = 8) -> tuple[bytes, list[Array]]:
    """CONV_2D whose sums are all -12; more inputs than 8 have the weight 0."""
    zero = 128 if kind == "uint8" else 0
    w = np.zeros((units, 1, 1, depth), np.int64)
    w[..., :8] = WEIGHTS
    x = T(kind, (1, positions, 1, depth), 1.0, zero)
    weights = T(kind, w.shape, np.ones(units if kind == "int8" else 1), zero, value=w + zero)
    bias = T("int32", (units,), np.ones(units if kind == "int8" else 1), value=np.zeros(units))
    y = T(kind, (1, positions, 1, units), 1 / REAL, zero)
    model = build("CONV_2D", [x, weights, bias], [y], ("Conv2DOptions", {"stride_w": 1, "stride_h": 1, "padding": 1}))
    return model, [np.full(x.shape, zero + 1).astype(kind)]


def rounded(case: tuple[bytes, list[Array]], profile: str) -> list[int]:
    """The distinct results, less the zero point."""
    (got,) = run(*case, profile)
    return sorted(set((got.astype(int) - (128 if got.dtype == np.uint8 else 0)).reshape(-1).tolist()))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_one_position_is_a_matrix_times_a_vector(kind: str) -> None:
    assert rounded(tied_convolution(1, kind), "tf-1.15-opt") == [UP]
    assert rounded(tied_convolution(1, kind, depth=9), "tf-1.15-opt") == [UP]
    assert rounded(tied_convolution(2, kind), "tf-1.15-opt") == [AWAY]
    assert rounded(tied_convolution(1, kind, units=3), "tf-1.15-opt") == [AWAY]
    assert rounded(tied_convolution(1, "uint8"), "tf-1.15-ref") == [AWAY]


def test_one_row_of_16_bits_is_a_matrix_times_a_vector() -> None:
    for rows, want in ((1, UP), (2, AWAY)):
        x = T("uint8", (rows, 8), 1.0, 128)
        w = T("uint8", (4, 8), 1.0, 128, value=np.tile(WEIGHTS, (4, 1)) + 128)
        bias = T("int32", (4,), 1.0, value=np.zeros(4))
        y = T("int16", (rows, 4), 1 / REAL)
        model = build("FULLY_CONNECTED", [x, w, bias], [y], ("FullyConnectedOptions", {}))
        assert rounded((model, [np.full((rows, 8), 129, np.uint8)]), "tf-1.15-opt") == [want]
        assert rounded((model, [np.full((rows, 8), 129, np.uint8)]), "tf-1.15-ref") == [AWAY]


# The runtime itself

RUNNER = """
import pickle, sys
import numpy as np
import tensorflow as tf
results = []
for model, inputs in pickle.load(sys.stdin.buffer):
    interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for detail, (data, dtype, shape) in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], np.frombuffer(data, dtype).reshape(shape))
    interpreter.invoke()
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    results.append([(o.tobytes(), str(o.dtype), o.shape) for o in outputs])
sys.stdout.buffer.write(pickle.dumps(results, 2))
"""


def live(cases: list[tuple[bytes, list[Array]]]) -> list[list[Array]]:
    python = os.environ.get("TFLQ_TF115_PYTHON")
    if not python:
        pytest.skip("TFLQ_TF115_PYTHON names no Python with TensorFlow 1.15")
    given = [
        (model, [(x.tobytes(), str(x.dtype), x.shape) for x in map(np.ascontiguousarray, xs)]) for model, xs in cases
    ]
    done = subprocess.run(
        [python, "-c", RUNNER],
        input=pickle.dumps(given, 2),
        capture_output=True,
        check=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return [[np.frombuffer(d, t).reshape(s) for d, t, s in outputs] for outputs in pickle.loads(done.stdout)]


class Drawer:
    """Random single operators that r1.15 is known to run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.cases: list[tuple[bytes, list[Array]]] = []
        self.notes: list[str] = []

    def add(self, op: str, inputs: list[T], output: T, options: Any = None, version: int = 1) -> None:
        fed = [draw(self.rng, t) for t in inputs if t.value is None]
        self.cases.append((build(op, inputs, [output], options, version), fed))
        self.notes.append(f"{op} {inputs} -> {output} {options}")

    def shape(self, rank: int, largest: int = 6) -> tuple[int, ...]:
        return tuple(int(n) for n in self.rng.integers(1, largest, rank))

    def quantization(self, type_: str) -> tuple[np.float32, int]:
        info = np.iinfo(type_)
        return np.float32(self.rng.uniform(0.01, 0.1)), int(self.rng.integers(info.min, info.max, endpoint=True))

    def eight_bits(self, type_: str) -> None:
        rng, version = self.rng, 2 if type_ == "int8" else 1
        scale, zero = self.quantization(type_)
        x = T(type_, self.shape(int(rng.integers(1, 5))), scale, zero)
        y = T(type_, x.shape, *self.quantization(type_))
        self.add("RELU6", [x], y)
        self.add("QUANTIZE", [x], y, version=2)
        self.add("QUANTIZE", [T("float32", x.shape)], y)
        self.add("DEQUANTIZE", [x], T("float32", x.shape), version=2)
        pads = rng.integers(0, 3, (len(x.shape), 2))
        if type_ == "int8" and len(x.shape) < 4:
            pads[:] = 0  # paddings go astray, and may reach beyond the input
        padded = tuple(int(n + sum(p)) for n, p in zip(x.shape, pads, strict=True))
        self.add("PAD", [x, T("int32", pads.shape, value=pads)], T(type_, padded, scale, zero))
        image, size = T(type_, self.shape(4), scale, zero), self.shape(2, 9)
        self.add(
            "RESIZE_BILINEAR",
            [image, T("int32", (2,), value=size)],
            T(type_, (image.shape[0], *size, image.shape[3]), scale, zero),
            ("ResizeBilinearOptions", {"align_corners": bool(rng.random() < 0.4)}),
        )
        image = T(type_, (*self.shape(3), int(rng.integers(1, 40))), scale, zero)
        kept = ("ReducerOptions", {"keep_dims": True})
        for target in (self.quantization(type_), (scale, zero)):
            small = T(type_, (image.shape[0], 1, 1, image.shape[3]), *target)
            self.add("MEAN", [image, T("int32", (2,), value=[1, 2])], small, kept, version)
            self.add("SUM", [image, T("int32", (2,), value=[1, 2])], small, kept, version)
        self.dense(type_, scale, zero)

    def dense(self, type_: str, scale: np.float32, zero: int) -> None:
        rng = self.rng
        rows, depth, units = (int(n) for n in rng.integers(1, (4, 30, 12)))
        point = int(rng.integers(90, 150)) if type_ == "uint8" else 0
        w = T(
            type_,
            (units, depth),
            0.02,
            point,
            value=rng.integers(-100, 100, (units, depth)).astype(np.int8).view(type_),
        )
        bias = T("int32", (units,), scale * np.float32(0.02), 0, value=rng.integers(-500, 500, units))
        y = T(type_, (rows, units), float(2.0 ** -rng.integers(1, 5)), self.quantization(type_)[1])
        self.add(
            "FULLY_CONNECTED",
            [T(type_, (rows, depth), scale, zero), w, bias],
            y,
            ("FullyConnectedOptions", {"fused_activation_function": int(rng.integers(0, 2))}),
            4 if point == 0 else 1,
        )

        if type_ == "uint8":
            wide = T("int16", (rows, units), float(2.0 ** -rng.integers(5, 9)))
            x = T(type_, (rows, depth), scale, zero)
            self.add("FULLY_CONNECTED", [x, w, bias], wide, ("FullyConnectedOptions", {}))

    def convolution(self, type_: str) -> None:
        """Small numbers and power-of-two scales, so that many sums lie halfway; one position as often as several."""
        rng, zero = self.rng, 128 if type_ == "uint8" else 0
        edge, depth, units = (int(n) for n in rng.integers(1, (3, 20, 9)))
        positions = 1 if rng.random() < 0.5 else int(rng.integers(2, 5))
        each = np.ones(units) if type_ == "int8" else 1
        x = T(type_, (1, positions + edge - 1, edge, depth), 2.0**-5, self.quantization(type_)[1])
        shape = (units, edge, edge, depth)
        w = T(type_, shape, 2.0**-6 * each, zero, value=zero + rng.integers(-8, 9, shape))
        bias = T("int32", (units,), 2.0**-11 * each, value=rng.integers(-500, 500, units))
        y = T(type_, (1, positions, 1, units), float(2.0 ** -rng.integers(5, 9)), zero)
        self.add(
            "CONV_2D",
            [x, w, bias],
            y,
            ("Conv2DOptions", {"stride_w": 1, "stride_h": 1, "padding": 1}),
            3 if type_ == "int8" else 1,
        )

    def gates(self) -> None:
        """The basic LSTM on 8 bits, one row as often as two."""
        rng = self.rng
        rows, depth, cells = (int(n) for n in rng.integers(1, (3, 20, 12)))
        shape = (4 * cells, depth + cells)
        w = T("uint8", shape, 2.0**-8, int(rng.integers(100, 150)), value=rng.integers(0, 256, shape))
        bias = T("int32", shape[:1], 2.0**-15, value=rng.integers(-500, 500, shape[0]))
        x, activation = (T("uint8", (rows, n), 2.0**-7, 128) for n in (depth, cells))
        state, gates = T("int16", (rows, cells), 2.0**-11), T("int16", (rows, 4 * cells), 2.0**-12)
        inputs = [x, activation, w, bias, state]
        outputs = [activation, state, T("uint8", (rows, depth + cells), 2.0**-7, 128), gates]
        fed = [draw(rng, t) for t in (x, activation, state)]
        options = ("LSTMOptions", {"kernel_type": 1, "fused_activation_function": 4})
        self.cases.append((build("LSTM", inputs, outputs, options), fed))
        self.notes.append(f"LSTM {inputs[:2]} {cells}")

    def sixteen_bits(self) -> None:
        x = T("int16", self.shape(3), 2.0**-12)
        y = T("int16", x.shape, 2.0**-15)
        self.add("LOGISTIC", [x], y)
        self.add("TANH", [T("int16", x.shape, 2.0 ** -int(self.rng.integers(11, 13)))], y)
        self.add("MUL", [x, x], y)
        self.add("ADD", [x, T("int16", x.shape, 2.0 ** -int(self.rng.integers(12, 17)))], x)


def test_random_single_operators() -> None:
    drawer = Drawer(115)
    for _ in range(25):
        drawer.eight_bits("uint8")
        drawer.eight_bits("int8")
        drawer.sixteen_bits()
        drawer.convolution("uint8")
        drawer.convolution("int8")
        drawer.gates()
    for case, note, wanted in zip(drawer.cases, drawer.notes, live(drawer.cases), strict=True):
        for got, want in zip(run(*case, "tf-1.15-opt"), wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=note)
