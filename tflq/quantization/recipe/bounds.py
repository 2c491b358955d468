"""Bounds of the numbers in a recipe."""

from __future__ import annotations

import math

from tflq.errors import OptionError


def check_number(name: str, number: float | None, least: float = -math.inf, most: float = math.inf) -> None:
    """Refuse a number outside [least, most], NaN and infinite numbers; None is accepted.

    Raises:
        OptionError: Names the field.
    """
    if number is not None and not (math.isfinite(number) and least <= number <= most):
        finite = "a finite number" if math.isinf(least) else f"at least {least:g}"
        raise OptionError(name, expected=finite if math.isinf(most) else f"{least:g} to {most:g}", got=number)
