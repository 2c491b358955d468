"""Functions of floats by XNNPACK, compared with live LiteRT on floats of any bit pattern, in blocks and left over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from support.float_sweeps import assert_function_matches
from support.processors import XNNPACK, has_xnnpack_profile

FUNCTIONS: dict[str, tuple[str, tuple[str, Mapping[str, Any]] | None]] = {
    **{op.lower(): (op, None) for op in ("EXP", "TANH", "LOGISTIC", "ELU", "LOG", "SIN", "COS", "HARD_SWISH", "ROUND")},
    "gelu": ("GELU", ("GeluOptions", {"approximate": False})),
    "gelu_approximate": ("GELU", ("GeluOptions", {"approximate": True})),
}


@pytest.mark.slow
@has_xnnpack_profile
@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_of_any_kind(name: str) -> None:
    op, options = FUNCTIONS[name]
    for size in (1, 7, 33, 1 << 20):
        assert_function_matches(op, XNNPACK, size, options)
