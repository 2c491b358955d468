"""Differences of tensors as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.inspection.difference import Difference


def histogram_text(difference: Difference) -> str:
    """Return the histogram of distances in LSB or ULP; elements beyond HISTOGRAM_REACH count at its ends."""
    from tflq.inspection.difference import HISTOGRAM_REACH

    def label(distance: int) -> str:
        return f"{distance:+d}" if abs(distance) < HISTOGRAM_REACH else f"{distance:+d} or beyond"

    return ", ".join(f"{label(distance)}: {count:,}" for distance, count in difference.histogram)
