"""Inputs that part causes, and inputs that part profiles.

Other inputs for one operator, on which hypotheses about it may differ.

Search inputs that distinguish causes which all reproduce a dump, and the result of each cause on them.

Search model inputs on which profiles differ that all fit a dump.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.inspection.difference import digest_of, unequal
from tflq.comparison.verification.localization import alone
from tflq.diagnosis.causes import Explanation
from tflq.diagnosis.hypotheses import Results, fits, hypotheses, results
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes import Device
from tflq.diagnosis.mistakes.device import Under, computation
from tflq.engine.api.many import Part, part_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, TensorType, view
from tflq.texts import Documented, display_by
from tflq.typing import Array

#: Number of orders of the dump's own values that are tried.
_ORDERS = 4


def shuffle(alone: Part, seed: int = 0) -> Iterator[Part]:
    """Yield the operator on its inputs' own values in other orders."""
    rng = np.random.default_rng(seed)
    for _ in range(_ORDERS):
        yield replace(alone, inputs={p: _shuffle(rng, v) if _is_data(v) else v for p, v in alone.inputs.items()})


def probes(alone: Part, rounds: int, seed: int = 0) -> Iterator[Part]:
    """Yield the operator on other inputs: two kinds per round, uniformly distributed codes and extremes."""
    rng = np.random.default_rng(seed)
    for kind in range(2 * rounds):
        yield replace(alone, inputs={p: _other(rng, v, kind) if _is_data(v) else v for p, v in alone.inputs.items()})


def batched(alone: Part, outputs: int, seed: int = 0) -> Part | None:
    """Return the operator on a batch of random inputs with about this many results.

    Half of the inputs are uniformly distributed codes, half of them the dump's own values. The result is None if the
    operator does not take batches of 1.
    """
    data = {p: v for p, v in alone.inputs.items() if _is_data(v)}
    shapes = [v.shape for v in (*data.values(), *alone.got.values())]
    if not data or any(len(shape) < 2 or shape[0] != 1 for shape in shapes):
        return None
    rng = np.random.default_rng(seed)
    half = max(1, outputs // (2 * sum(v.size for v in alone.got.values()) or 1))
    batches = {
        p: np.concatenate([_other(rng, np.repeat(v, half, 0), 0), rng.choice(v.reshape(-1), (half, *v.shape[1:]))])
        for p, v in data.items()
    }
    got = {t: np.repeat(v, 2 * half, 0) for t, v in alone.got.items()}
    return replace(alone, inputs={**alone.inputs, **batches}, got=got)


def _is_data(value: Array) -> bool:
    """Return whether values are data: others (shapes, axes, indices) stay unchanged."""
    return value.dtype.kind == "f" or value.dtype in (np.int8, np.uint8, np.int16)


def _shuffle(rng: np.random.Generator, value: Array) -> Array:
    return np.asarray(rng.permutation(value.reshape(-1)).reshape(value.shape))


def _other(rng: np.random.Generator, value: Array, kind: int) -> Array:
    spread = float(np.nanstd(value.astype(np.float64))) if value.dtype.kind == "f" and value.size else 1.0
    return random_values(rng, value.dtype, value.shape, kind, spread or 1.0)


def random_values(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], kind: int, spread: float = 1.0
) -> Array:
    """Return uniformly distributed codes, or for odd kinds the lowest and highest only; reals of that deviation."""
    if dtype.kind == "f":
        return np.asarray(rng.normal(0.0, spread * (16 if kind % 2 else 1), shape), dtype)
    if dtype.kind not in "iu":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    limits = np.iinfo(dtype)
    if kind % 2:
        return np.asarray(rng.choice(np.array([limits.min, limits.max], dtype), shape))
    return np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))


#: Number of tried inputs of the whole model, results of a batch, and rounds of inputs of the operator alone.
_MODEL_TRIALS, _OUTPUTS, _ROUNDS = 12, 1 << 17, 8


