"""Operators of a signature grouped into bands: by the caches that they lie between, else into equal parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tflq.model.ir import Model, view
from tflq.model.ir.signatures import choose_roots, signature_of

#: Parts of a model without caches.
_PARTS = 16


@dataclass(frozen=True, slots=True)
class Bands:
    """The names of a signature's bands, and the band of each operator."""

    names: tuple[str, ...]
    of_operator: tuple[int, ...]


def bands_of(model: Model, signature: str | None, caches: Sequence[str]) -> Bands:
    """Return the bands of a signature.

    Caches belong to a layer by the last number in their names. A band ends with the last operator that writes a cache
    of its layer.
    """
    (root,) = choose_roots(model, signature) if signature is not None else choose_roots(model)[:1]
    graph, named = view(model, root.subgraph), signature_of(model, root)
    outputs = dict(named.outputs) if named is not None else {}
    ends: dict[int, int] = defaultdict(int)
    for name in caches:
        numbers = re.findall(r"\d+", name)
        maker = graph.maker(outputs[name]) if name in outputs else None
        if numbers and maker is not None:
            ends[int(numbers[-1])] = max(ends[int(numbers[-1])], maker.index)
    layers, count = sorted(ends), len(graph.ops)
    if not layers or sorted(ends.values()) != [ends[layer] for layer in layers]:
        return _parts(count)
    names = [f"to cache {layers[0]}", *(f"cache {a} to {b}" for a, b in pairwise(layers))]
    band = [sum(ends[layer] < k for layer in layers) for k in range(count)]
    return Bands((*names, f"after cache {layers[-1]}"), tuple(band))


def _parts(count: int) -> Bands:
    """Return equal parts of the operators."""
    parts = min(_PARTS, max(count, 1))
    bounds = [count * k // parts for k in range(parts + 1)]
    names = tuple(f"operators {a} to {b - 1}" for a, b in pairwise(bounds))
    return Bands(names, tuple(k * parts // count for k in range(count)) if count else ())
