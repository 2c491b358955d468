"""Real multipliers from scales, in the precisions in which runtimes compute them: one field of the arithmetic.

LiteRT 2.3 computes many of them in float32 (activations.cc ReluPrepare, LeakyReluPrepare; mul.cc Prepare) or with a
float32 product of two scales (kernel_util.cc GetQuantizedConvolutionMultipler). LiteRT 2.4 and TensorFlow Lite Micro
compute the same multipliers in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.ir import Model, TensorType, view
from tflq.numerics.stages import Reals

Scales = NDArray[np.float32]

_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)

_IN_FLOAT64 = "multiplier computed in float64"
_IN_FLOAT32 = "multiplier computed in float32"
_LAST = "multiplier computed in float32, the product of scales last"
_OF_PRODUCT = "multiplier of a product of scales in float32"


def reals_of(model: Model) -> tuple[Mapping[str, Reals], ...]:
    """Return the multipliers of a single operator, by the name of the field's value."""
    with np.errstate(all="ignore"):
        return tuple(_reals(_scales(model), _alpha(model)))


def _scales(model: Model) -> list[Scales]:
    """Return scales of the operator's codes, float32, inputs first."""
    graph = view(model)
    operator = graph.op(0)
    specs = [graph.tensors[t] for t in (*operator.inputs, *operator.outputs[:1]) if t >= 0]
    return [q.scale for spec in specs if spec.type in _CODES and (q := spec.quantization) is not None and q.scale.size]


def _alpha(model: Model) -> np.float32 | None:
    """Return the slope of LEAKY_RELU."""
    options = view(model).op(0).options
    alpha = None if options is None else options.get("alpha")
    return None if alpha is None else np.float32(alpha)


def _reals(scales: Sequence[Scales], alpha: np.float32 | None) -> Iterator[Mapping[str, Reals]]:
    if len(scales) == 2:
        x, y = scales
        yield {_IN_FLOAT64: _wide(x) / _wide(y), _IN_FLOAT32: _wide(x / y)}
        if alpha is not None:
            product = x * alpha
            yield {
                _IN_FLOAT64: _wide(x) * np.float64(alpha) / _wide(y),
                _IN_FLOAT32: _wide(product / y),
                _LAST: _wide(x / y * alpha),
                _OF_PRODUCT: _wide(product) / _wide(y),
            }
    if len(scales) == 3:
        a, b, y = scales
        yield {_IN_FLOAT64: _wide(a) / _wide(y), _IN_FLOAT32: _wide(a / y)}  # PRELU, for inputs above 0
        yield {
            _IN_FLOAT64: _wide(a) * _wide(b) / _wide(y),
            _IN_FLOAT32: _wide(a * b / y),
            _LAST: _wide(a / y * b),
            _OF_PRODUCT: _wide(a * b) / _wide(y),
        }


def _wide(real: Scales) -> Reals:
    return np.asarray(real, np.float64)