@dataclass(frozen=True, slots=True, eq=False)
class SeparatingTrial:
    """Inputs in graph order, and the results of operator `index` by cause and tensor."""

    inputs: tuple[Array, ...]
    expected: tuple[Results, ...]


@display_by("explain:discrimination_card", "discrimination_document")
@dataclass(frozen=True, slots=True, eq=False)
class Discrimination(Documented):
    """The inputs that distinguish the causes of operator `index`, or of a whole model if that is None.

    If `of_model` is set, the trials hold the whole model's inputs, otherwise those of operator `index` as a model of
    its own (`tflq extract`). `groups` are the numbers of causes that no trial distinguishes.
    """

    index: int | None
    causes: tuple[str, ...]
    of_model: bool
    trials: tuple[SeparatingTrial, ...]
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

    trials: tuple[SeparatingTrial, ...]
    groups: tuple[tuple[int, ...], ...]


def distinguish(trials: Iterable[tuple[tuple[Array, ...], Part]], devices: Sequence[Device]) -> Separation:
    """Run devices on inputs and the part computed from them, until all devices differ or the trials end."""
    groups: list[list[int]] = [list(range(len(devices)))]
    kept = []
    for inputs, part_alone in trials:
        expected = [results(device, part_alone) for device in devices]
        parts = [part for group in groups for part in _part(group, expected)]
        if len(parts) > len(groups):
            groups = parts
            kept.append(SeparatingTrial(inputs, tuple(expected)))
        if len(groups) == len(devices):
            break
    return Separation(tuple(kept), tuple(tuple(group) for group in groups))


def _part(group: Sequence[int], expected: Sequence[Results]) -> list[list[int]]:
    parts: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
    for cause in group:
        tensors = tuple(sorted(expected[cause]))
        key = tensors, digest_of(expected[cause][tensor] for tensor in tensors)
        parts.setdefault(key, []).append(cause)
    return list(parts.values())


#: Number of tried inputs.
_TRIALS = 12


def profiles_apart(model: Model, dump: Dump, names: Sequence[str]) -> Discrimination:
    """Search inputs on which the model's outputs differ under those profiles; if they never do, any tensor counts.

    Causes are profiles. Profiles that compute every operator of the model alike are one cause, named after the first.
    """
    distinct = _distinct(model, names)
    devices = [Under(by_name(name)) for name in distinct]
    graph = view(model)
    best = distinguish(_trials(model, dump, graph.outputs), devices)
    if len(best.groups) < len(devices):
        inner = distinguish(_trials(model, dump, graph.computed), devices)
        best = inner if len(inner.groups) > len(best.groups) else best
    return Discrimination(None, tuple(distinct.values()), True, best.trials, best.groups)


def _distinct(model: Model, names: Sequence[str]) -> dict[str, str]:
    """Return one profile of each set that computes the whole model alike, and the name of the set."""
    parts = [alone(model, op.index) for op in view(model).ops]
    sets: dict[Hashable, list[str]] = {}
    for name in names:
        sets.setdefault(tuple(computation(part, by_name(name)) for part in parts), []).append(name)
    return {same[0]: " = ".join(same) for same in sets.values()}


def _trials(model: Model, dump: Dump, tensors: Sequence[int]) -> Iterator[tuple[tuple[Array, ...], Part]]:
    """Yield random inputs in the dump's shapes, and the whole model on them with those tensors as results."""
    graph = view(model)
    looked: Mapping[int, Array] = {t: np.empty(0) for t in tensors}
    for trial in range(_TRIALS):
        rng = np.random.default_rng(trial)
        inputs = []
        for tensor in graph.inputs:
            spec, known = graph.tensors[tensor], dump.tensors.get(tensor)
            if not isinstance(spec.type, TensorType):
                return
            shape = spec.shape if known is None else known.shape
            inputs.append(random_values(rng, CARRIER[spec.type], shape, trial))
        try:
            whole = part_of(model, range(len(graph.ops)), dict(zip(graph.inputs, inputs, strict=True)))
        except TflqError:
            return
        yield tuple(inputs), replace(whole, got=looked)
