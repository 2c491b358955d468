"""A planted fault: a model, the tensors that a device gave, and patterns of the right and of an honest answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.planting import _inputs, _went_on
from device.site import Site, site_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import CARRIER, Model, TensorType, view

Array = NDArray[Any]
Values = dict[int, Array]
#: Profiles that devices otherwise follow, with their frequencies.
BASES = {"litert-ref": 0.5, "tflm": 0.25, "tflite-2.14-ref": 0.15, "litert-opt": 0.1}


@dataclass(frozen=True, eq=False)
class Planted:
    """A fault in a run. The answer has to contain one of the patterns in `right`, in any case.

    `samples` are the tensors that a user has, `given` the inputs that were meant, if they are not among these.
    """

    kind: str
    family: str
    model: Model
    path: str
    profile: str
    index: int
    samples: tuple[Values, ...]
    right: tuple[str, ...]
    given: tuple[Array, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, eq=False)
class Run:
    """Right runs of a model on several samples: all tensors."""

    path: str
    model: Model
    profile: str
    samples: tuple[Values, ...]

    @property
    def operators(self) -> range:
        """The indices of its operators."""
        return range(len(view(self.model).ops))

    def site(self, index: int) -> Site | None:
        """Return an operator in the device's terms."""
        return site_of(self.model, index)

    def output(self, index: int) -> int:
        """Return the first result of an operator."""
        return view(self.model).op(index).outputs[0]

    def with_result(self, index: int, results: Sequence[Array]) -> tuple[Values, ...]:
        """Return the runs in which an operator gave other results, and later operators went on from these."""
        site = self.site(index)
        assert site is not None
        profile = by_name(self.profile)
        return tuple(
            dict(_went_on(self.model, site, profile, values, result))
            for values, result in zip(self.samples, results, strict=True)
        )

    def without_reading(self, index: int, results: Sequence[Array]) -> tuple[Values, ...]:
        """Return the runs in which a result changed after it was read."""
        tensor = self.output(index)
        return tuple({**values, tensor: result} for values, result in zip(self.samples, results, strict=True))

    def kept(self, samples: Sequence[Values], *, whole: bool) -> tuple[Values, ...]:
        """Return all tensors that operators wrote with the inputs, or inputs and outputs only."""
        graph = view(self.model)
        names = {*graph.inputs, *graph.outputs, *(graph.last_writers if whole else ())}
        return tuple({t: v for t, v in values.items() if t in names} for values in samples)


def drawn_run(path: Path, model: Model, rng: np.random.Generator, samples: int = 0) -> Run:
    """Return right runs on random inputs, under a profile that runs the model."""
    names = list(BASES)
    profile = str(rng.choice(names, p=[BASES[name] for name in names]))
    count = samples or int(rng.integers(1, 4))
    plan = make_plan(model, by_name(profile))
    values = [dict(run(plan, _inputs(model, rng), keep_all=True).values) for _ in range(count)]
    return Run(str(path), model, profile, tuple(values))


def run_on(run_: Run, inputs: Sequence[Mapping[int, Array]]) -> Run:
    """Return the runs on other inputs."""
    plan = make_plan(run_.model, by_name(run_.profile))
    return replace(run_, samples=tuple(dict(run(plan, one, keep_all=True).values) for one in inputs))


def carrier(model: Model, tensor: int) -> np.dtype[Any]:
    """Return the type of a tensor's elements."""
    kind = view(model).tensors[tensor].type
    assert isinstance(kind, TensorType)
    return CARRIER[kind]


@dataclass(frozen=True)
class Kind:
    """A kind of fault: `plant` draws one into a run, or returns None where it cannot be."""

    name: str
    family: str
    plant: Callable[[Run, np.random.Generator], Planted | None]
    samples: int = 0  # 0: one to three
    weight: float = 1.0
    tags: tuple[str, ...] = field(default=())
