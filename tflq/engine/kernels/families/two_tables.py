"""Operators on 8-bit codes by two tables: one for whole blocks of vector code, one for what is left over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.unary import Tabulated
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.numerics.tables import look_up_8bit
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class TwoTables:
    """An operator on 8-bit codes whose whole blocks go by another table than what is left over."""

    whole: Tabulated
    tail: Tabulated
    block: int


def eval_tables(data: TwoTables, x: Array) -> Array:
    """Source: Requantize. No rounding: that happened when the tables were computed."""
    codes = np.ascontiguousarray(x).reshape(-1)
    at = in_whole_blocks(codes.size, data.block)
    whole, tail = look_up_8bit(data.whole.table, codes[:at]), look_up_8bit(data.tail.table, codes[at:])
    return np.concatenate((whole, tail)).reshape(x.shape)
