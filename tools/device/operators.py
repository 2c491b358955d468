"""The device's operators, and its results for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.contraction import contract
from device.description import Device
from device.elementwise import add, leaky_relu, multiply, requantize, tabulate
from device.reducing import average_pool, mean, total
from device.site import Site

Array = NDArray[Any]

_EIGHT = ("uint8", "int8")
_ALL = ("uint8", "int8", "int16")

#: By operator: the types of its first input, and the function.
OPERATORS: dict[str, tuple[tuple[str, ...], Callable[..., Array]]] = {
    "CONV_2D": (_ALL, contract),
    "DEPTHWISE_CONV_2D": (_ALL, contract),
    "FULLY_CONNECTED": (_ALL, contract),
    "ADD": (_ALL, add),
    "SUB": (_ALL, add),
    "MUL": (_ALL, multiply),
    "LEAKY_RELU": (_ALL, leaky_relu),
    "QUANTIZE": ((*_ALL, "int32"), requantize),
    "LOGISTIC": (_EIGHT, tabulate),
    "TANH": (_EIGHT, tabulate),
    "AVERAGE_POOL_2D": (_ALL, average_pool),
    "MEAN": (_ALL, mean),
    "SUM": (_EIGHT, total),
}


def has(site: Site) -> bool:
    """Return whether the device can compute the operator."""
    if site.op not in OPERATORS or site.type not in OPERATORS[site.op][0]:
        return False
    y = site.output
    if y.dtype.kind not in "iu" or not len(site.input(0).scales) or not len(y.scales):
        return False
    if OPERATORS[site.op][1] is contract:
        return _has_contraction(site)
    if site.op in ("ADD", "SUB", "MUL"):
        by_shifts = site.type == "int16" and bool(site.options.get("pot_scale_int16"))
        return site.input(1).dtype == site.input(0).dtype == y.dtype and not by_shifts
    return True


def _has_contraction(site: Site) -> bool:
    x, w, y = site.input(0), site.input(1), site.output
    bias = site.inputs[2] if len(site.inputs) > 2 else None
    if w.value is None or (bias is not None and bias.value is None) or y.dtype != x.dtype:
        return False
    return len(w.scales) > 0 and w.dtype == (np.dtype(np.uint8) if x.dtype == np.uint8 else np.dtype(np.int8))


def compute(site: Site, device: Device, values: Mapping[int, Array]) -> Array:
    """Return the operator's output for the tensors' values; constants come from the model."""
    given = [values.get(o.tensor, o.value) for o in data(site)]
    result: Array = OPERATORS[site.op][1](site, device, *given)
    if device.only_first_item:
        result = result.copy()
        result[1:] = 0
    return result


def data(site: Site) -> list[Any]:
    """Return the operands that hold codes: all inputs of elementwise operators, the first one of the others."""
    return [site.input(i) for i in range(2 if site.op in ("ADD", "SUB", "MUL") else 1)]
