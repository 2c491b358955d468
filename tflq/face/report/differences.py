"""Differences of tensors as text."""

from __future__ import annotations

from tflq.comparison.inspection.difference import HISTOGRAM_REACH, Difference


def how_far(d: Difference) -> str:
    """Return how many elements differ, how far, and in which direction."""
    text = f"{d.differing:,} of {d.elements:,} elements differ"
    if not d.unit or not d.above + d.below:
        return text
    floats = "" if d.absolute is None else f" ({d.absolute:.3g} absolute, {d.relative:.3g} relative)"
    directions = f"{d.above:,} above, {d.below:,} below, {d.bias:+.3f} on average"
    return f"{text}, by up to {d.largest:,} {d.unit}{floats}: {directions}"


def histogram_text(difference: Difference) -> str:
    """Return the histogram of distances in LSB or ULP; elements beyond HISTOGRAM_REACH count at its ends."""

    def label(distance: int) -> str:
        return f"{distance:+d}" if abs(distance) < HISTOGRAM_REACH else f"{distance:+d} or beyond"

    return ", ".join(f"{label(distance)}: {count:,}" for distance, count in difference.histogram)
