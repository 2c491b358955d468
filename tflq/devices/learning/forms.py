"""Forms of an operator that are tried, and the results that follow.

A form of an operator: what a profile's file may state of it.

A form is the rows of a file. So the profile that is written computes exactly what was compared with the device.

Forms that are tried where no usual one reproduces a device: chips' own arithmetic, other elements, other bounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.comparison.inspection.difference import digest_of, unequal
from tflq.comparison.inspection.profile_pairs import fields_read
from tflq.devices.learning.asking import DeviceAnswer
from tflq.devices.learning.questions import LearnSubject
from tflq.devices.suites.draft import Draft
from tflq.diagnosis.mistakes.device import computation
from tflq.engine.api.many import Part
from tflq.engine.interpreter import make_plan, run
from tflq.engine.kernels.families import means, positions, sums
from tflq.engine.kernels.families import means as averages
from tflq.engine.kernels.families import means as softmaxes
from tflq.engine.kernels.families import positions as bilinear
from tflq.engine.kernels.families import positions as nearest
from tflq.engine.kernels.families import reals as floats
from tflq.engine.kernels.families import reals as ignored
from tflq.engine.kernels.families.sums import OPERATORS as CONTRACTIONS
from tflq.engine.kernels.families.sums import PAIRS
from tflq.engine.numerics.codes import TO_CODES
from tflq.engine.numerics.requantizer import MANTISSAS, ZERO_POINTS, Requantizer, points, stated
from tflq.engine.numerics.stages import OutputStage, StageOf
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.profiles.building import names
from tflq.engine.profiles.file import with_rows
from tflq.errors import TflqError
from tflq.model.flatbuf import read
from tflq.model.ir import Model, view
from tflq.typing import Array

#: The profile whose rows a file changes.
BASE = "litert-ref"
#: Keys of a file that take a profile's whole arithmetic, which rows do not bring along.
_WITH_ARITHMETIC = ("", "floats", "arithmetic")


@dataclass(frozen=True, slots=True)
class Form:
    """Rows of a file without operator and types: `like` names the rows that are taken, `point` what changes them.

    `more` are further changes, made in this order.
    """

    like: str = BASE
    kind: str = ""  # a key of the file; empty if nothing is changed
    fields: tuple[tuple[str, Any], ...] = ()
    more: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    def rows(self, subject: LearnSubject, types: str = "") -> list[dict[str, Any]]:
        """Return the rows of a file for an operator."""
        head = {"op": subject.op, "types": types or subject.types}
        rows: list[dict[str, Any]] = []
        if self.like != BASE or not self.kind:
            rows.append({**head, "like": self.like})
        beside = _arithmetic_beside(self.like) if self.kind in _WITH_ARITHMETIC else {}
        if beside:
            rows.append({**head, "arithmetic": beside})
        if self.kind:
            rows.append({**head, self.kind: dict(self.fields)})
        rows += [{**head, kind: dict(fields)} for kind, fields in self.more]
        return rows

    def changed(self, kind: str, **fields: Any) -> Form:
        """Return the form with one more change."""
        return replace(self, more=(*self.more, (kind, tuple(fields.items()))))

    @property
    def point(self) -> dict[str, Any]:
        """The fields that change the rows."""
        return dict(self.fields)


def requantizing(point: Requantizer, like: str = BASE) -> Form:
    """Return the form whose output stages compute as a point."""
    return Form(like, "requantizer", tuple(stated(point).items()))


@cache
def _arithmetic_beside(name: str) -> dict[str, Any]:
    """Return the fields of a profile's arithmetic that differ from the base's, which rows do not bring along."""
    base = names(by_name(BASE).arithmetic)
    return {field: value for field, value in names(by_name(name).arithmetic).items() if value != base[field]}


FLOATS = floats.FIELDS
#: Fields of averages that questions of a few taps part; the others keep their usual values.
AVERAGES = {field: averages.FIELDS[field] for field in ("rounding", "zero_point", "count")}
#: Profiles whose float kernels add in different orders: one by one, by Eigen, by XNNPACK, with fused multiply-add.
ORDERS = ("litert-ref", "litert-opt", "litert-xnnpack", "litert-ref-arm64", "litert-opt-arm64")


def _few(fields: Mapping[str, Sequence[str]], most: int) -> dict[str, Sequence[str]]:
    """Return the first values of each field but the last, which keeps all."""
    *names, last = fields
    return {**{name: fields[name][:most] for name in names}, last: fields[last]}


#: A grammar of single operators: these, values of the fields, and the usual ones.
Own: TypeAlias = "tuple[tuple[str, ...], Mapping[str, Sequence[Any]], Mapping[str, Any]]"
AVERAGE = asdict(averages.Average())
#: Grammars of single operators by key.
_OWN_GRAMMARS: Mapping[str, Own] = {
    "average": (averages.OPERATORS, AVERAGES, AVERAGE),
    "float_sum": (sums.SUM_OPERATORS, sums.FLOAT_SUM_FIELDS, asdict(sums.FloatSum())),
    "nearest": (
        nearest.NEAREST_POSITIONS_OPERATORS,
        _few(nearest.NEAREST_POSITIONS_FIELDS, 5),
        asdict(nearest.Nearest()),
    ),
}
#: Roundings that are combined with narrower floats.
_USUAL = ("half to even", "half away from zero")
#: Operators whose accumulators are exact sums in every runtime.
EXACT_SUMS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
#: Widths of mantissas that are tried on any operator.
_USUAL_MANTISSAS = (31, 15)
#: Other values of the fields of requantizers that are tried on any operator, and structures that they are tried on.
_USUAL_FIRST = ("none", "half up", "half away from zero", "towards minus infinity")
_USUAL_MULTIPLIERS = ("float64", "float32", "float64 rounded to float32", "float64 rounded to float16")
_USUAL_PRODUCTS, _STRUCTURES = ("fixed point", "float64", "float32", "float16"), 2
#: Models that are prepared to see whether an operator makes output stages.
_LOOKED_AT = 4
#: Fields of the arithmetic that are changed by themselves.
_FIELDS: Mapping[str, tuple[str, ...]] = {"scale_type": ("float64", "float32")}


@dataclass(slots=True)
class Forms:
    """The forms of one subject, and their results."""

    subject: LearnSubject
    alike: dict[str, list[str]] = field(default_factory=dict)  # profile -> all that compute the subject as it does
    _profiles: dict[Form, Profile | None] = field(default_factory=dict)
    _models: dict[Hashable, tuple[Draft, Model]] = field(default_factory=dict)

    def model(self, draft: Draft) -> Model:
        """Return a draft's model."""
        if draft.key not in self._models:
            self._models[draft.key] = (draft, read(draft.model()))
        return self._models[draft.key][1]

    def profile(self, form: Form) -> Profile | None:
        """Return the profile with the form's rows; None if its tables have none for the subject's types."""
        if form not in self._profiles:
            try:
                self._profiles[form] = with_rows(by_name(BASE), form.rows(self.subject))
            except TflqError:
                self._profiles[form] = None
        return self._profiles[form]

    def results(self, form: Form, draft: Draft) -> list[tuple[Array, ...]] | None:
        """Return a form's outputs by sample; None if it refuses the model."""
        profile = self.profile(form)
        if profile is None:
            return None
        try:
            plan = make_plan(self.model(draft), profile)
            found = []
            for sample in draft.samples:
                values = run(plan, dict(zip(plan.inputs, sample, strict=True))).values
                found.append(tuple(values[t] for t in plan.outputs))
        except TflqError:
            return None
        return found

    def matches(self, form: Form, answer: DeviceAnswer) -> tuple[int, int]:
        """Return how many elements of an answer a form reproduces, and of how many."""
        found = self.results(form, answer.draft)
        if found is None:
            return 0, answer.elements
        same = 0
        for outputs, got in zip(found, answer.outputs, strict=True):
            for one, other in zip(outputs, got, strict=True):
                if one.shape == other.shape and one.dtype == other.dtype:
                    same += one.size - int(np.count_nonzero(unequal(one, other)))
        return same, answer.elements

    def fits(self, form: Form, answers: Iterable[DeviceAnswer]) -> bool:
        """Return whether a form reproduces every bit of all answers."""
        for answer in answers:
            same, elements = self.matches(form, answer)
            if same < elements:
                return False
        return True

    def key(self, form: Form, drafts: Sequence[Draft]) -> bytes:
        """Return a digest of all results of a form on some drafts; forms with equal keys compute alike on them."""
        parts = []
        for draft in drafts:
            found = self.results(form, draft)
            parts.append(b"refused" if found is None else digest_of(a for sample in found for a in sample))
        return b"|".join(parts)

    def by_sample(self, form: Form, draft: Draft) -> NDArray[np.object_]:
        """Return a digest of a form's outputs for each sample of a draft; all empty if it refuses the model."""
        found = self.results(form, draft)
        parts = [b""] * len(draft.samples) if found is None else [digest_of(one) for one in found]
        keys = np.empty(len(parts), object)
        keys[:] = parts
        return keys

    def known(self, *drafts: Draft) -> list[Form]:
        """Return one form for each way in which some profile computes the drafts, the nearest to the base first."""
        models = [self.model(draft) for draft in drafts]
        parts = [Part((0,), model, tuple(range(len(model.subgraphs[0].tensors)))) for model in models]
        seen: dict[Any, Form] = {}
        self.alike.clear()
        for name in PROFILES:
            for variant in (name, f"{name}+single-rounding"):
                profile = by_name(variant)
                if variant != name and profile.arithmetic == by_name(name).arithmetic:
                    continue
                if self.subject.op in profile.kernels:
                    form = seen.setdefault(tuple(computation(part, profile) for part in parts), Form(variant))
                    self.alike.setdefault(form.like, []).append(variant)
        return list(seen.values())

    def changed(self, known: Sequence[Form], shared: Sequence[Requantizer]) -> Iterator[Form]:
        """Yield forms beside the known ones: shared requantizers, single fields, floats, averages."""
        structures = self._structures(known)
        for like in self.requantizing_structures(known):
            for point in shared:
                yield requantizing(point, like)
        for like in structures:
            rows = by_name(like).kernels.get(self.subject.op, ())
            for name, values in _FIELDS.items():
                for value in values if rows and name in fields_read(rows[0].prepare) else ():
                    yield Form(like, "arithmetic", ((name, value),))
        for like in structures:
            for option in self.options_ignored():
                yield Form(like, "ignores", (("option", option),))
        for kind, (operators, choices, usual) in _OWN_GRAMMARS.items():
            if self.subject.op in operators:
                yield from (f for f in combine(kind, choices, usual) if kind != "float_sum" or _is_sum(f.point, usual))
        for form in combine("floats", FLOATS, asdict(floats.Floats())):
            if _is_tried(form.point, self.subject.op):
                for like in ORDERS[:1] if is_by_range(form) else ORDERS:
                    yield Form(like, form.kind, form.fields)

    def everything(self, known: Sequence[Form]) -> Iterator[Form]:
        """Yield the usual points of the grammar of requantizers on the first structures."""
        for like in self.requantizing_structures(known)[:_STRUCTURES]:
            yield from (requantizing(point, like) for point in usual_points(_USUAL_MANTISSAS))

    def has(self, option: str) -> bool:
        """Return whether the operator has an option, as far as a model was read."""
        return any(option in own for own in self._options())

    def requantizing_structures(self, known: Sequence[Form]) -> list[str]:
        """Return the structures that scale by an output stage, as far as the first drafts show.

        All structures of a contraction have the same accumulators: they are exact integers.
        """
        if self.subject.op in EXACT_SUMS:
            return [BASE]
        return [like for like in self._structures(known) if self._makes_stages(like)]

    def options_ignored(self) -> list[str]:
        """Return what a device may ignore: options that the operator has."""
        own = next(iter(self._options()), {})
        named = [name for name, fields in ignored.DEFAULTS.items() if all(field in own for field in fields)]
        return named + [name for name in ignored.OPERANDS if self.subject.op not in EXACT_SUMS]

    def is_set(self, option: str) -> bool:
        """Return whether a model that was read has another value than the default, so that a device can ignore it."""
        usual = ignored.DEFAULTS.get(option)
        return usual is None or any(own.get(n, value) != value for own in self._options() for n, value in usual.items())

    def _options(self) -> list[Mapping[str, Any]]:
        found = [view(model).op(0).options for _, model in self._models.values()]
        return [{} if options is None else options.fields for options in found]

    def _makes_stages(self, like: str) -> bool:
        profile = by_name(like)
        noted: list[StageOf] = []

        def noting(right: StageOf) -> StageOf:
            def make(real: ArrayLike) -> OutputStage:
                noted.append(right)
                return right(real)

            return make

        changed = profile.derive(like, arithmetic=profile.arithmetic.each_stage(noting))
        for _, model in list(self._models.values())[:_LOOKED_AT]:
            with suppress(TflqError):
                make_plan(model, changed)
        return bool(noted)

    def _structures(self, known: Sequence[Form]) -> list[str]:
        """Return one profile for each different row, for any arithmetic."""
        rows: dict[Any, str] = {}
        for form in known:
            profile = self.profile(form)
            row = None if profile is None else next(iter(profile.kernels.get(self.subject.op, ())), None)
            if row is not None:
                rows.setdefault(row.prepare, form.like)
        return list(rows.values())


