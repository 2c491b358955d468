"""An operator's prepared constants, found by walking its kernel's data: output stages, zero points, clamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from tflq.engine.kernels.kernel import Prepared
from tflq.engine.numerics.codes import Clamp, NumberClamp, ZeroPoint
from tflq.engine.numerics.multiplier import FixedMultiplier, Multiplier, ShortMultiplier
from tflq.engine.numerics.stages import OutputPipeline, is_stage


@dataclass(frozen=True, slots=True)
class Stage:
    """An output stage of class `kind` in `field`. Values have one entry if all channels agree, else one per channel.

    `mantissa` (Q31) and `shift` (> 0 is left) are empty for stages that multiply in floating point. `zero_point`, `low`
    and `high` (LSB of output) are None if the stage is separate.
    """

    field: str
    kind: str
    real: tuple[float, ...]
    mantissa: tuple[int, ...] = ()
    shift: tuple[int, ...] = ()
    zero_point: int | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Constants:
    """An operator's stages, and its scalar constants by field name."""

    stages: tuple[Stage, ...]
    scalars: tuple[tuple[str, int | float], ...]


def constants_of(prepared: Prepared) -> Constants:
    """Return the constants in a prepared operator's data. Arrays (weights, tables) are skipped."""
    constants = tuple(_walk("", "", prepared.data))
    return Constants(
        stages=tuple(value for _, value in constants if isinstance(value, Stage)),
        scalars=tuple((name, value) for name, value in constants if not isinstance(value, Stage)),
    )


def _walk(owner: str, name: str, value: Any) -> Iterator[tuple[str, Stage | int | float]]:
    """Yield stages and scalars below `value`, which is field `name` of the data at `owner`."""
    place = f"{owner}.{name}" if owner else name
    if isinstance(value, OutputPipeline):
        yield place, _stage(place, value.stage, value.zero_point, *value.clamp)
    elif is_stage(value):
        yield place, _stage(place, value)
    elif isinstance(value, (Clamp, NumberClamp, Multiplier, ShortMultiplier)):
        for part, number in named_parts(name, value):
            yield from _walk(owner, part, number)
    elif isinstance(value, (bool, np.bool_)):
        return
    elif isinstance(value, (int, float, np.integer, np.floating)):
        yield place, int(value) if isinstance(value, (int, np.integer)) else float(value)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.init:  # others are derived from these
                yield from _walk(place, field.name, getattr(value, field.name))
    elif isinstance(value, tuple):
        for position, item in enumerate(value):
            yield from _item(owner, f"{name}[{position}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _item(owner, f"{name}[{key}]", item)


def _item(owner: str, name: str, value: Any) -> Iterator[tuple[str, Stage | int | float]]:
    """Yield the parts of a tuple's item; plain numbers are sizes and positions, and skipped."""
    constant = isinstance(value, (ZeroPoint, Clamp, Multiplier, ShortMultiplier, FixedMultiplier))
    return (entry for entry in _walk(owner, name, value) if constant or isinstance(entry[1], Stage))


def named_parts(name: str, value: NamedTuple) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a clamp or multiplier in field `name`, by their names in reports.

    A field that is named after its type is not named: `clamp` gives `low` and `high`, `output` `output_shift`.
    """
    for part, number in zip(value._fields, value, strict=True):
        yield prefix_of(name) + part, number


def prefix_of(name: str) -> str:
    """Return the prefix of the names for numbers of a constant in field `name`."""
    return "" if name in _NAMED_AFTER_TYPE else f"{name}_"


_NAMED_AFTER_TYPE = ("clamp", "multiplier", "")


def _stage(
    name: str, stage: Any, zero_point: int | None = None, low: int | None = None, high: int | None = None
) -> Stage:
    return Stage(
        field=name,
        kind=type(stage).__name__,
        real=_entries(stage.real),
        mantissa=_entries(getattr(stage, "mantissa", ())),
        shift=_entries(getattr(stage, "shift", ())),
        zero_point=None if zero_point is None else int(zero_point),
        low=None if low is None else int(low),
        high=None if high is None else int(high),
    )


def _entries(values: Any) -> tuple[Any, ...]:
    entries = np.ravel(values)
    agree = entries.size > 0 and bool(np.all(entries == entries[0]))
    return tuple((entries[:1] if agree else entries).tolist())
