"""Activation functions of recurrent cells, applied to float32 vectors.

Source: LiteRT 2.3 tensor_utils.h ApplyActivationToVector; portable_tensor_utils.cc ApplyReluToVector and its kin.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.kernels.kernel import Node
from tflq.engine.numerics import eigen_activations
from tflq.engine.numerics.eigen_activations import tanh_element
from tflq.typing import Array

NONE, RELU, RELU_N1_TO_1, RELU6, TANH, SIGN_BIT = range(6)


def function_of(node: Node) -> int:
    """Return the node's fused activation function, a value of the schema's ActivationFunctionType."""
    function = int(node.options.get("fused_activation_function", 0))
    node.check(function <= SIGN_BIT, "fused activation function", expected="NONE to SIGN_BIT", got=function)
    return function


def activate(function: int, x: Array, present: Array | None = None) -> Array:
    """Apply `function` to `x`. NONE writes nothing: the result is the destination, `present`, else `x` itself."""
    if function == TANH:
        return eigen_activations.tanh(x)
    if function == NONE:
        return x if present is None else present
    if function == SIGN_BIT:
        return np.signbit(x).astype(np.float32)
    low, high = {RELU: (0, None), RELU_N1_TO_1: (-1, 1), RELU6: (0, 6)}[function]
    y = np.where(x > np.float32(low), x, np.float32(low))
    return y if high is None else np.where(y < np.float32(high), y, np.float32(high))


@compiled
def apply(function: Int, x: Real) -> Real:
    """Apply `function` to one element, as `activate` has it; NONE gives `x`."""
    if function == TANH:
        return tanh_element(x)
    if function == SIGN_BIT:
        return np.float32(1) if np.signbit(x) else np.float32(0)
    if function == NONE:
        return x
    low = np.float32(-1) if function == RELU_N1_TO_1 else np.float32(0)
    y = x if x > low else low
    if function == RELU:
        return y
    high = np.float32(6) if function == RELU6 else np.float32(1)
    return y if y < high else high