def is_by_range(form: Form) -> bool:
    """Return whether a float form quantizes by the ends of a range."""
    return form.kind == "floats" and form.point["quotient"] in TO_CODES


def _is_sum(chosen: Mapping[str, str], usual: Mapping[str, str]) -> bool:
    """Return whether a combination of fields of a sum differs from all others: sums of steps have no constant."""
    return chosen["scales"] == sums.TO_OUTPUT or all(chosen[key] == usual[key] for key in ("zero_points", "order"))


def _is_tried(chosen: Mapping[str, str], op: str) -> bool:
    """Return whether a combination of fields of a float form is tried on an operator."""
    is_by_range = chosen["quotient"] in TO_CODES
    if chosen["rounding"] not in _USUAL and (is_by_range or chosen["precision"] != "float32"):
        return False
    if is_by_range and chosen["precision"] != "float32":
        return False
    if chosen["dequantized"] != floats.FROM_ZERO_POINT and not is_by_range:
        return False
    if chosen["reals"] == floats.AS_CODES:
        return (chosen["precision"], chosen["quotient"]) == ("float32", "divided")
    is_plain = chosen["dequantized"] == floats.FROM_ZERO_POINT
    return chosen["reals"] not in floats.IN_STEPS or (is_by_range and is_plain and op in floats.COUNTED)


