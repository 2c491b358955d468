"""A row whose output stages are replaced by one point of the grammar of requantizers.

A kernel hands real multipliers to its arithmetic. Where such a multiplier is the quotient of the operator's own scales,
a * b / y or a / y, the point computes it from the scales again; all others stay as the kernel made them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multipliers_of_scales import Scales
from tflq.engine.numerics.requantizer import Requantizer
from tflq.engine.numerics.requantizer_stage import GrammarStage
from tflq.engine.numerics.stages import OutputStage, StageOf, as_reals
from tflq.model.ir import TensorType

_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Relative distance up to which a multiplier is taken for a quotient of scales.
_NEAR = 1e-6


def requantize(row: Kernel, point: Requantizer) -> Kernel:
    """Return the row with every output stage replaced."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        quotients = [] if point.multiplier == "given" and not point.uses_scales else list(quotients_of(node))

        def change(_own: StageOf) -> StageOf:
            return lambda real: _stage(point, real, quotients)

        return row.prepare(node, arithmetic.each_stage(change))

    return replace(row, prepare=prepare)


def _stage(point: Requantizer, real: ArrayLike, quotients: list[Scales]) -> OutputStage:
    values = as_reals(real)
    with np.errstate(all="ignore"):
        known = next((s for s in quotients if _is_near(values, s)), None)
    return GrammarStage.of(point, values, known)


def _is_near(real: np.ndarray[tuple[int, ...], np.dtype[np.float64]], scales: Scales) -> bool:
    product = scales.real
    return product.size in (1, real.size) and bool(np.allclose(real, product, rtol=_NEAR, atol=0))


def quotients_of(node: Node) -> Iterator[Scales]:
    """Yield the scales whose quotients may be the multipliers of a node."""
    operands = [o for o in (*node.inputs[:2], *node.outputs[:1]) if o is not None and o.type in _CODES]
    scales = [o.quantization.scale.astype(np.float32) for o in operands if o.quantization is not None]
    if len(scales) < 2 or any(not s.size for s in scales):
        return
    *factors, y = scales
    if len(factors) == 2:
        yield Scales(factors[0], factors[1], y)
    alpha = node.options.get("alpha")
    if alpha is not None:
        yield Scales(factors[0], np.atleast_1d(np.float32(alpha)), y)
    for factor in factors:
        yield Scales(factor, None, y)
