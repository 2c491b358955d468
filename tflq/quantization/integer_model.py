"""An integer model built from a float model, and the correspondence of the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.model.ir import Model


@dataclass(frozen=True, slots=True, eq=False)
class IntegerModel:
    """An integer model; `operators` maps each of its operators to the float model's, -1 for a conversion."""

    model: Model
    operators: tuple[int, ...]
    tensors: Mapping[int, int]  # float model's tensor -> the integer model's tensor with its values as produced
