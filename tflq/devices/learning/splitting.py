"""Questions on which forms that reproduce every answer so far differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.devices.conformance.draft import Draft, samples_of
from tflq.devices.conformance.grids.geometric import choice_of
from tflq.devices.learning.form import Form
from tflq.devices.learning.forms import Forms, is_by_range
from tflq.engine.kernels.facts import OPERATORS

#: Drafts that are tried and asked in one round.
_POOL, _SPLITTING = 16, 6
#: Forms that are split: the first ones and others at equal distances; and those by ranges among them.
_SPLIT, _RANGES = 10, 60
#: Drafts with random inputs that are searched, inputs of each, their bytes at most, and inputs that are asked.
_SEARCHED, _SAMPLES, _MOST_BYTES, _KEPT = 12, 100, 1 << 23, 8
#: Further draws of drafts that are looked at where forms by ranges are not split.
_DRAWS = 6
#: Drafts of each kind on which a form is doubted, and random inputs of each.
_DOUBTED, _INPUTS = 8, 40


def splitting(forms: Forms, left: Sequence[Form], seed: int, turn: int) -> list[Draft]:
    """Return drafts on which the forms left differ, those that split them best first."""
    # Forms by ranges differ from others once in a thousand elements: they are split from the first, too.
    # A model of a pointwise operator is small, so that all of them can be compared.
    fact = OPERATORS.get(forms.subject.op)
    is_small = fact is not None and bool(fact.pointwise)
    ranges = [form for form in left if is_by_range(form)][: _RANGES if is_small else _SPLITTING]
    spread = left[_SPLIT :: max(1, len(left) // _SPLIT)]
    some = list(dict.fromkeys([*left[:_SPLIT], *spread, *ranges]))
    pool = forms.subject.drafts(seed + 1 + turn % 2, _POOL * (1 + turn // 2 % 2))
    chosen = _parting(forms, some, pool)
    if not chosen and is_small and ranges:
        draws = (forms.subject.drafts(seed + 40 + _DRAWS * turn + n, _POOL) for n in range(_DRAWS))
        chosen = next(filter(None, (_parting(forms, some, drafts) for drafts in draws)), [])
    return chosen or _search(forms, some, pool[:_SEARCHED], [seed, 13, turn])


def doubting(forms: Forms, best: Form, rivals: Sequence[Form], seed: int, turn: int) -> list[Draft]:
    """Return drafts on which a form differs from forms that came near and are excluded.

    A device that computes as one of them in some models only shows it there, and seldom elsewhere.
    """
    some = [best, *rivals]
    pool = forms.subject.drafts(seed + 70 + turn, _DOUBTED)
    covering = [d for d in forms.subject.covering(seed + 70, turn + 1) if choice_of(d.aim) is None]  # no geometries
    largest = sorted(covering, key=lambda draft: -draft.constants)[:_DOUBTED]
    return _search(forms, some, [*largest, *pool], [seed, 14, turn], _INPUTS)


def _parting(forms: Forms, some: list[Form], pool: Sequence[Draft]) -> list[Draft]:
    """Return the drafts of a pool that split forms best; none if all forms are equal on all of them."""
    groups = [some]
    chosen: list[Draft] = []
    small = [d for d in pool if sum(value.nbytes for sample in d.samples for value in sample) <= _MOST_BYTES]
    keys = {id(draft): {form: forms.key(form, [draft]) for form in some} for draft in small}
    while len(chosen) < _SPLITTING:
        splits = [(draft, _split(groups, keys[id(draft)])) for draft in small]
        draft, best = max(splits, key=lambda s: len(s[1]), default=(None, groups))
        if draft is None or len(best) == len(groups):
            break
        chosen.append(draft)
        groups = best
    return chosen


def _search(
    forms: Forms, some: Sequence[Form], pool: Sequence[Draft], seed: list[int], count: int = _SAMPLES
) -> list[Draft]:
    """Return drafts with some of `count` random inputs on which the first form differs from another.

    Sums in floats and sums of integers differ once in many thousand elements.
    """
    rng = np.random.default_rng(seed)
    chosen = []
    for draft in pool:
        many = replace(draft, samples=tuple(samples_of(rng, draft.inputs)[0] for _ in range(count)))
        if sum(value.nbytes for sample in many.samples for value in sample) > _MOST_BYTES:
            continue
        first, *others = (forms.by_sample(form, many) for form in some)
        apart = sorted({at for other in others for at in np.flatnonzero(first != other).tolist()})
        if apart:
            chosen.append(replace(draft, samples=tuple(many.samples[at] for at in apart[:_KEPT])))
        if len(chosen) == _SPLITTING:
            break
    return chosen


def _split(groups: Sequence[list[Form]], keys: dict[Form, bytes]) -> list[list[Form]]:
    found = []
    for group in groups:
        parts: dict[bytes, list[Form]] = {}
        for form in group:
            parts.setdefault(keys[form], []).append(form)
        found += list(parts.values())
    return found
