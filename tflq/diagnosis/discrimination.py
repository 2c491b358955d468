"""Search inputs that distinguish causes which all reproduce a dump, and the result of each cause on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from tflq.comparison.inspection.difference import unequal
from tflq.comparison.verification.dump import Dump
from tflq.diagnosis.causes import Explanation
from tflq.diagnosis.hypotheses import hypotheses
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes import Device
from tflq.diagnosis.outcomes import Results, fits, results
from tflq.diagnosis.probes import batched, probes, random_values
from tflq.display import display_by
from tflq.engine.api.part import Part
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, view
from tflq.typing import Array

#: Number of tried inputs of the whole model, results of a batch, and rounds of inputs of the operator alone.
_MODEL_TRIALS, _OUTPUTS, _ROUNDS = 12, 1 << 17, 8


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Inputs in graph order, and the results of operator `index` by cause and tensor."""

    inputs: tuple[Array, ...]
    expected: tuple[Results, ...]


@display_by("explain.report:discrimination_card")
@dataclass(frozen=True, slots=True, eq=False)
class Discrimination:
    """The inputs that distinguish the causes of operator `index`, or of a whole model if that is None.

    If `of_model` is set, the trials hold the whole model's inputs, otherwise those of operator `index` as a model of
    its own (`tflq extract`). `groups` are the numbers of causes that no trial distinguishes.
    """

    index: int | None
    causes: tuple[str, ...]
    of_model: bool
    trials: tuple[Trial, ...]
    groups: tuple[tuple[int, ...], ...]

    def arrays(self) -> dict[str, Array]:
        """Return entries of an `.npz`: `s<k>_in<i>` as for `--inputs`, `s<k>_cause<c>_<tensor>`, `cause<c>` (names)."""
        entries: dict[str, Array] = {f"cause{c}": np.array(name) for c, name in enumerate(self.causes)}
        for k, trial in enumerate(self.trials):
            entries |= {f"s{k}_in{i}": value for i, value in enumerate(trial.inputs)}
            for c, values in enumerate(trial.expected):
                entries |= {f"s{k}_cause{c}_{tensor}": value for tensor, value in values.items()}
        return entries


def discriminate(model: Model, dump: Dump, explanation: Explanation, profile: Profile) -> Discrimination:
    """Search inputs on which exact causes differ, under all their names: of the model, else of the operator alone."""
    alone = operator_alone(model, dump, explanation.index, profile)
    devices = {h.name: h.device for cause in explanation.fitting for h in cause.members}
    causes = tuple(devices)
    best, of_model = distinguish(_of_model(model, alone, profile), list(devices.values())), True
    if len(best.groups) < len(causes):
        others = chain(_of_batch(alone, profile, causes), probes(alone, rounds=_ROUNDS))
        own = distinguish(((_given(other), other) for other in others), list(devices.values()))
        if len(own.groups) > len(best.groups):
            best, of_model = own, False
    return Discrimination(explanation.index, causes, of_model, best.trials, best.groups)


def _devices(alone: Part, profile: Profile, names: Sequence[str]) -> dict[str, Device]:
    """Return the hypotheses of those names, created again for inputs of another shape."""
    known: dict[str, Device] = {}
    for hypothesis in hypotheses(alone, profile):
        known.setdefault(hypothesis.name, hypothesis.device)
    return {name: known[name] for name in names if name in known}


def _given(alone: Part) -> tuple[Array, ...]:
    return tuple(alone.inputs[position] for position in alone.graph.inputs)


def _of_model(model: Model, alone: Part, profile: Profile) -> Iterator[tuple[tuple[Array, ...], Part]]:
    """Yield random inputs of the model, and the operator on the profile's results before it."""
    graph = view(model)
    try:
        plan = make_plan(model, profile)
        for trial in range(_MODEL_TRIALS):
            rng = np.random.default_rng(trial)
            model_inputs = [
                random_values(rng, CARRIER[plan.operands[t].type], plan.operands[t].shape, trial) for t in graph.inputs
            ]
            known = run(plan, dict(zip(graph.inputs, model_inputs, strict=True)), keep_all=True).values
            inputs = {p: known[alone.tensors[p]] for p in alone.inputs}
            if any(inputs[p].shape != value.shape for p, value in alone.inputs.items()):
                return
            yield tuple(model_inputs), replace(alone, inputs=inputs)
    except (TflqError, KeyError):
        return  # the profile cannot run the model, or its inputs cannot be generated


def _of_batch(alone: Part, profile: Profile, causes: Sequence[str]) -> Iterator[Part]:
    """Yield the random inputs, selected from a large batch, on which two causes give different results.

    Accumulators near a rounding's ties are among them.
    """
    batch = batched(alone, _OUTPUTS)
    if batch is None:
        return
    devices = _devices(batch, profile, causes)
    computed = [values for device in devices.values() if fits(values := results(device, batch), batch)]
    chosen: set[int] = set()
    for one, other in combinations(computed, 2):
        for tensor in one:
            apart = unequal(one[tensor], other[tensor])
            rows = np.flatnonzero(apart.reshape(len(apart), -1).any(axis=1))
            if rows.size and not chosen & set(rows.tolist()):
                chosen.add(int(rows[0]))
    for row in sorted(chosen):
        taken = {p: v[row : row + 1] if v.shape != alone.inputs[p].shape else v for p, v in batch.inputs.items()}
        yield replace(alone, inputs=taken)


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """The trials that distinguish more causes than those before them, and the causes that none distinguishes."""

    trials: tuple[Trial, ...]
    groups: tuple[tuple[int, ...], ...]


def distinguish(trials: Iterable[tuple[tuple[Array, ...], Part]], devices: Sequence[Device]) -> Separation:
    """Run devices on inputs and the part computed from them, until all devices differ or the trials end."""
    groups: list[list[int]] = [list(range(len(devices)))]
    kept = []
    for inputs, alone in trials:
        expected = [results(device, alone) for device in devices]
        parts = [part for group in groups for part in _part(group, expected)]
        if len(parts) > len(groups):
            groups = parts
            kept.append(Trial(inputs, tuple(expected)))
        if len(groups) == len(devices):
            break
    return Separation(tuple(kept), tuple(tuple(group) for group in groups))


def _part(group: Sequence[int], expected: Sequence[Results]) -> list[list[int]]:
    parts: dict[tuple[tuple[int, bytes], ...], list[int]] = {}
    for cause in group:
        key = tuple((tensor, value.tobytes()) for tensor, value in sorted(expected[cause].items()))
        parts.setdefault(key, []).append(cause)
    return list(parts.values())