@cache
def usual_points(mantissas: tuple[int, ...]) -> tuple[Requantizer, ...]:
    """Return points that are tried on any operator, with mantissas of these widths."""
    found = []
    for point in points():
        is_usual = point.mantissa in mantissas and point.multiplier in _USUAL_MULTIPLIERS
        is_usual &= point.zero_point == ZERO_POINTS[0] or point.product == "float32"
        if is_usual and point.first in _USUAL_FIRST and point.product in _USUAL_PRODUCTS:
            found.append(point)
    return tuple(found)


def combine(kind: str, choices: Mapping[str, Sequence[Any]], usual: Mapping[str, Any]) -> Iterator[Form]:
    """Yield forms with every combination of fields, those nearest to the usual one first."""
    chosen: list[tuple[tuple[str, Any], ...]] = [()]
    for name, values in choices.items():
        chosen = [(*fields, (name, value)) for fields in chosen for value in values]
    for fields in sorted(chosen, key=lambda fields: sum(value != usual[name] for name, value in fields)):
        yield Form(BASE, kind, fields)


#: Widths in which sums saturate after each tap.
_WIDTHS = ("16 bits", "18 bits", "20 bits", "24 bits", "32 bits")
_SHARED: Mapping[str, Sequence[Any]] = {**sums.INTEGER_SUMS_FIELDS, "form": (sums.SHARED,)}
#: Grammars of single operators by key.
_GRAMMARS: Mapping[str, Own] = {
    "average": (averages.OPERATORS, averages.FIELDS, AVERAGE),
    "integer_sum": (sums.SUM_OPERATORS, _SHARED, asdict(sums.IntegerSum())),
    "bilinear": (bilinear.OPERATORS, bilinear.FIELDS, asdict(bilinear.FixedBilinear())),
    "nearest": (nearest.NEAREST_POSITIONS_OPERATORS, nearest.NEAREST_POSITIONS_FIELDS, asdict(nearest.Nearest())),
    "integer_softmax": (
        softmaxes.INTEGER_SOFTMAX_OPERATORS,
        softmaxes.INTEGER_SOFTMAX_FIELDS,
        asdict(softmaxes.IntegerSoftmax()),
    ),
}
#: Ways to scale that make output stages, each beside points of the grammar of requantizers: fields of each.
_BESIDE_POINTS: Mapping[str, tuple[tuple[str, ...], tuple[Mapping[str, str], ...]]] = {
    "mean": (
        means.INTEGER_MEANS_OPERATORS,
        (
            {"steps": means.ONCE},
            *(
                {"steps": steps, "quotient": how}
                for steps in means.STEPS[1:]
                for how in means.INTEGER_MEANS_FIELDS["quotient"]
            ),
        ),
    ),
    "integer_sum": (sums.SUM_OPERATORS, ({"form": sums.EACH},)),
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
    elif op in positions.WINDOW_RULES_OPERATORS:
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
    if op not in positions.WINDOW_RULES_OPERATORS:
        return []
    choices = dict(positions.WINDOW_RULES_FIELDS)
    if op != "CONV_2D":
        choices.pop("groups")
    if op in positions.POOLS:
        choices.pop("dilation")
    if op == "MAX_POOL_2D":
        choices["outside"] = (positions.LEFT_OUT, "the zero point", "code 0")
    elif op in CONTRACTIONS:
        choices["outside"] = (positions.LEFT_OUT, "code 0")
    usual = asdict(positions.WindowRule())
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
