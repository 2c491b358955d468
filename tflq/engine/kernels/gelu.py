"""GELU: y = x * Phi(x), exactly or by its tanh approximation.

| operand | shape | types                                | quantization |
|---------|-------|--------------------------------------|--------------|
| x       | any   | float32, float16, uint8, int8, int16 | per tensor   |
| y       | as x  | as x                                 | per tensor   |

Options: approximate. Floats go through Eigen's functions, in every resolver. The erf and tanh of the Eigen that
releases up to 2.14 have are not reproduced.
Exactness: exact on the same libm.
Source: LiteRT 2.3, activations.cc GeluPrepare, GeluEval; reference/gelu.h GeluTransform, GeluTransformApproximate,
Gelu. TensorFlow 2.14, gelu.cc, reference/gelu.h Gelu.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM, close
from tflq.engine.kernels.families.unary import eval_function, prepare_tabulated, same_type
from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import tflite, xnnpack
from tflq.engine.numerics import xnnpack_functions
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.eigen_activations import tanh
from tflq.engine.numerics.eigen_erfc import erfc, single_erfc
from tflq.engine.numerics.libm import erfcf, tanhf
from tflq.engine.numerics.multiply_add import MultiplyAdd
from tflq.engine.numerics.xnnpack_functions import Elementwise
from tflq.typing import Array

_HALF, _ONE = np.float32(0.5), np.float32(1)
_MINUS_SQRT_HALF = np.float32(-np.sqrt(0.5))
_SQRT_2_OVER_PI = np.float32(1.12837916709551257390 * 0.70710678118654752440)


def gelu(x: Array) -> Array:
    """Return x/2 * erfc(-x / sqrt(2)), float32, left to right."""
    return np.asarray(_HALF * x * erfcf(x * _MINUS_SQRT_HALF))


def gelu_approximate(x: Array, multiply_add: MultiplyAdd) -> Array:
    """Return x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), float32, left to right."""
    argument = _SQRT_2_OVER_PI * multiply_add(np.float32(0.044715) * x * x, x, x)
    return np.asarray(_HALF * x * (_ONE + tanhf(argument)))


def gelu_vector(x: Array) -> Array:
    """Compute the first formula over float32 arrays."""
    flat = np.ascontiguousarray(x).reshape(-1)
    return np.asarray(_HALF * x * erfc(flat * _MINUS_SQRT_HALF).reshape(x.shape))


def gelu_approximate_vector(x: Array) -> Array:
    """Compute the second formula over float32 arrays: the cube comes first."""
    inner = _SQRT_2_OVER_PI * (x + np.float32(0.044715) * (x * (x * x)))
    return np.asarray(_HALF * x * (_ONE + tanh(inner)))


def gelu_half(x: Array) -> Array:
    """Compute the first formula over float16, rounded after every step."""
    inner = (x * np.float16(_MINUS_SQRT_HALF)).astype(np.float32)
    return np.asarray(np.float16(_HALF) * x * single_erfc(inner).astype(np.float16))


def gelu_approximate_half(x: Array) -> Array:
    """Compute the second formula over float16, rounded after every step."""
    inner = np.float16(_SQRT_2_OVER_PI) * (x + np.float16(0.044715) * (x * x * x))
    curve = tanhf(inner.astype(np.float32)).astype(np.float16)
    return np.asarray(np.float16(_HALF) * x * (np.float16(_ONE) + curve))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes or 513 samples."""
    transform = partial(gelu_approximate, multiply_add=arithmetic.multiply_add) if node.options["approximate"] else gelu
    return prepare_tabulated(node, transform, arithmetic.multiply_add, is_clamped=False)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Choose the formula."""
    x, _ = same_type(node)
    exact, approximate = _FLOAT[x.type.label]
    return Prepared((x.shape,), approximate if node.options["approximate"] else exact, eval_function)


_FLOAT = {"float32": (gelu_vector, gelu_approximate_vector), "float16": (gelu_half, gelu_approximate_half)}

ROWS = (
    *(Kernel("GELU", f"{t} -> {t}", prepare_float, (1, 3), exactness=SAME_LIBM) for t in _FLOAT),
    *(Kernel("GELU", f"{t} -> {t}", prepare, (1, 3)) for t in ("uint8", "int8", "int16")),
)

UNCLAIMED = close("erf and tanh of an Eigen of that time, which are not reproduced")


def _by_xnnpack(node: Node, arithmetic: Arithmetic) -> Elementwise:
    """Choose the formula."""
    return xnnpack_functions.GELU_APPROXIMATE if node.options["approximate"] else xnnpack_functions.GELU


KERNELS = (
    *ROWS,
    *valid(xnnpack("litert-2.1", cpu="x86-64"), applying("GELU", ROWS, _by_xnnpack)),
    *valid(
        tflite(until="tflite-2.14"),
        *(replace(row, versions=(1, 2), exactness=UNCLAIMED) for row in ROWS if row.signature.is_float),
    ),
)
