"""The autoencoder of golden/, and its dense layers in scalar Python with any rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from support import suites
from tflq.model.ir import Model, Quantization, TensorSpec, view

Array = NDArray[Any]
MODEL = suites.ROOT / "golden" / "models" / "digits_autoencoder_int8.tflite"


def array_of(model: Model, spec: TensorSpec, dtype: type) -> Array:
    data = model.buffers[spec.buffer].data
    assert data is not None
    return np.frombuffer(data.tobytes(), dtype).reshape(spec.shape)


def parameters(spec: TensorSpec) -> Quantization:
    assert spec.quantization is not None
    return spec.quantization


def dense(model: Model, index: int, x: Array, rounding: Any, *, bias_counts: bool = True) -> Array:
    """FULLY_CONNECTED, one element at a time: int8, a zero point in and out, scales per tensor or per channel."""
    graph = view(model)
    operator = graph.op(index)
    xs, ws, bs, ys = (graph.tensors[t] for t in (*operator.inputs, operator.outputs[0]))
    w, b = array_of(model, ws, np.int8), array_of(model, bs, np.int32)
    xq, wq, yq = map(parameters, (xs, ws, ys))
    assert operator.options is not None
    out = np.zeros((len(x), len(w)), np.int8)
    relu = operator.options.fields["fused_activation_function"] == 1
    zero, y_zero = int(xq.zero_point[0]), int(yq.zero_point[0])
    for n in range(len(x)):
        for c in range(len(w)):
            total = int(b[c]) if bias_counts else 0
            for k in range(w.shape[1]):
                total += (int(x[n, k]) - zero) * int(w[c, k])
            scale = float(wq.scale[c % len(wq.scale)])
            real = float(xq.scale[0]) * scale / float(yq.scale[0])
            code = rounding(total * real) + y_zero
            out[n, c] = min(max(code, y_zero if relu else -128), 127)
    return out
