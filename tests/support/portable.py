"""Models that are portable by construction: even weights, odd biases, multipliers just below a power of two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.model.ir import Buffer, Model, Quantization, Subgraph, TensorSpec, TensorType
from tflq.quantization.params import Params
from tflq.quantization.portable.editing import Editing

SCALE, POWER = np.float32(0.037), 7
SHAPE, CHANNELS = (1, 4, 4, 2), 3


def below(power: float) -> np.float32:
    """The largest float32 weight scale whose multiplier lies below that power of two; all activations share a scale."""
    scale = np.float32(power)
    while float(SCALE) * float(scale) / float(SCALE) >= power:
        scale = np.nextafter(scale, np.float32(0))
    return scale


def per_channel(scale: np.ndarray, axis: int) -> Quantization:
    zero = np.zeros(len(scale), np.int64)
    one = Params.of(TensorType.INT8, 1.0).quantization
    assert one is not None
    return replace(one, scale=np.asarray(scale, np.float32), zero_point=zero, quantized_dimension=axis)


def portable(seed: int) -> Model:
    """CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED, with drawn even weights and odd biases."""
    rng = np.random.default_rng(seed)
    q = Params.of(TensorType.INT8, float(SCALE), int(rng.integers(-128, 128))).quantization
    x = TensorSpec("x", TensorType.INT8, SHAPE, quantization=q)
    y = TensorSpec("y", TensorType.INT8, (1, 4), quantization=q)
    editing = Editing(Model(3, (), (Subgraph((x, y), (0,), (1,), ()),), (Buffer(),)))
    conv = editing.tensor(x, "/conv", shape=(1, 4, 4, CHANNELS))
    depth = editing.tensor(x, "/depth", shape=(1, 2, 2, CHANNELS))
    window = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    window["fused_activation_function"] = 0
    added = weights(editing, rng, (CHANNELS, 3, 3, 2), 0)
    editing.operator("CONV_2D", [editing.new(0), *added], [conv], 0, "Conv2DOptions", 3, **window)
    added = weights(editing, rng, (1, 3, 3, CHANNELS), 3)
    window |= {"padding": 1, "depth_multiplier": 1}
    editing.operator("DEPTHWISE_CONV_2D", [conv, *added], [depth], 1, "DepthwiseConv2DOptions", 3, **window)
    added = weights(editing, rng, (4, 4 * CHANNELS), None)
    dense = {"fused_activation_function": 0, "keep_num_dims": False, "weights_format": 0}
    editing.operator("FULLY_CONNECTED", [depth, *added], [editing.new(1)], 2, "FullyConnectedOptions", 4, **dense)
    return editing.result()


def weights(editing: Editing, rng: np.random.Generator, shape: tuple[int, ...], axis: int | None) -> list[int]:
    """Weights and biases; FULLY_CONNECTED has one scale."""
    count = shape[0] if axis is None else shape[axis]
    powers = 2.0 ** -rng.integers(POWER - 1, POWER + 2, 1 if axis is None else count)
    scale = np.array([below(power) for power in powers], np.float32)
    codes = (2 * rng.integers(-31, 32, shape)).astype(np.int8)
    biases = (2 * rng.integers(-500, 500, count) + 1).astype(np.int32)
    real = np.float64(SCALE) * scale.astype(np.float64)
    w = editing.constant("w", codes, per_channel(scale, axis or 0))
    b = editing.constant("b", biases, replace(per_channel(real.astype(np.float32), 0)))
    return [w, b]
