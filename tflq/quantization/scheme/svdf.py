"""SVDF on 8-bit activations: types of its operands, and the scale of its state without calibration.

The int16 state holds products of the input with a filter's weights, so no state is greater than the greatest input
times the greatest sum of a filter's magnitudes.
Source: LiteRT 2.3 tflite/kernels/svdf.cc Prepare; reference/svdf.h EvalIntegerSVDF.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.engine.kernels.code_limits import code_limits
from tflq.model.ir import TensorType
from tflq.quantization.params import Params, Range, symmetric
from tflq.typing import Array

X, FEATURES, TIME, BIAS, STATE = range(5)

#: Element types of operands by position; y has int8.
TYPES: Mapping[int, TensorType] = {
    X: TensorType.INT8,
    FEATURES: TensorType.INT8,
    TIME: TensorType.INT16,
    BIAS: TensorType.INT32,
    STATE: TensorType.INT16,
}


def state_params(data: Params, features: Array) -> Params:
    """Return the parameters that hold every state of an input with these parameters; `features` are float weights (F,
    I).
    """
    low, high = code_limits(data.type)
    reach = float(data.scale[0]) * max(high - int(data.zero_point[0]), int(data.zero_point[0]) - low)
    bound = reach * float(np.abs(features.astype(np.float64)).sum(axis=1).max(initial=0.0))
    return symmetric(Range.of(-bound, bound), TensorType.INT16)
