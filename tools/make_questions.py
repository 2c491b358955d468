"""Write the models of docs/questions, with their inputs, into a folder.

    python tools/make_questions.py q

Each is the smallest model that shows the subject of one page. `NAME.npy` is the input to give.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tflq.devices.suites.draft import T, build

Array = np.ndarray[Any, Any]
SEED = 20261128
#: Options that a CONV_2D of unit strides shares with all others; padding 0 is SAME, 1 is VALID.
UNIT = {"stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1, "fused_activation_function": 0}


def conv(x: T, w: T, bias: T | None, y: T, version: int = 3, **options: int) -> bytes:
    """Return the model of one CONV_2D."""
    return build("CONV_2D", (x, w, bias), (y,), ("Conv2DOptions", {**UNIT, "padding": 0, **options}), version)


def same_padding(rng: np.random.Generator) -> tuple[bytes, Array]:
    """Return a float CONV_2D whose stride of 10 goes beyond its filter of 3, so that SAME padding is negative."""
    w = T("float32", (4, 3, 3, 2), value=rng.normal(size=(4, 3, 3, 2)).astype(np.float32))
    bias = T("float32", (4,), value=np.zeros(4, np.float32))
    x, y = T("float32", (1, 17, 18, 2)), T("float32", (1, 2, 2, 4))
    return conv(x, w, bias, y, 1, stride_w=10, stride_h=10), rng.normal(size=x.shape).astype(np.float32)


def same_padding_int8(rng: np.random.Generator) -> tuple[bytes, Array]:
    """Return an int8 CONV_2D with strides 3 and 4: SAME padding is negative along one axis."""
    scales = rng.uniform(0.002, 0.004, 4).astype(np.float32)
    w = T("int8", (4, 2, 2, 3), scales.tolist(), [0] * 4, 0, rng.integers(-127, 128, (4, 2, 2, 3)))
    bias = T("int32", (4,), (scales * np.float32(0.03)).tolist(), [0] * 4, 0, rng.integers(-400, 400, 4))
    x, y = T("int8", (1, 8, 11, 3), 0.03, -4), T("int8", (1, 3, 3, 4), 0.05, 2)
    return conv(x, w, bias, y, stride_w=4, stride_h=3), rng.integers(-128, 128, x.shape).astype(np.int8)


def requantizer(_: np.random.Generator) -> tuple[bytes, Array]:
    """Return a CONV_2D whose accumulators are its input times 1: 585 lies between two codes."""
    scale = 0.05296124517917633, 0.024093778803944588, 0.11484327912330627
    w = T("int8", (1, 1, 1, 5), [scale[1]], [0], 0, np.array([1, 1, 1, 1, 1]).reshape(1, 1, 1, 5))
    bias = T("int32", (1,), [float(np.float32(scale[0]) * np.float32(scale[1]))], [0], 0, np.zeros(1))
    x, y = T("int8", (1, 1, 2, 5), scale[0], -124), T("int8", (1, 1, 2, 1), scale[2], -126)
    codes = np.array([[117 - 124] * 5, [116 - 124] * 5], np.int8)  # 5 * 117 = 585 and 5 * 116 = 580
    return conv(x, w, bias, y, padding=1), codes.reshape(x.shape)


def wide_sum(rng: np.random.Generator) -> tuple[bytes, Array]:
    """Return an int16 FULLY_CONNECTED without a bias, whose sums of 1,024 products leave 32 bits."""
    w = T("int8", (4, 1024), 0.01, 0, 0, rng.integers(100, 128, (4, 1024)))
    x, y = T("int16", (1, 1024), 2.0**-10), T("int16", (1, 4), 2.0)
    given = rng.integers(28000, 32768, x.shape).astype(np.int16)
    return build("FULLY_CONNECTED", (x, w, None), (y,), ("FullyConnectedOptions", {}), 11), given


def svdf_state(rng: np.random.Generator) -> tuple[bytes, Array]:
    """Return an int8 SVDF whose 8-bit state has the zero point 40."""
    feature = T("int8", (16, 8), 0.02, 0, 0, rng.integers(-127, 128, (16, 8)))
    time = T("int8", (16, 3), 0.01, 0, 0, rng.integers(-127, 128, (16, 3)))
    bias = T("int32", (16,), 0.05 * 0.01, 0, 0, rng.integers(-500, 500, 16))
    state = T("int8", (1, 48), 0.05, 40, variable=True)
    x, y = T("int8", (1, 8), 0.05, 3), T("int8", (1, 16), 0.06, -5)
    options = ("SVDFOptions", {"rank": 1, "fused_activation_function": 0})
    return build("SVDF", (x, feature, time, bias, state), (y,), options, 3), rng.integers(-128, 128, x.shape).astype(
        np.int8
    )


def mean_of_five(rng: np.random.Generator) -> tuple[bytes, Array]:
    """Return an int8 MEAN over the last of two axes, 5 elements each."""
    x, axes = T("int8", (256, 5), 0.05, -3), T("int32", (1,), value=np.array([1], np.int32))
    data = build("MEAN", (x, axes), (T("int8", (256,), 0.0325, 7),), ("ReducerOptions", {"keep_dims": False}), 2)
    return data, rng.integers(-100, 100, x.shape).astype(np.int8)


MODELS: dict[str, Callable[[np.random.Generator], tuple[bytes, Array]]] = {
    "same_padding": same_padding,
    "same_padding_int8": same_padding_int8,
    "requantizer": requantizer,
    "wide_sum": wide_sum,
    "svdf_state": svdf_state,
    "mean_of_five": mean_of_five,
}


def main() -> None:
    """Write every model and its input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("into", type=Path, help="folder to write to")
    into = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        data, given = make(np.random.default_rng(SEED))
        (into / f"{name}.tflite").write_bytes(data)
        np.save(into / f"{name}.npy", given)


if __name__ == "__main__":
    main()
