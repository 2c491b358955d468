"""Real multipliers of a single operator's scales, in the precisions of numerics/multipliers_of_scales.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.multipliers_of_scales import Reals, in_float32, in_float64, of_float32_product, product_last
from tflq.engine.numerics.multipliers_of_scales import Scales as Quotient
from tflq.model.ir import Model, TensorType, view

Scales = NDArray[np.float32]

_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)

_OF_ONE = {"multiplier computed in float64": in_float64, "multiplier computed in float32": in_float32}
_OF_TWO = {
    **_OF_ONE,
    "multiplier computed in float32, the product of scales last": product_last,
    "multiplier of a product of scales in float32": of_float32_product,
}


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
        yield _forms(Quotient(x, None, y))
        if alpha is not None:
            yield _forms(Quotient(x, np.atleast_1d(alpha), y))
    if len(scales) == 3:
        a, b, y = scales
        yield _forms(Quotient(a, None, y))  # PRELU, for inputs above 0
        yield _forms(Quotient(a, b, y))


def _forms(scales: Quotient) -> Mapping[str, Reals]:
    """Return the multipliers by name; those of one scale have no order."""
    return {name: form(scales) for name, form in (_OF_ONE if scales.b is None else _OF_TWO).items()}
