"""The names of the values that the fields of an `Arithmetic` take: how files and tables of profiles spell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tflq.engine.numerics.arithmetic import STAGES, Arithmetic, below_zero, exact_real, prepared_real
from tflq.engine.numerics.block_products import sum_by_block, sum_in_four_lanes
from tflq.engine.numerics.dynamic_range_float32 import rescale_apart, rescale_fused
from tflq.engine.numerics.float32_stages import ExactHalfUp, FloatRoundingEven, FloatRoundingWrapped, ShortHalfUp
from tflq.engine.numerics.float_rounding import FloatRounding
from tflq.engine.numerics.multiply_add import fuse, round_apart
from tflq.engine.numerics.stages import DoubleRounding, HalfUpTwice, SingleRounding, WideRounding
from tflq.engine.numerics.xnnpack_functions import AVX2, AVX512
from tflq.errors import OptionError, UnknownNameError

#: Rules that scale accumulators back to codes.
_STAGES: Mapping[str, Any] = {
    "double-rounding": DoubleRounding.of,
    "half-up-twice": HalfUpTwice.of,
    "single-rounding": SingleRounding.of,
    "wide-rounding": WideRounding.of,
    "float64": FloatRounding.of,
    "float64-wide": FloatRounding.of_wide,
    "float32-even": FloatRoundingEven.of,
    "float32-even-wrapped": FloatRoundingWrapped.of,
    "exact-half-up": ExactHalfUp.of,
    "short-half-up": ShortHalfUp.of,
}
#: The values of each field by name; a field that is missing here takes a whole number of bytes.
VALUES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        **dict.fromkeys(STAGES, _STAGES),
        "dense_real": {"exact": exact_real, "prepared": prepared_real},
        "multiply_add": {"rounded-apart": round_apart, "fused": fuse},
        "xnnpack_rescale": {"fused": rescale_fused, "apart": rescale_apart},
        "xnnpack_blocks": {"unknown": None, "four-lanes": sum_in_four_lanes, "by-block": sum_by_block},
        "xnnpack_functions": {"avx2": AVX2, "avx-512": AVX512},
        "xnnpack_negative": {"sign-bit": np.signbit, "below-zero": below_zero},
        "xnnpack_lanes": {"eight": 8, "sixteen": 16},
        "int4_offset": {"seven": 7, "eight": 8},
        "scale_type": {"float32": np.float32, "float64": np.float64},
        "operand_scale_type": {"as others": None, "float64": np.float64},
        "difference_scale_type": {"float32": np.float32, "float64": np.float64},
    }
)
FIELDS = tuple(field.name for field in fields(Arithmetic))


def value_of(field: str, name: object) -> object:
    """Return the value of a field that `name` denotes.

    Raises:
        UnknownNameError: The field does not exist, or has no value of that name.
        OptionError: The field takes a number of bytes, and `name` is none.
    """
    if field not in FIELDS:
        raise UnknownNameError("arithmetic field", field, FIELDS)
    if field not in VALUES:
        if not isinstance(name, int) or isinstance(name, bool) or not 1 <= name <= 1 << 30:
            raise OptionError(f"{field} takes a number of bytes from 1 to {1 << 30}, not {name!r}")
        return name
    if not isinstance(name, str) or name not in VALUES[field]:
        raise UnknownNameError(f"value of {field}", str(name), tuple(VALUES[field]))
    return VALUES[field][name]


def name_of(field: str, value: object) -> str | int:
    """Return how files spell the value of a field."""
    if field not in VALUES:
        assert isinstance(value, int)
        return value
    return next(name for name, known in VALUES[field].items() if known == value)


def changed(arithmetic: Arithmetic, named: Mapping[str, object]) -> Arithmetic:
    """Return the arithmetic with the fields in `named`, whose values are spelled by name."""
    values: dict[str, Any] = {field: value_of(field, name) for field, name in named.items()}
    return replace(arithmetic, **values)


def names(arithmetic: Arithmetic) -> dict[str, str | int]:
    """Return every field of an arithmetic, spelled by name."""
    return {field: name_of(field, getattr(arithmetic, field)) for field in FIELDS}
