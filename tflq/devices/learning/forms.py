"""The forms of one subject that are tried, and the results that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.comparison.inspection.profile_pairs import fields_read
from tflq.devices.conformance.draft import Draft
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.form import BASE, Form, requantizing
from tflq.devices.learning.subjects import Subject
from tflq.diagnosis.rows import computation
from tflq.engine.api.part import Part
from tflq.engine.interpreter import make_plan, run
from tflq.engine.kernels.families import code_averages as averages
from tflq.engine.kernels.families import float_sum as sums
from tflq.engine.kernels.families import ignored_options as ignored
from tflq.engine.kernels.families import nearest_positions as nearest
from tflq.engine.kernels.families import through_floats as floats
from tflq.engine.numerics.code_ranges import TO_CODES
from tflq.engine.numerics.requantizer import ZERO_POINTS, Requantizer
from tflq.engine.numerics.requantizer_points import points
from tflq.engine.numerics.stages import OutputStage, StageOf
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.profiles.file import with_rows
from tflq.errors import TflqError
from tflq.model.flatbuf import read
from tflq.model.ir import Model, view
from tflq.typing import Array

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
    "float_sum": (sums.OPERATORS, sums.FIELDS, asdict(sums.FloatSum())),
    "nearest": (nearest.OPERATORS, _few(nearest.FIELDS, 5), asdict(nearest.Nearest())),
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

    subject: Subject
    alike: dict[str, list[str]] = field(default_factory=dict)  # profile -> all that compute the subject as it does
    _profiles: dict[Form, Profile | None] = field(default_factory=dict)
    _models: dict[int, tuple[Draft, Model]] = field(default_factory=dict)

    def model(self, draft: Draft) -> Model:
        """Return a draft's model."""
        key = id(draft.inputs)  # drafts that differ in samples only have one model
        if key not in self._models:
            self._models[key] = (draft, read(draft.model()))
        return self._models[key][1]

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

    def matches(self, form: Form, answer: Answer) -> tuple[int, int]:
        """Return how many elements of an answer a form reproduces, and of how many."""
        found = self.results(form, answer.draft)
        if found is None:
            return 0, answer.elements
        same = 0
        for outputs, got in zip(found, answer.outputs, strict=True):
            for one, other in zip(outputs, got, strict=True):
                if one.shape == other.shape and one.dtype == other.dtype:
                    same += int(np.count_nonzero(_bits(one) == _bits(other)))
        return same, answer.elements

    def fits(self, form: Form, answers: Iterable[Answer]) -> bool:
        """Return whether a form reproduces every bit of all answers."""
        for answer in answers:
            same, elements = self.matches(form, answer)
            if same < elements:
                return False
        return True

    def key(self, form: Form, drafts: Sequence[Draft]) -> bytes:
        """Return the bytes of all results of a form on some drafts; forms with equal keys compute alike on them."""
        parts = []
        for draft in drafts:
            found = self.results(form, draft)
            parts.append(b"refused" if found is None else b"".join(a.tobytes() for sample in found for a in sample))
        return b"|".join(parts)

    def by_sample(self, form: Form, draft: Draft) -> NDArray[np.object_]:
        """Return the bytes of a form's outputs for each sample of a draft; all empty if it refuses the model."""
        found = self.results(form, draft)
        parts = [b""] * len(draft.samples) if found is None else [b"".join(a.tobytes() for a in one) for one in found]
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


def _bits(array: Array) -> Array:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(f"u{flat.itemsize}") if flat.dtype.kind == "f" else flat


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
