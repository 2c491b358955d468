"""The integer model that was made from a float model, and what corresponds in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.ir import Model


@dataclass(frozen=True, slots=True, eq=False)
class IntegerModel:
    """An integer model; `operators` gives for each of its operators the float model's, -1 for a conversion."""

    model: Model
    operators: tuple[int, ...]
    tensors: Mapping[int, int]  # float model's tensor -> the integer model's that holds its values as they are made
