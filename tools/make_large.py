"""Make float models of real size from Keras, with seeded weights, and measure TFLiteConverter on them.

    python tools/make_large.py MODEL FOLDER [--samples 100] [--convert]

Needs TensorFlow. MODEL is one of `MODELS`, or chain:N for N convolutions in a row. Writes MODEL.tflite (batch 1) and
MODEL_calib.npy, the samples along axis 0. With --convert, TFLiteConverter quantizes the Keras model to full-integer
int8 on the same samples, MODEL_tf.tflite, and prints one line of JSON: its seconds without imports, and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def mobilenet_v2() -> Any:
    """Return MobileNetV2 224."""
    import keras

    return keras.applications.MobileNetV2(weights=None)


def resnet50() -> Any:
    """Return ResNet-50."""
    import keras

    return keras.applications.ResNet50(weights=None)


def efficientnet_lite0() -> Any:
    """Return EfficientNet-B0 without squeeze-excite and with RELU6: the changes of EfficientNet-Lite0."""
    import keras
    from keras import layers

    def norm(x: Any, act: bool = True) -> Any:
        x = layers.BatchNormalization()(x)
        return layers.ReLU(6.0)(x) if act else x

    inputs = x = keras.Input((224, 224, 3))
    x = norm(layers.Conv2D(32, 3, 2, "same", use_bias=False)(x))
    for expand, filters, repeats, kernel, stride in (
        (1, 16, 1, 3, 1),
        (6, 24, 2, 3, 2),
        (6, 40, 2, 5, 2),
        (6, 80, 3, 3, 2),
        (6, 112, 3, 5, 1),
        (6, 192, 4, 5, 2),
        (6, 320, 1, 3, 1),
    ):
        for repeat in range(repeats):
            y, channels = x, x.shape[-1]
            if expand > 1:
                y = norm(layers.Conv2D(channels * expand, 1, use_bias=False)(y))
            y = norm(layers.DepthwiseConv2D(kernel, 1 if repeat else stride, "same", use_bias=False)(y))
            y = norm(layers.Conv2D(filters, 1, use_bias=False)(y), act=False)
            x = layers.Add()([x, y]) if repeat else y
    x = norm(layers.Conv2D(1280, 1, use_bias=False)(x))
    return keras.Model(inputs, layers.Dense(1000, "softmax")(layers.GlobalAveragePooling2D()(x)))


def unet() -> Any:
    """Return a U-Net of four storeys on 256 x 256 pictures."""
    import keras
    from keras import layers

    def pair(x: Any, filters: int) -> Any:
        for _ in range(2):
            x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same")(x)))
        return x

    inputs = x = keras.Input((256, 256, 3))
    kept = []
    for filters in (16, 32, 64, 128):
        x = pair(x, filters)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = pair(x, 256)
    for filters, beside in zip((128, 64, 32, 16), reversed(kept), strict=True):
        x = layers.Conv2DTranspose(filters, 2, 2, "same")(x)
        x = pair(layers.Concatenate()([x, beside]), filters)
    return keras.Model(inputs, layers.Conv2D(3, 1)(x))


def transformer() -> Any:
    """Return a vision transformer of 12 blocks, width 192, on 196 patches."""
    import keras
    from keras import layers

    inputs = keras.Input((224, 224, 3))
    x = layers.Reshape((196, 192))(layers.Conv2D(192, 16, 16)(inputs))
    for _ in range(12):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(3, 64)(y, y)])
        y = layers.Dense(768, "gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(192)(y)])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(inputs, layers.Dense(1000, "softmax")(x))


def chain(depth: int) -> Any:
    """Return `depth` convolutions of 32 channels in a row on 56 x 56 pictures, alternately pointwise and depthwise."""
    import keras
    from keras import layers

    inputs = keras.Input((56, 56, 3))
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(inputs)
    for i in range(depth - 1):
        layer = layers.Conv2D(32, 1) if i % 2 else layers.DepthwiseConv2D(3, padding="same")
        x = layers.ReLU()(layers.BatchNormalization()(layer(x)))
    return keras.Model(inputs, layers.Dense(10, "softmax")(layers.GlobalAveragePooling2D()(x)))


MODELS: dict[str, Callable[[], Any]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
    "efficientnet_lite0": efficientnet_lite0,
    "unet": unet,
    "transformer": transformer,
}


def pictures(shape: tuple[int, ...], count: int) -> np.ndarray:
    """Return seeded random pictures in -1..1, rough and smooth, float32[count, *shape]."""
    rng = np.random.default_rng(0)
    height, width, channels = shape
    rows = []
    for _ in range(count):
        waves = rng.uniform(0, 12, (4, 2, channels)), rng.uniform(0, 2 * np.pi, (4, channels))
        y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j][..., None]
        smooth = sum(np.sin(waves[0][k, 0] * y + waves[0][k, 1] * x + waves[1][k]) for k in range(4)) / 4
        rows.append(np.clip(smooth + rng.normal(0, 0.1, (height, width, channels)), -1, 1).astype(np.float32))
    return np.array(rows)


def settle(model: Any, samples: np.ndarray) -> None:
    """Give batch normalizations the statistics of their inputs, as training would."""
    import keras

    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
    model(samples, training=True)


def main() -> None:
    """Write the model and the samples, and convert them if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help=f"{', '.join(MODELS)} or chain:N")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--convert", action="store_true")
    options = parser.parse_args()
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    keras.utils.set_random_seed(0)
    kind, _, depth = options.model.partition(":")
    model = chain(int(depth)) if kind == "chain" else MODELS[kind]()
    samples = pictures(model.inputs[0].shape[1:], options.samples)
    settle(model, samples[:8])
    path = options.folder / f"{options.model.replace(':', '')}.tflite"
    inputs = tf.TensorSpec((1, *model.inputs[0].shape[1:]), tf.float32)
    function = convert_variables_to_constants_v2(
        tf.function(lambda x: model(x, training=False)).get_concrete_function(inputs)
    )

    def converter() -> Any:
        return tf.lite.TFLiteConverter.from_concrete_functions([function])

    path.write_bytes(converter().convert())
    np.save(path.with_name(path.stem + "_calib.npy"), samples)
    if not options.convert:
        return

    def representative() -> Iterator[list[np.ndarray]]:
        for row in samples:
            yield [row[None]]

    integer = converter()
    integer.optimizations = [tf.lite.Optimize.DEFAULT]
    integer.representative_dataset = representative
    integer.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    integer.inference_input_type = integer.inference_output_type = tf.int8
    start = time.perf_counter()
    path.with_name(path.stem + "_tf.tflite").write_bytes(integer.convert())
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 3), "peak_mib": round(peak)}))


if __name__ == "__main__":
    main()
