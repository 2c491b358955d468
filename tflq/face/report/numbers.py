"""Numbers as short text."""

from __future__ import annotations

import math

_LETTERS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float) -> str:
    """Return a number with at most three digits; whole ones below 10,000 keep all: 512, 1.31 M, 0.0021."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1e4:
        factor, letter = next((f, letter) for f, letter in _LETTERS if abs(value) >= 0.9995 * f)
        return f"{value / factor:.3g} {letter}" if abs(value) < 999.5 * factor else f"{value / factor:,.0f} {letter}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 999.5 else f"{value:.3g}"


def counted(number: int, noun: str) -> str:
    """Return a number and a noun in the singular or the plural."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def bytes_text(size: float) -> str:
    """Return a number of bytes in the largest unit that fits: 812 bytes, 3.28 MiB."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 999.5 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size:,.0f} bytes"


def seconds_text(seconds: float) -> str:
    """Return a time in the largest unit that fits, with three digits: 8.70 ms, 412 us, 12.3 s."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= 0.9995 * factor or unit == "us":
            value = seconds / factor
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return ""
