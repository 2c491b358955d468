"""Mistakes of the program around the model: results, classes or samples in another order, and results computed further.

The results of the profile are computed once. A mistake is an order or a function that makes them the saved ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations

import numpy as np

from tflq.comparison.verification.evidence.dumps import dump_of
from tflq.comparison.verification.evidence.inputs import has_scale, scale_of
from tflq.diagnosis.usage.inputs import constants
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.typing import Array

Arrays = Mapping[int, Array]
#: A mistake's name, and the arrays without it.
Corrected = tuple[str, list[dict[int, Array]]]
#: Results that are no whole codes, but as near to the right ones as a float model's.
FLOATS = "the outputs are those of the float model, before quantization: `tflq compare` compares them with this file"
#: Correlation and largest mean difference, in LSB, of a float model's results.
_CORRELATED, _LSB = 0.95, 4.0
#: Largest relative and absolute distance of floats that a program computed.
_RELATIVE, _ABSOLUTE = 1e-3, 2e-5
#: Largest rank of results that are classes.
_VECTORS = 2
#: Number of orders of inputs or outputs that are tried.
_ORDERS = 24


def _softmax(real: Array) -> Array:
    raised = np.exp(real - real.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


#: Functions that a program applies to results, by name.
FURTHER: dict[str, Callable[[Array], Array]] = {
    "softmax applied again by the program": _softmax,
    "logarithm of a softmax applied by the program": lambda r: np.log(_softmax(r)),
    "sigmoid applied again by the program": lambda r: 1 / (1 + np.exp(-r)),
    "logarithm applied by the program": np.log,
    "results divided by their sum by the program": lambda r: r / r.sum(-1, keepdims=True),
    "results divided by their largest by the program": lambda r: r / r.max(-1, keepdims=True),
    "results divided by their norm by the program": lambda r: r / np.linalg.norm(r, axis=-1, keepdims=True),
    "results turned into percent by the program": lambda r: r * 100,
    "one less each result, by the program": lambda r: 1 - r,
    "results with the other sign": lambda r: -r,
}


def rearranged(model: Model, samples: Sequence[Arrays], profile: Profile) -> Iterator[Corrected]:
    """Yield mistakes and the arrays without them. Samples that lack an input, or do not run, yield none."""
    graph = view(model)
    if any(t not in one for one in samples for t in graph.inputs):
        return
    yield from _exchanged(model, samples, graph.inputs, "inputs")
    for tensor in graph.inputs:
        held, spec = [one[tensor] for one in samples], graph.tensors[tensor]
        for name, values in constants(spec, held):
            which = f" ({spec.name or tensor})" if len(graph.inputs) > 1 else ""
            yield name + which, [{**one, tensor: value} for one, value in zip(samples, values, strict=True)]
    yield from _exchanged(model, samples, graph.outputs, "outputs")
    try:
        plan = make_plan(model, profile)
        fed = [dump_of(model, {t: one[t] for t in graph.inputs}).tensors for one in samples]
        right = [run(plan, inputs).values for inputs in fed]
    except (TflqError, ValueError):
        return
    yield from _further(model, samples, right)
    try:
        seen = [dump_of(model, one).tensors for one in samples]
    except (TflqError, ValueError):
        return
    yield from _of_samples(model, seen, right)
    yield from _of_classes(model, seen, right)


def _exchanged(model: Model, samples: Sequence[Arrays], tensors: Sequence[int], word: str) -> Iterator[Corrected]:
    """Yield the same arrays with inputs, or outputs, of one shape and type in another order.

    Two inputs of one operator are left out: the device may have exchanged its operands.
    """
    graph, specs = view(model), view(model).tensors
    held = [t for t in tensors if all(t in one for one in samples)]
    if any(len(set(op.inputs) & set(held)) > 1 for op in graph.ops):
        return
    for order in islice(permutations(held), 1, _ORDERS):
        pairs = [(a, b) for a, b in zip(held, order, strict=True) if a != b]
        if all((specs[a].shape, specs[a].type) == (specs[b].shape, specs[b].type) for a, b in pairs):
            names = ", ".join(f"{specs[b].name or b} for {specs[a].name or a}" for a, b in pairs)
            moved = [{**one, **{b: one[a] for a, b in pairs}} for one in samples]
            yield f"{word} exchanged, in another order: {names}", moved


def _of_samples(model: Model, seen: Sequence[Arrays], right: Sequence[Arrays]) -> Iterator[Corrected]:
    """Yield the samples in the order in which their results were saved, if each is the right one of another."""
    outputs = [t for t in view(model).outputs if all(t in one for one in seen)]
    places: dict[bytes, list[int]] = defaultdict(list)
    for k, one in enumerate(right):
        places[b"".join(one[t].tobytes() for t in outputs)].append(k)
    keys = [b"".join(one[t].tobytes() for t in outputs) for one in seen]
    if not outputs or len(places) < len(right) or set(keys) != set(places):
        return
    order = [places[key][0] for key in keys]
    if order != list(range(len(order))):
        back = np.argsort(order)
        made = [
            {t: seen[back[k]].get(t, v) if t not in view(model).inputs else v for t, v in one.items()}
            for k, one in enumerate(seen)
        ]
        yield f"samples in another order: the results saved are those of samples {_listed(order)}", made


def _of_classes(model: Model, seen: Sequence[Arrays], right: Sequence[Arrays]) -> Iterator[Corrected]:
    """Yield a vector of results with its elements in another order, the same in all samples.

    The order of an image's elements may be the device's: tflq/diagnosis/faults names it.
    """
    for tensor in view(model).outputs:
        every = [(one.get(tensor), good[tensor]) for one, good in zip(seen, right, strict=True)]
        pairs = [(o, g) for o, g in every if o is not None and o.shape == g.shape and 0 < g.ndim <= _VECTORS]
        order = _order(pairs) if len(pairs) == len(every) else None
        if order is not None:
            moved = [{**one, tensor: one[tensor].take(np.argsort(order), -1)} for one in seen]
            yield f"classes (elements of the output) in another order: {_listed(order)}, a permutation", moved


def _order(pairs: Sequence[tuple[Array, Array]]) -> list[int] | None:
    """Return the right element in each place of the last axis; None if there is no such order, or if it is right."""
    seen, right = ([np.asarray(pair[k]) for pair in pairs] for k in (0, 1))
    here, there = (np.concatenate([np.reshape(v, (-1, v.shape[-1])) for v in some]).T for some in (seen, right))
    places: dict[bytes, list[int]] = defaultdict(list)
    for k in reversed(range(len(there))):
        places[there[k].tobytes()].append(k)
    order = []
    for k in range(len(here)):
        known = places.get(here[k].tobytes())
        if not known:
            return None
        order.append(known.pop(known.index(k) if k in known else -1))
    return None if order == list(range(len(order))) else order


def _listed(order: Sequence[int]) -> str:
    return ", ".join(map(str, order[:16])) + (", ..." if len(order) > 16 else "")


def _further(model: Model, samples: Sequence[Arrays], right: Sequence[Arrays]) -> Iterator[Corrected]:
    """Yield functions of the right results that give the saved floats, and a float model's results."""
    graph = view(model)
    outputs = [t for t in graph.outputs if all(t in one for one in samples)]
    if not outputs or any(
        one[t].dtype.kind != "f" or one[t].shape != good[t].shape
        for one, good in zip(samples, right, strict=True)
        for t in outputs
    ):
        return
    pairs: list[tuple[Array, Array, float]] = []
    for t in outputs:
        scale, zero = scale_of(graph.tensors[t]) if has_scale(graph.tensors[t]) else (0.0, 0)
        for one, good in zip(samples, right, strict=True):
            real = good[t].astype(np.float64)
            pairs.append((one[t].astype(np.float64), (real - zero) * scale if scale else real, scale))
    fixed = [{**one, **{t: good[t] for t in outputs}} for one, good in zip(samples, right, strict=True)]
    if all(np.ptp(v) == 0 for v, _, _ in pairs) or not all(np.isfinite(v).all() for v, _, _ in pairs):
        return
    saved, due = (np.concatenate([np.ravel(pair[k]) for pair in pairs]) for k in (0, 1))
    far = max((float(np.abs(v - real).mean() / scale) for v, real, scale in pairs if scale), default=np.inf)
    with np.errstate(all="ignore"):
        names = [
            name
            for name, function in FURTHER.items()
            if all(np.allclose(function(real), v, _RELATIVE, _ABSOLUTE) for v, real, _ in pairs)
        ]
        if far <= _LSB and not _are_codes(pairs) and np.corrcoef(saved, due)[0, 1] >= _CORRELATED:
            names.append(FLOATS)
    yield from ((name, fixed) for name in names)


def _are_codes(pairs: Sequence[tuple[Array, Array, float]]) -> bool:
    """Return whether most values lie as whole steps from the right ones."""
    steps = np.concatenate([((v - real) / scale).reshape(-1) for v, real, scale in pairs if scale])
    return bool(np.mean(np.abs(steps - np.rint(steps)) < 0.01) > 0.5)
