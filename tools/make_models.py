"""Train small real networks and convert them to `.tflite`, into golden/models/.

Needs the extra `tensorflow` and scikit-learn. The data is the 8x8 handwritten digits that scikit-learn ships, so
nothing is downloaded. Each network is written as float32, int8 and int16x8 (if the converter supports it), together
with a provenance file: versions, seed, test accuracy or error, SHA-256.

    python tools/make_models.py [NAME ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import sklearn
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "models"
SEED = 20260101


@dataclass(frozen=True)
class Data:
    """Digits as images (N, 8, 8, 1) in [0, 1] and labels (N,), split once with a fixed seed."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def digits() -> Data:
    """Return the 1,797 digits, shuffled; a fifth is held back for testing."""
    bunch = load_digits()
    images = (bunch.images[..., None] / 16.0).astype(np.float32)
    order = np.random.default_rng(SEED).permutation(len(images))
    images, labels = images[order], bunch.target[order]
    cut = len(images) * 4 // 5
    return Data(images[:cut], labels[:cut], images[cut:], labels[cut:])


def mobilenet() -> keras.Model:
    """Return an inverted-residual classifier: 16x16 after upsampling, four blocks, two of them with a residual ADD."""
    x = inputs = keras.Input((8, 8, 1))
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = layers.Conv2D(16, 3, strides=1, padding="same", use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    for channels, stride in ((16, 1), (24, 2), (24, 1), (32, 2)):
        x = _inverted_residual(x, channels, stride)
    x = layers.Conv2D(64, 1, use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Softmax()(layers.Dense(10)(x)))


def _inverted_residual(x: keras.KerasTensor, channels: int, stride: int) -> keras.KerasTensor:
    y = layers.Conv2D(3 * x.shape[-1], 1, use_bias=False)(x)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    y = layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(y)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    y = layers.BatchNormalization()(layers.Conv2D(channels, 1, use_bias=False)(y))
    return layers.Add()([x, y]) if stride == 1 and x.shape[-1] == channels else y


def recurrent() -> keras.Model:
    """Return an LSTM that reads a digit row by row."""
    inputs = keras.Input((8, 8, 1))
    x = layers.Reshape((8, 8))(inputs)
    x = layers.LSTM(20, unroll=True)(x)  # one operator per gate: the fused LSTM cannot be calibrated in TensorFlow 2.21
    return keras.Model(inputs, layers.Softmax()(layers.Dense(10)(x)))


def denoiser() -> keras.Model:
    """Return a small U-Net: strided and transposed convolutions, skip connections by concatenation."""
    inputs = keras.Input((8, 8, 1))
    a = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    b = layers.Conv2D(16, 3, strides=2, padding="same")(a)
    b = layers.LeakyReLU(negative_slope=0.2)(b)
    c = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D(2)(b))
    up = layers.Concatenate()([layers.Conv2DTranspose(12, 3, strides=2, padding="same")(c), b])
    up = layers.Concatenate()([layers.Conv2DTranspose(8, 2, strides=2, padding="same")(up), a])
    return keras.Model(inputs, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(up))


def autoencoder() -> keras.Model:
    """Return ten fully connected layers with a narrow middle: every rounding difference is amplified."""
    x = inputs = keras.Input((8, 8, 1))
    x = layers.Flatten()(x)
    for units in (48, 48, 32, 8, 32, 48, 48):
        x = layers.Dense(units, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(64)(x))


@dataclass(frozen=True)
class Network:
    """How to build and train one network, and its quantized forms."""

    build: Callable[[], keras.Model]
    task: str  # classify, denoise, reconstruct
    epochs: int
    forms: tuple[str, ...] = ("float", "int8", "int16x8")


NETWORKS = {
    "digits_mobilenet": Network(mobilenet, "classify", 30),
    "digits_lstm": Network(recurrent, "classify", 30, ("float", "int8")),
    "digits_unet": Network(denoiser, "denoise", 40),
    "digits_autoencoder": Network(autoencoder, "reconstruct", 60),
}


def train(network: Network, data: Data) -> tuple[keras.Model, dict[str, float]]:
    """Train on the training half and measure on the test half."""
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    model = network.build()
    optimizer = keras.optimizers.Adam(2e-3)
    if network.task == "classify":
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(data.train_x, data.train_y, epochs=network.epochs, batch_size=32, verbose=0)
        return model, {"test_accuracy": float(model.evaluate(data.test_x, data.test_y, verbose=0)[1])}
    noise = np.random.default_rng(SEED).normal(0, 0.2, data.train_x.shape).astype(np.float32)
    source = data.train_x + noise if network.task == "denoise" else data.train_x
    shape = (-1, *model.output_shape[1:])
    model.compile(optimizer, "mse")
    model.fit(source, data.train_x.reshape(shape), epochs=network.epochs, batch_size=32, verbose=0)
    return model, {"test_mse": float(model.evaluate(data.test_x, data.test_x.reshape(shape), verbose=0))}


def convert(model: keras.Model, form: str, data: Data) -> bytes:
    """Return the model as `.tflite` bytes, batch 1: "float", "int8" (int8 in and out) or "int16x8"."""
    signature = tf.TensorSpec((1, *model.input_shape[1:]), tf.float32)
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, input_signature=[signature], verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        return _converted(converter, form, data)


def _converted(converter: tf.lite.TFLiteConverter, form: str, data: Data) -> bytes:
    if form != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: _calibration(data)
    if form == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    if form == "int16x8":
        ops = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [ops]
        converter.inference_input_type = converter.inference_output_type = tf.int16
    return bytes(converter.convert())


def _calibration(data: Data) -> Iterator[list[np.ndarray]]:
    for image in data.train_x[:200]:
        yield [image[None]]


def main() -> None:
    """Write every named network (all by default)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NETWORKS), metavar="NAME", help=", ".join(NETWORKS))
    names = parser.parse_args().names
    data = digits()
    GOLDEN.mkdir(parents=True, exist_ok=True)
    # The test images, as codes 0..16: inputs of `tflq verify --inputs` and of the goldens.
    np.savez_compressed(
        GOLDEN / "digits_test.npz", images=np.round(data.test_x * 16).astype(np.uint8), labels=data.test_y
    )
    for name in names:
        network = NETWORKS[name]
        model, quality = train(network, data)
        files = {}
        for form in network.forms:
            content = convert(model, form, data)
            path = GOLDEN / f"{name}_{form}.tflite"
            path.write_bytes(content)
            files[path.name] = hashlib.sha256(content).hexdigest()
            print(f"{path.name}: {len(content)} bytes, {quality}", flush=True)
        provenance = {
            "made_by": "tools/make_models.py",
            "seed": SEED,
            "data": "scikit-learn load_digits",
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "quality": quality,
            "sha256": files,
        }
        (GOLDEN / f"{name}.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    main()
