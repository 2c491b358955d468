"""Channels in which a form differs from a device, if these repeat: lanes and tails of vector code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.devices.learning.answer import Answer
from tflq.devices.learning.form import Form
from tflq.devices.learning.forms import Forms


def repeating_channels(forms: Forms, form: Form, answers: Sequence[Answer]) -> str:
    """Return a sentence on the channels in which a form differs from the device, if these repeat."""
    wrong: set[int] = set()
    right: set[int] = set()
    for answer in answers:
        found = forms.results(form, answer.draft)
        for outputs, got in zip(found or (), answer.outputs, strict=False):
            for one, other in zip(outputs, got, strict=True):
                if one.shape == other.shape and one.ndim > 1:
                    differs = (one != other).reshape(-1, one.shape[-1]).any(axis=0)
                    wrong |= set(np.flatnonzero(differs).tolist())
                    right |= set(range(one.shape[-1])) - set(np.flatnonzero(differs).tolist())
    only = wrong
    for modulus in (2, 4, 8, 16):
        classes = {channel % modulus for channel in only}
        if only and len(classes) == 1 and right - only and max(right | only) >= 2 * modulus:
            return f"differs only in channels that are {classes.pop()} modulo {modulus}"
    return ""
