"""Roundings that look at the output's error must beat rounding to nearest where inputs are correlated."""

from collections.abc import Callable

import numpy as np
import pytest

from tflq.quantization.refine.moments import match
from tflq.quantization.refine.rounding import adaround, bit_split, gptq, output_error
from tflq.typing import Reals

Rounder = Callable[[Reals, Reals, int, int], Reals]
ROUNDERS = pytest.mark.parametrize("rounder", [gptq, adaround, bit_split])


def correlated(inputs: int, seed: int = 0) -> Reals:
    """Second moments of rectified, correlated inputs with a mean."""
    random = np.random.default_rng(seed)
    mixing = random.normal(size=(inputs, inputs)) / np.sqrt(inputs)
    rows = np.maximum(random.normal(size=(3000, inputs)) @ mixing + 0.5, 0)
    return np.asarray(rows.T @ rows)[None]


def real_codes(outputs: int, inputs: int, seed: int = 1) -> Reals:
    return np.asarray(np.random.default_rng(seed).normal(size=(1, outputs, inputs)) * 30).clip(-127, 127)


@ROUNDERS
@pytest.mark.parametrize("inputs", [9, 72])
def test_halves_the_output_error_of_rounding_to_nearest(rounder: Rounder, inputs: int) -> None:
    square, targets = correlated(inputs), real_codes(16, inputs)
    error = output_error(rounder(targets, square, -127, 127) - targets, square).sum()
    nearest = output_error(np.rint(targets) - targets, square).sum()
    assert error < 0.7 * nearest


@ROUNDERS
def test_codes_are_integers_within_limits(rounder: Rounder) -> None:
    square, targets = correlated(20), real_codes(8, 20) * 4
    codes = rounder(targets, square, -7, 7)
    assert np.array_equal(codes, np.rint(codes))
    assert codes.min() >= -7
    assert codes.max() <= 7


@ROUNDERS
def test_whole_targets_stay(rounder: Rounder) -> None:
    targets = np.rint(real_codes(8, 20))
    np.testing.assert_array_equal(rounder(targets, correlated(20), -127, 127), targets)


@ROUNDERS
def test_inputs_that_are_always_zero_do_no_harm(rounder: Rounder) -> None:
    square = correlated(12)
    square[:, :4] = square[:, :, :4] = 0
    targets = real_codes(5, 12)
    codes = rounder(targets, square, -127, 127)
    assert np.isfinite(codes).all()
    assert output_error(codes - targets, square).sum() <= output_error(np.rint(targets) - targets, square).sum()
    assert np.isfinite(rounder(targets, np.zeros((1, 12, 12)), -127, 127)).all()


def test_matched_weights_make_up_for_inputs_that_are_off() -> None:
    random = np.random.default_rng(3)
    f = random.normal(size=(2000, 10)) @ random.normal(size=(10, 10))
    q = 0.9 * f + 0.05 * random.normal(size=f.shape)
    weights = random.normal(size=(4, 10))
    (better,) = match(weights[None], (f.T @ q)[None], (q.T @ q)[None])
    wanted = f @ weights.T
    assert np.square(wanted - q @ better.T).sum() < 0.2 * np.square(wanted - q @ weights.T).sum()


@ROUNDERS
def test_groups_are_rounded_each_for_itself(rounder: Rounder) -> None:
    squares = [correlated(9, seed) for seed in range(3)]
    targets = [real_codes(2, 9, seed) for seed in range(3)]
    together = rounder(np.concatenate(targets), np.concatenate(squares), -127, 127)
    for g in range(3):
        np.testing.assert_array_equal(together[g], rounder(targets[g], squares[g], -127, 127)[0])
