"""Scaling of stored numbers to the model's inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.errors import OptionError
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Scaling:
    """value = (stored - mean) / std in float32; one number each, or one per channel (last axis)."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    @staticmethod
    def of(mean: float | Sequence[float], std: float | Sequence[float]) -> Scaling:
        """Return the scaling from numbers or sequences of numbers; std must not hold 0."""
        scaling = Scaling(*(tuple(float(v) for v in np.atleast_1d(numbers)) for numbers in (mean, std)))
        if not np.all(np.isfinite(scaling.mean)) or not np.all(np.isfinite(scaling.std)) or 0.0 in scaling.std:
            raise OptionError("mean and std must be finite, and std not 0", expected="numbers", got=(mean, std))
        return scaling

    @property
    def identity(self) -> bool:
        """True if nothing would change."""
        return set(self.mean) == {0.0} and set(self.std) == {1.0}

    def apply(self, stored: Array) -> Array:
        """Return the scaled values, float32."""
        if self.identity:
            return stored.astype(np.float32)
        channels = stored.shape[-1] if stored.ndim else 1
        for numbers in (self.mean, self.std):
            if len(numbers) not in (1, channels):
                raise OptionError(
                    "mean and std have one number, or one per channel", expected=channels, got=len(numbers)
                )
        mean, std = (np.array(numbers, np.float32) for numbers in (self.mean, self.std))
        scaled: Array = (stored.astype(np.float32) - mean) / std
        return scaled
