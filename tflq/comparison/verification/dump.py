"""Dumps: known tensors of one run of a model, by tensor index. A golden file has one for each sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tflq.comparison.verification.golden import Golden, Observation
from tflq.errors import InputError, ShapeError
from tflq.model.ir import Model, view
from tflq.typing import Array

ALL = slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class Dump:
    """Values by tensor index of the first subgraph. `unknown` are entries that name no tensor of the model.

    `variables` are the values of variable tensors, and those that are read by handles, before the run, if they differ
    from the model's. `unwritten` are tensors that the runtime never writes, as far as a recording names them. If it
    `continues`, the run began with the state that the sample before left.
    """

    source: str
    tensors: Mapping[int, Array]
    unknown: tuple[str, ...] = ()
    variables: Mapping[int, Array] = field(default_factory=dict)
    unwritten: frozenset[int] = frozenset()
    continues: bool = False

    def without(self, tensors: Iterable[int]) -> Dump:
        """Return the dump without some tensors."""
        dropped = set(tensors)
        return replace(self, tensors={t: v for t, v in self.tensors.items() if t not in dropped})


def dumps_of_golden(model: Model, golden: Golden, source: str = "", samples: slice = ALL) -> tuple[Dump, ...]:
    """Return samples of a golden. If all tensors were read, an output's value is the one read with them.

    Raises:
        InputError: The golden is for a model with other inputs or outputs, or without some of its tensors.
        ShapeError: An output has another shape than the tensor that was read for it.
    """
    observations = golden.observations[samples]
    lost = [frozenset(t for s, t in golden.unwritten or () if s == one.signature) for one in observations]
    dumps = dumps_of(model, observations, source)
    return tuple(replace(dump, unwritten=tensors) for dump, tensors in zip(dumps, lost, strict=True))


def dumps_of(model: Model, observations: Iterable[Observation], source: str = "") -> tuple[Dump, ...]:
    """Return observations as dumps; raise as `dumps_of_golden`."""
    return tuple(Dump(source, _known(model, one, source), continues=one.continues) for one in observations)


def _known(model: Model, observation: Observation, source: str) -> dict[int, Array]:
    graph = view(model)
    if len(observation.inputs) not in (0, len(graph.inputs)) or len(observation.outputs) > len(graph.outputs):
        raise InputError("is for a model with other inputs or outputs", name=source)
    unknown = [tensor for tensor in observation.tensors if not 0 <= tensor < len(graph.tensors)]
    if unknown:
        expected = f"0 to {len(graph.tensors) - 1}"
        raise InputError("holds a tensor that the model lacks", name=source, expected=expected, got=unknown[0])
    for tensor, output in zip(graph.outputs, observation.outputs):  # noqa: B905 (trailing outputs may be absent)
        tapped = observation.tensors.get(tensor)
        if output is not None and tapped is not None and output.shape != tapped.shape:
            raise ShapeError(graph.tensors[tensor].name or f"#{tensor}", tapped.shape, output.shape)
    known = {
        **dict(zip(graph.outputs, observation.outputs)),  # noqa: B905 (trailing outputs may be absent)
        **{t: v for t, v in observation.tensors.items() if v is not None},
        **dict(zip(graph.inputs, observation.inputs)),  # noqa: B905 (other recordings of the same inputs omit them)
    }
    return {t: v for t, v in known.items() if v is not None}
