"""`PROFILE+single-rounding` against the recorded columns of TFLITE_SINGLE_ROUNDING."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflq.comparison.inspection.profile_pairs import compare_profiles
from tflq.engine.profiles import PROFILES, by_name


@pytest.mark.parametrize("name", ["litert-ref", "tflm"])
def test_accumulators_are_scaled_as_recorded(name: str, shared: Path) -> None:
    with np.load(shared / "vectors" / "multiply_by_quantized_multiplier.npz") as vectors:
        x, mantissa, shift, single, double = (
            vectors[key] for key in ("x", "multiplier", "shift", "cur_single_y", "cur_double_y")
        )
    for profile, wanted in ((f"{name}+single-rounding", single), (name, double)):
        stage = by_name(profile).arithmetic.requantize.__self__.of_fixed(mantissa, shift)  # type: ignore[attr-defined]
        assert np.array_equal(stage(x.astype(np.int32).reshape(1, -1))[0], wanted), profile
    assert not np.array_equal(single, double)


def test_real_multipliers_become_what_was_recorded(shared: Path) -> None:
    with np.load(shared / "vectors" / "quantize_multiplier.npz") as vectors:
        defined = vectors["cur_single_qm_status"] == 0
        real = vectors["real_multiplier"][defined]
        mantissa, shift = (vectors[f"cur_single_qm_{part}"][defined] for part in ("quantized", "shift"))
    stage = by_name("litert-ref+single-rounding").arithmetic.requantize(real)
    assert np.array_equal(stage.mantissa, mantissa)  # type: ignore[attr-defined]
    assert np.array_equal(stage.shift, shift)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_it_differs_in_requantizers_only() -> None:
    for name in ("litert-ref", "tflm"):
        for difference in compare_profiles(PROFILES[name], by_name(f"{name}+single-rounding")):
            assert all(p.name.startswith("requantize") for p in difference.primitives), difference
            assert all(p.second == "SingleRounding" for p in difference.primitives), difference
