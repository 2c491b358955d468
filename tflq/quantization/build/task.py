"""What travels together while a model is quantized."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tflq.quantization.progress import Progress
from tflq.quantization.recipe.recipe import Methods, Recipe
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.float_graph import FloatModel


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A float model to be quantized by the `methods` of a recipe on calibration samples, which are iterated often.

    `kept_float` says why operators stay in float, by index; `wide` operators compute in mode int16x8 where they can.
    """

    floats: FloatModel
    samples: Iterable[Sample]
    recipe: Recipe
    methods: Methods
    kept_float: Mapping[int, str] = field(default_factory=dict)
    wide: frozenset[int] = frozenset()
    progress: Progress | None = None

    def tell(self, phase: str, done: int, total: int) -> None:
        """Report progress to whoever listens; `total` is 0 where nobody knows it."""
        if self.progress is not None:
            self.progress(phase, done, total)
