"""The effect of other profiles on a model's operators, from their prepared constants. Nothing is run.

Equal constants under the same evaluation give equal bits; if they differ, the bits can differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from tflq.comparison.inspection.constants import named_parts
from tflq.comparison.inspection.equality import same_operator
from tflq.comparison.inspection.preparing import Preparation, Preparations, Rows
from tflq.comparison.inspection.profile_pairs import unwrapped
from tflq.display import display_by
from tflq.engine.api.files import Source
from tflq.engine.api.subject import ModelFacts, subject
from tflq.engine.numerics.codes import Clamp, NumberClamp, ZeroPoints
from tflq.engine.numerics.multiplier import Multiplier, ShortMultiplier
from tflq.engine.numerics.stages import is_stage
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.errors import TflqError, brief
from tflq.model.ir import Model, view
from tflq.model.ir.signatures import is_inner_call, place_of, root_subgraphs, roots

__all__ = ["Effect", "Effects", "OperatorEffects", "profile_effects"]


@dataclass(frozen=True, slots=True)
class Effect:
    """A profile under which an operator's preparation differs, and the first constant that differs.

    `field` is "kernel" if the evaluation differs, and "refused" if only one of the two takes the operator.
    """

    profile: str
    field: str
    base: str
    here: str


@dataclass(frozen=True, slots=True)
class OperatorEffects:
    """One operator. `effects` is empty if all profiles give the same bits.

    `proved` are profiles that prepare it differently and give the same bits for every input.
    """

    index: int
    op: str
    types: str
    effects: tuple[Effect, ...]
    proved: tuple[str, ...] = ()
    subgraph: int = 0
    refused: str = ""  # why the base refuses it, in a subgraph that callers run; `effects` has those that take it

    @property
    def place(self) -> str:
        """Its index, after that of its subgraph if this is not the first."""
        return place_of(self.subgraph, self.index)


@display_by("profiles.effects:effects_report")
@dataclass(frozen=True, slots=True)
class Effects:
    """All subgraphs of a model, or those of a signature, under several profiles."""

    model: ModelFacts
    base: str
    profiles: tuple[str, ...]
    operators: tuple[OperatorEffects, ...]

    @property
    def refused(self) -> tuple[OperatorEffects, ...]:
        """The operators that the base refuses."""
        return tuple(operator for operator in self.operators if operator.refused)


def profile_effects(
    model: Source | Model,
    base: str | Profile = "litert-ref",
    others: Sequence[str | Profile] | None = None,
    signature: str | None = None,
) -> Effects:
    """Prepare every operator under every profile by itself, and find those that can give other bits than `base`.

    Nothing is run. `others` are all profiles if none are given; `signature` leaves out subgraphs that it does not run.

    Raises:
        UnknownNameError: There is no profile or signature of that name.

    Example:
        >>> found = tflq.profile_effects("golden/models/digits_mobilenet_int8.tflite", "litert-ref", ["tflm"])
        >>> [operator.index for operator in found.operators if operator.effects]
        [18]
    """
    base = by_name(base)
    chosen = [p for name, p in PROFILES.items() if name != base.name] if others is None else [*map(by_name, others)]
    target = subject(model)
    graphs = root_subgraphs(target.model, signature)
    operators, rows = [], Rows()
    begun = {root.subgraph for root in roots(target.model)}  # shapes of others come from their callers
    for number, op in ((number, op) for number, part in graphs for op in view(part).ops):
        part = op.graph.model
        effects: tuple[Effect, ...] = ()
        refused = ""
        if not is_inner_call(target.model, number, op.record):
            alone = Preparations(part, op.index, (base, *chosen), rows)
            reference = _bind(alone, base)
            refused = reference if isinstance(reference, str) and number in begun else ""
            effects = tuple(_effects(alone, reference, chosen))
        names = [
            " ".join("none" if spec is None else getattr(spec.type, "label", "?") for spec in specs)
            for specs in (op.input_specs, op.output_specs)
        ]
        types = " -> ".join(names)
        operators.append(OperatorEffects(op.index, op.name, types, effects, subgraph=number, refused=refused))
    return Effects(target.facts, base.name, tuple(p.name for p in chosen), tuple(operators))


def _effects(alone: Preparations, reference: Preparation | str, others: Sequence[Profile]) -> Iterator[Effect]:
    known: list[tuple[Preparation | str, tuple[str, str, str] | None]] = []
    constants = cache(lambda: {} if isinstance(reference, str) else _constants(reference))
    for profile in others:
        here = _bind(alone, profile)
        found = next((found for found in known if found[0] is here), None)
        if found is None:
            found = here, _difference(reference, here, constants)
            known.append(found)
        if found[1]:
            yield Effect(profile.name, *found[1])


def _difference(
    base: Preparation | str, other: Preparation | str, constants: Callable[[], Mapping[str, str]]
) -> tuple[str, str, str] | None:
    """Return the first constant that differs from the base's `constants`: its name and both values.

    The result is None if both give the same bits, or both refuse.
    """
    if isinstance(base, str) or isinstance(other, str):
        if isinstance(base, str) and isinstance(other, str):
            return None
        return "refused", base if isinstance(base, str) else "", other if isinstance(other, str) else ""
    one, two = base.prepared, other.prepared
    if one is not None and two is not None and same_operator(one, two):
        return None
    first, second = constants(), _constants(other)
    for name in (*first, *(name for name in second if name not in first)):
        if first.get(name) != second.get(name):
            return name, first.get(name, "none"), second.get(name, "none")
    return None if one is None and two is None else ("kernel", first["kernel"], second["kernel"])


def _bind(alone: Preparations, profile: Profile) -> Preparation | str:
    """Return the operator as the profile prepares it; or the reason why it is refused."""
    try:
        return alone.under(profile)
    except TflqError as error:
        return brief(error).split(": ", 1)[-1]


def _constants(made: Preparation) -> dict[str, str]:
    """Return kernel, shapes and constants of an operator as text, by name."""
    if made.prepared is None:  # bound at run time: only its kernel is known
        return {"kernel": _name(made.row.prepare)}
    found = {"kernel": _name(made.prepared.eval), "shapes": str(made.prepared.shapes)}
    _add_leaves(found, "", made.prepared.data)
    return found


def _name(function: Callable[..., Any]) -> str:
    whole = unwrapped(function)
    return f"{whole.__module__.removeprefix('tflq.engine.kernels.')}.{whole.__qualname__}"


def _add_leaves(found: dict[str, str], name: str, value: Any) -> None:
    """Add every constant below `value` by name, as text: stages by class and multiplier, arrays by digest."""
    if isinstance(value, (int, str)):
        found[name] = str(value)
    elif isinstance(value, np.ndarray):
        found[name] = _array(value)
    elif isinstance(value, ZeroPoints):
        found[name] = _array(value.codes)
    elif is_stage(value):
        found[name] = _stage(value)
    elif isinstance(value, (Clamp, NumberClamp, Multiplier, ShortMultiplier)):
        owner, dot, field_name = name.rpartition(".")
        found.update((f"{owner}{dot}{part}", str(number)) for part, number in named_parts(field_name, value))
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            _add_leaves(found, f"{name}[{position}]", item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _add_leaves(found, f"{name}.{field.name}" if name else field.name, getattr(value, field.name))
    elif isinstance(value, dict):
        for key, item in value.items():
            _add_leaves(found, f"{name}[{key}]", item)
    elif callable(value) and not isinstance(value, type):
        found[name] = _name(value) if hasattr(unwrapped(value), "__qualname__") else type(value).__name__
    else:
        found[name] = str(value)


def _stage(stage: Any) -> str:
    parts = [f"{type(stage).__name__}"]
    for name in ("mantissa", "shift"):
        values = getattr(stage, name, None)
        if values is not None:
            parts.append(f"{name} {_short(values)}")
    if len(parts) == 1:
        parts.append(f"x {_short(stage.real)}")
    parts += [f"{f.name} {_stage(getattr(stage, f.name))}" for f in _inner_stages(stage)]
    return " ".join(parts)


def _inner_stages(stage: Any) -> list[Any]:
    if not is_dataclass(stage):
        return []
    return [f for f in fields(stage) if is_stage(getattr(stage, f.name))]


def _short(values: Any) -> str:
    entries = np.ravel(values)
    if entries.size and bool(np.all(entries == entries[0])):
        return str(entries[0])
    return _array(entries)


def _array(values: Any) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:12]
    return f"{values.dtype}{list(values.shape)} #{digest}"
