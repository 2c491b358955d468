"""Forms that are tried where no usual one reproduces a device: chips' own arithmetic, other elements, other bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from tflq.devices.learning.form import BASE, Form, requantizing
from tflq.devices.learning.forms import AVERAGE, AVERAGES, EXACT_SUMS, Forms, Own, combine, usual_points
from tflq.engine.kernels.families import code_averages as averages
from tflq.engine.kernels.families import fixed_bilinear as bilinear
from tflq.engine.kernels.families import ignored_options as ignored
from tflq.engine.kernels.families import integer_means as means
from tflq.engine.kernels.families import integer_softmax as softmaxes
from tflq.engine.kernels.families import integer_sums, window_rules
from tflq.engine.kernels.families import nearest_positions as nearest
from tflq.engine.kernels.families.contraction_sums import OPERATORS as CONTRACTIONS
from tflq.engine.kernels.families.contraction_sums import PAIRS
from tflq.engine.numerics.requantizer import MANTISSAS, Requantizer, stated

#: Widths in which sums saturate after each tap.
_WIDTHS = ("16 bits", "18 bits", "20 bits", "24 bits", "32 bits")
_SHARED: Mapping[str, Sequence[Any]] = {**integer_sums.FIELDS, "form": (integer_sums.SHARED,)}
#: Grammars of single operators by key.
_GRAMMARS: Mapping[str, Own] = {
    "average": (averages.OPERATORS, averages.FIELDS, AVERAGE),
    "integer_sum": (integer_sums.OPERATORS, _SHARED, asdict(integer_sums.IntegerSum())),
    "bilinear": (bilinear.OPERATORS, bilinear.FIELDS, asdict(bilinear.FixedBilinear())),
    "nearest": (nearest.OPERATORS, nearest.FIELDS, asdict(nearest.Nearest())),
    "integer_softmax": (softmaxes.OPERATORS, softmaxes.FIELDS, asdict(softmaxes.IntegerSoftmax())),
}
#: Ways to scale that make output stages, each beside points of the grammar of requantizers: fields of each.
_BESIDE_POINTS: Mapping[str, tuple[tuple[str, ...], tuple[Mapping[str, str], ...]]] = {
    "mean": (
        means.OPERATORS,
        (
            {"steps": means.ONCE},
            *({"steps": steps, "quotient": how} for steps in means.STEPS[1:] for how in means.FIELDS["quotient"]),
        ),
    ),
    "integer_sum": (integer_sums.OPERATORS, ({"form": integer_sums.EACH},)),
}


def further(forms: Forms, known: Sequence[Form], shared: Sequence[Requantizer]) -> Iterator[Iterator[Form]]:
    """Yield lists of forms that are tried, one after the other, where no form before reproduces the answers.

    `shared` are points of the operator itself or of others.
    """
    op = forms.subject.op
    for kind, (operators, choices, usual) in _GRAMMARS.items():
        if op in operators:
            yield combine(kind, choices, usual)
    yield from rearranged(forms, shared)
    if op in EXACT_SUMS:
        return
    points = list(dict.fromkeys([*shared, *usual_points(MANTISSAS)]))
    yield (requantizing(point, like) for like in forms.requantizing_structures(known)[:1] for point in points)
    for kind, (operators, several) in _BESIDE_POINTS.items():
        for fields in several if op in operators else ():
            few = [point for point in points if point.multiplier == "float64" or point in shared]
            yield _scale(Form(BASE, kind, tuple(fields.items())), few if "quotient" in fields else points)


def rearranged(forms: Forms, shared: Sequence[Requantizer], first: Form | None = None) -> Iterator[Iterator[Form]]:
    """Yield lists of forms that take other elements, bound or add them otherwise: one change of a form, then two.

    The forms that are changed are the one given, or `shared` points, or averages.
    """
    op = forms.subject.op
    changed = [] if first is None else [first]
    if op in CONTRACTIONS:
        changed += [requantizing(point) for point in shared]
    elif op in averages.OPERATORS:
        changed += [Form(), *combine("average", AVERAGES, AVERAGE)]
    elif op in window_rules.OPERATORS:
        changed += [Form()]
    changed = list(dict.fromkeys(changed))
    singles = [*_sums(op, forms.subject.kind), *_windows(op, 1), *_bounds(forms)]
    yield (form.changed(kind, **fields) for form in changed for kind, fields in singles)
    twice = [((*one, *other)) for one, other in combinations(singles, 2) if one[0] != other[0]]
    windows = _windows(op, 2)
    yield (form.changed(kind, **fields) for form in changed for kind, fields in windows)
    yield (form.changed(a, **one).changed(b, **other) for form in changed for a, one, b, other in twice)
    if op in averages.OPERATORS:
        padded = [one for one in singles if "outside" in one[1]]
        further = combine("average", averages.FIELDS, AVERAGE)
        yield (form.changed(kind, **fields) for form in further for kind, fields in padded)


def _windows(op: str, count: int) -> list[tuple[str, dict[str, str]]]:
    """Return rules of windows in which `count` fields differ from their usual values."""
    if op not in window_rules.OPERATORS:
        return []
    choices = dict(window_rules.FIELDS)
    if op != "CONV_2D":
        choices.pop("groups")
    if op in window_rules.POOLS:
        choices.pop("dilation")
    if op == "MAX_POOL_2D":
        choices["outside"] = (window_rules.LEFT_OUT, "the zero point", "code 0")
    elif op in CONTRACTIONS:
        choices["outside"] = (window_rules.LEFT_OUT, "code 0")
    usual = asdict(window_rules.WindowRule())
    rules = combine("windows", choices, usual)
    changed = ({name: value for name, value in form.point.items() if value != usual[name]} for form in rules)
    return [("windows", fields) for fields in changed if len(fields) == count]


def _bounds(forms: Forms) -> list[tuple[str, dict[str, str]]]:
    options = [*forms.options_ignored(), *(ignored.BOUNDS if forms.has("fused_activation_function") else ())]
    return [("ignores", {"option": option}) for option in dict.fromkeys(options)]


def _sums(op: str, kind: str) -> list[tuple[str, dict[str, str]]]:
    if op not in CONTRACTIONS:
        return []
    widths = [{"width": width, "bias": bias} for width in _WIDTHS for bias in ("first", "last")]
    pairs = [{"products": PAIRS}] if kind == "int8" else []
    return [("sums", fields) for fields in (*pairs, *widths)]


def _scale(form: Form, points: Sequence[Requantizer]) -> Iterator[Form]:
    """Yield the form with its output stages at each point."""
    yield from (form.changed("requantizer", **stated(point)) for point in points)
