"""The inputs that travel together while a model is quantized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tflq.model.ir import Model
from tflq.progress import Progress
from tflq.quantization.ranges.watching import Watching
from tflq.quantization.recipe.recipe import Methods, Recipe
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.shared import Shared


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A float model to be quantized by the `methods` of a recipe on calibration samples.

    `kept_float` gives the reason, by index, why operators stay in float. `wide` operators compute in the wider mode of
    the recipe's budget, if they can, and `norms` with activations of 16 bits; `portable` ones give the same bits on the
    runtimes that it is portable to. Up to
    `jobs` processes work on the task at the same time. Tasks of the same float model have `shared` in common, and its
    observations in `watching`. `reference` computes the scores to be kept, if it is another model with the same tensors
    than `floats`, whose loops are then integer.
    """

    floats: FloatModel
    samples: Sequence[Sample]
    recipe: Recipe
    methods: Methods
    kept_float: Mapping[int, str] = field(default_factory=dict)
    wide: frozenset[int] = frozenset()
    norms: frozenset[int] = frozenset()
    portable: frozenset[int] = frozenset()
    progress: Progress | None = None
    jobs: int = 1
    reference: Model | None = None
    shared: Shared = field(default_factory=Shared)
    watching: Watching = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "watching", self.shared.once("watching", lambda: Watching(self.shared, self.jobs)))

    def tell(self, phase: str, done: int, total: int) -> None:
        """Report progress to the listener, if there is one; `total` is 0 if it is unknown."""
        if self.progress is not None:
            self.progress(phase, done, total)
