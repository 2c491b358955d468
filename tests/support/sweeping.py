"""Parameters of a test: a few in the default selection, all of them in the slow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return `values` as parameters, all of which are slow except those kept; a tuple has a value for each name."""
    slow = pytest.mark.slow
    return [
        value if value in kept else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=slow)
        for value in values
    ]
