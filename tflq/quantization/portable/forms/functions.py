"""Pointwise operators as functions of real numbers, in float64.

Sources: the definitions in LiteRT 2.3's schema and its float reference kernels (reference_ops.h, gelu.h, elu.h,
hard_swish.h). Values need no particular last bit: they become constants of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import OperatorView
from tflq.model.ir.schema import enum_names

Reals = NDArray[np.float64]
Function = Callable[..., Reals]


def _elu(x: Reals) -> Reals:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _gelu(x: Reals) -> Reals:
    erf = np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2))
    return np.asarray(x * 0.5 * (1 + erf), np.float64)


def _gelu_by_tanh(x: Reals) -> Reals:
    return np.asarray(x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), np.float64)


def _logistic(x: Reals) -> Reals:
    return 0.5 * (1 + np.tanh(x / 2))


def _slope(x: Reals, alpha: Reals | float) -> Reals:
    return np.where(x < 0, x * alpha, x)


def _between(low: float, high: float) -> Function:
    return lambda x: np.clip(x, low, high)


_RECTIFIERS: Mapping[str, Function] = MappingProxyType(
    {
        "RELU": _between(0, np.inf),
        "RELU6": _between(0, 6),
        "RELU_N1_TO_1": _between(-1, 1),
        "RELU_0_TO_1": _between(0, 1),
    }
)
#: The functions that operators fuse into their result, by the schema's name.
_FUSED: Mapping[str, Function] = MappingProxyType({**_RECTIFIERS, "NONE": lambda x: x, "TANH": np.tanh})
#: Operator -> function of its operands.
_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        **_RECTIFIERS,
        "ABS": np.abs,
        "ADD": np.add,
        "CEIL": np.ceil,
        "COS": np.cos,
        "DEQUANTIZE": lambda x: x,
        "DIV": np.divide,
        "ELU": _elu,
        "EXP": np.exp,
        "FLOOR": np.floor,
        "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "LOG": np.log,
        "LOGISTIC": _logistic,
        "MAXIMUM": np.maximum,
        "MINIMUM": np.minimum,
        "MUL": np.multiply,
        "NEG": np.negative,
        "POW": np.power,
        "PRELU": _slope,
        "QUANTIZE": lambda x: x,
        "RSQRT": lambda x: 1 / np.sqrt(x),
        "SIGN": np.sign,
        "SIN": np.sin,
        "SQRT": np.sqrt,
        "SQUARE": np.square,
        "SQUARED_DIFFERENCE": lambda a, b: np.square(a - b),
        "SUB": np.subtract,
        "TANH": np.tanh,
    }
)


def function_of(operator: OperatorView) -> Function | None:
    """Return an operator's function of the real values of its operands; None if it is not pointwise, or unknown."""
    name, options = operator.name, operator.options
    if name == "GELU":
        return _gelu_by_tanh if options is not None and options.get("approximate") else _gelu
    if name == "LEAKY_RELU":
        return None if options is None else lambda x: _slope(x, float(options["alpha"]))
    function = _FUNCTIONS.get(name)
    fused = fused_function(operator)
    return None if function is None or fused is None else lambda *x: fused(function(*x))


def fused_function(operator: OperatorView) -> Function | None:
    """Return the function that an operator fuses into its result; None if it is not pointwise."""
    number: Any = 0 if operator.options is None else operator.options.get("fused_activation_function", 0)
    return _FUSED.get(enum_names("ActivationFunctionType").get(int(number), ""))
