"""Cases: a model, one of its operators, a mistake, and the dump of a device that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.description import Device
from device.mistakes import MISTAKES, Mistake, both
from device.operators import compute, has
from device.outside import DAMAGES, UNEXPECTED, Damage
from device.runtimes import RUNTIMES, as_computed_by
from device.site import Site, site_of
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, view, with_graph

Array = NDArray[Any]
#: A mistake, the name of a runtime whose arithmetic an operator has, or None.
Planted: TypeAlias = Mistake | Damage | str | None

#: The profiles that devices otherwise follow, and their frequencies.
BASES = {"litert-ref": 0.8, "tflm": 0.1, "tflite-2.14-ref": 0.1}
#: Shares of all cases: mistakes beyond the list; runtimes' own arithmetic; cases that may change no element.
OUTSIDE, FOREIGN, UNSEEN = 0.1, 0.14, 0.04
_LISTED = 1 - OUTSIDE - FOREIGN - UNSEEN
_BEYOND: tuple[Mistake | Damage, ...] = (*DAMAGES, *UNEXPECTED)
#: Number of draws of model, operator and inputs for one mistake, and number of changed elements that ends them.
_DRAWS, _WELL = 24, 24
#: Maximum number of elements of all tensors for a model whose dump is quickly explained.
_QUICK = 3 * 10**5
#: Number of samples in a dump of such a model.
_SAMPLES = (1, 4)
#: Minimum number of changed elements for mistakes beyond the list: fewer are not specific.
_ENOUGH = 3


@dataclass(frozen=True, eq=False)
class Case:
    """A planted mistake. `kind`: listed, pair, profile, outside or none.

    `changed` is the number of changed elements in the operator's results in all samples.
    """

    number: int
    seed: int
    kind: str
    mistake: str
    model: Path
    profile: str
    site: Site
    device: Device  # without damage to its results, which is beyond the list
    changed: int
    samples: tuple[Mapping[int, Array], ...] = field(repr=False)
    partial: bool = False

    def save(self, path: Path) -> None:
        """Write the dump: tensors by index, with prefix sk_ for sample k."""
        entries: Any = {f"s{k}_{t}": value for k, dump in enumerate(self.samples) for t, value in dump.items()}
        np.savez(path, **entries)


@dataclass(frozen=True, eq=False)
class Subject:
    """A model for planted mistakes, and its operators that the device can compute."""

    path: Path
    model: Model
    sites: tuple[Site, ...]
    elements: int  # number of elements of all tensors


@cache
def subject(path: Path) -> Subject | None:
    """Return the model, or None if the device can compute none of its operators."""
    model = load(path)
    operators = range(len(view(model).ops))
    sites = tuple(s for i in operators if (s := site_of(model, i)) is not None and has(s))
    elements = sum(int(np.prod(spec.shape)) for spec in view(model).tensors)
    return Subject(path, model, sites, elements) if sites else None


def profile_of(name: str) -> Profile:
    """Return the profile of a runtime."""
    base, _, once = name.partition("+single-rounding")
    return by_name(base).with_single_rounding() if once is not None and name != base else by_name(base)


def cases(models: Sequence[Path], numbers: Iterable[int], seed: int, *, pairs: bool = False) -> Iterator[Case]:
    """Yield the cases of those numbers; each depends only on the seed, its number and the models.

    With `pairs`, each has two mistakes in one operator.
    """
    subjects = [s for path in models if (s := subject(path)) is not None]
    for number in numbers:
        yield _case(number, seed, subjects, np.random.default_rng((seed, number)), pairs)


def _case(number: int, seed: int, subjects: Sequence[Subject], rng: np.random.Generator, pairs: bool) -> Case:
    """Draw models, operators and inputs until a mistake is clearly visible; otherwise take the best draw.

    A listed mistake that is never visible is also a case, in which nothing differs.
    """
    kind = str(rng.choice(["outside", "profile", "none", "listed"], p=[OUTSIDE, FOREIGN, UNSEEN, _LISTED]))
    kind = "pair" if pairs else kind
    least, well = {
        "none": (0, 0),
        "listed": (0, _WELL),
        "pair": (_WELL, 2 * _WELL),
        "profile": (1, _WELL),
        "outside": (_ENOUGH, _WELL),
    }[kind]
    attempt = 0
    while True:
        best = _best(number, seed, kind, _mistake(kind, number + attempt, seed, rng), well, subjects, rng)
        if best is not None and best.changed >= least:
            return best
        attempt += 1


def _best(
    number: int,
    seed: int,
    kind: str,
    mistake: Planted,
    well: int,
    subjects: Sequence[Subject],
    rng: np.random.Generator,
) -> Case | None:
    """Return the first draw with `well` changed elements, or the one with most of them.

    The result is None if the mistake applies nowhere.
    """
    best = None
    for _ in range(_DRAWS):
        drawn = _drawn(subjects, mistake, rng)
        made = None if drawn is None else _planted(number, seed, kind, mistake, *drawn, rng)
        if made is not None and (best is None or made.changed > best.changed):
            best = made
        if best is not None and best.changed >= well:
            break
    return best


def _mistake(kind: str, number: int, seed: int, rng: np.random.Generator) -> Planted:
    """Return a mistake. Listed ones are chosen by the number, so that all are planted about equally often."""
    if kind == "listed":
        order: list[int] = np.random.default_rng(seed).permutation(len(MISTAKES)).tolist()
        return MISTAKES[order[number % len(order)]]
    if kind == "pair":
        while True:
            first, second = (MISTAKES[int(i)] for i in rng.integers(0, len(MISTAKES), 2))
            if not first.changes.keys() & second.changes.keys():
                return both(first, second)
    if kind == "outside":
        return _BEYOND[int(rng.integers(len(_BEYOND)))]
    return str(rng.choice(RUNTIMES)) if kind == "profile" else None


def _drawn(subjects: Sequence[Subject], mistake: Planted, rng: np.random.Generator) -> tuple[Subject, Site] | None:
    """Return a model, then one of its operators, where the mistake applies."""
    if isinstance(mistake, Mistake):
        fitting = [(s, [site for site in s.sites if mistake.can_be_made(site)]) for s in subjects]
    elif isinstance(mistake, Damage):
        fitting = [(s, [site for site in s.sites if site.output.shape and site.output.shape[-1] > 3]) for s in subjects]
    else:
        fitting = [(s, list(s.sites)) for s in subjects]
    fitting = [(s, sites) for s, sites in fitting if sites]
    if not fitting:
        return None
    weights = np.array([_weight(s, len(sites)) for s, sites in fitting])
    chosen, sites = fitting[int(rng.choice(len(fitting), p=weights / weights.sum()))]
    return chosen, sites[int(rng.integers(len(sites)))]


def _weight(subject: Subject, operators: int) -> float:
    """Return how often a model is drawn: networks by their operators, up to a limit; small or slow models rarely."""
    often = 0.1 if len(view(subject.model).ops) == 1 else min(operators, 8)
    return often * min(1.0, _QUICK / subject.elements)


def _planted(
    number: int, seed: int, kind: str, mistake: Planted, chosen: Subject, site: Site, rng: np.random.Generator
) -> Case | None:
    """Return the case, or None if the mistake does not apply."""
    bases = [name for name in BASES if as_computed_by(name, site) is not None]
    shares = np.array([BASES[name] for name in bases])
    base = str(rng.choice(bases, p=shares / shares.sum()))
    right = as_computed_by(base, site)
    device = as_computed_by(mistake, site) if isinstance(mistake, str) else right
    if right is None or device is None or (isinstance(mistake, str) and device == right):
        return None
    if isinstance(mistake, Mistake):
        device = mistake.made_by(device)
    partial, dumps, changed = bool(rng.random() < 0.3), [], 0
    kept = _kept(chosen.model, site, rng) if partial else None
    for _ in range(int(rng.choice(_SAMPLES)) if chosen.elements < _QUICK else 1):
        try:
            values = run(make_plan(chosen.model, by_name(base)), _inputs(chosen.model, rng), keep_all=True).values
            result = compute(site, device, values)
            if isinstance(mistake, Damage):
                result = mistake.make(result, rng)
            if isinstance(mistake, Mistake) and not _both_show(mistake, right, site, values, result):
                return None
            dump = _went_on(chosen.model, site, by_name(base), values, result)
        except TflqError:  # values for which an operator has no result
            return None
        changed += int(np.count_nonzero(result != values[site.output.tensor]))
        dumps.append({t: value for t, value in dump.items() if kept is None or t in kept})
    name = mistake if isinstance(mistake, str) else "none" if mistake is None else mistake.name
    return Case(number, seed, kind, name, chosen.path, base, site, device, changed, tuple(dumps), partial)


def _both_show(mistake: Mistake, right: Device, site: Site, values: Mapping[int, Array], result: Array) -> bool:
    """Return whether each of two mistakes has visible changes that the other one alone does not make."""
    alone = (compute(site, part.made_by(right), values) for part in mistake.parts)
    return all(int(np.count_nonzero(result != other)) >= _ENOUGH for other in alone)


def _inputs(model: Model, rng: np.random.Generator) -> dict[int, Array]:
    """Return random codes over the whole range of the type, or near its middle; normal floats."""
    graph = view(model)
    found: dict[int, Array] = {}
    for tensor in graph.inputs:
        dtype, shape = CARRIER[graph.tensors[tensor].type], graph.tensors[tensor].shape  # type: ignore[index]
        if dtype.kind == "f":
            found[tensor] = rng.normal(size=shape).astype(dtype)
            continue
        info: Any = np.iinfo(dtype)
        low, high = (info.min, info.max) if dtype.itemsize < 4 else (-(2**20), 2**20)
        quarter = (high - low) // 4 if rng.random() < 0.25 else 0
        found[tensor] = rng.integers(low + quarter, high - quarter, shape, endpoint=True).astype(dtype)
    return found


def _went_on(
    model: Model, site: Site, profile: Profile, values: Mapping[int, Array], result: Array
) -> dict[int, Array]:
    """Return every tensor of a run whose operator at `site` gave `result`; later operators are right."""
    graph = view(model)
    behind = replace(graph.record, operators=graph.record.operators[site.index + 1 :])
    read = {t for o in behind.operators for t in o.inputs if t >= 0}
    made = {t for o in behind.operators for t in o.outputs if t >= 0}
    known = {**values, site.output.tensor: result}
    inputs = tuple(t for t in sorted(read - made) if t in known and not graph.tensors[t].is_variable)
    if not behind.operators:
        return known
    rest = with_graph(model, replace(behind, inputs=inputs, outputs=tuple(sorted(made))))
    rest = replace(rest, signature_defs=None)
    later = run(make_plan(rest, profile), {t: known[t] for t in inputs}, keep_all=True).values
    return {**known, **{t: later[t] for t in made if t in later}}


def _kept(model: Model, site: Site, rng: np.random.Generator) -> set[int]:
    """Return the tensors of a partial dump: the model's inputs, the operator's result, and half of the others."""
    graph = view(model)
    rest = (t for t in range(len(graph.tensors)) if rng.random() < 0.5)
    return {*graph.inputs, site.output.tensor, *rest}
