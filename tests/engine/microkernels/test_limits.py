"""Measured limits of the processor."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.microkernels import forms, limits

pytestmark = pytest.mark.skipif(forms.choose(False) is None, reason="no form for this processor")


def test_limits_are_those_of_the_best_forms() -> None:
    found = limits.limits()
    best, wide = forms.choose(False), forms.choose(True)
    assert best is not None
    assert wide is not None
    assert (found["codes"]["form"], found["wide"]["form"]) == (best.name, wide.name)
    assert all(float(each["rate"]) > 1e8 for each in found.values())


def test_wider_registers_make_more_products() -> None:
    """A loop whose products were moved out of it, or left out, would not depend on the form."""
    by_lanes = {form.lanes: limits.rate_of_form(form) for form in forms.available(True) if form.group == 2}
    ordered = [by_lanes[lanes] for lanes in sorted(by_lanes)]
    if len(ordered) < 2:
        pytest.skip("one form only")
    assert np.all(np.diff(ordered[:2]) > 0)
