"""Between which bounds the numbers of a recipe may lie."""

from __future__ import annotations

import math

from tflq.errors import OptionError


def check_number(name: str, number: float | None, least: float = -math.inf, most: float = math.inf) -> None:
    """Refuse a number outside [least, most], and NaN and infinite ones; None is no number.

    Raises:
        OptionError: Names the field.
    """
    if number is not None and not (math.isfinite(number) and least <= number <= most):
        finite = "a finite number" if math.isinf(least) else f"at least {least:g}"
        raise OptionError(name, expected=finite if math.isinf(most) else f"{least:g} to {most:g}", got=number)
