"""What an operator was prepared with, found by walking its kernel's data: output stages, zero points, clamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from tflq.kernels.kernel import Prepared
from tflq.numerics.stages import OutputPipeline


@dataclass(frozen=True, slots=True)
class Stage:
    """An output stage, found at `field`, of class `kind`. One entry where all channels agree, else one each.

    `mantissa` (Q31) and `shift` (> 0 is left) are empty for stages that multiply in floating point. `zero_point`,
    `low` and `high` (LSB of output) are None where the stage stands alone.
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
    """The constants in a prepared operator's data. Arrays (weights, tables) are passed over."""
    found = tuple(_walk("", prepared.data))
    return Constants(
        stages=tuple(value for _, value in found if isinstance(value, Stage)),
        scalars=tuple((name, value) for name, value in found if not isinstance(value, Stage)),
    )


def _walk(name: str, value: Any) -> Iterator[tuple[str, Stage | int | float]]:
    if isinstance(value, OutputPipeline):
        yield name, _stage(name, value.stage, value.zero_point, value.low, value.high)
    elif hasattr(value, "narrow") and hasattr(value, "real"):
        yield name, _stage(name, value)
    elif isinstance(value, (bool, np.bool_)):
        return
    elif isinstance(value, (int, float, np.integer, np.floating)):
        yield name, value.item() if isinstance(value, np.generic) else value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _walk(f"{name}.{field.name}" if name else field.name, getattr(value, field.name))
    elif isinstance(value, tuple):
        for position, item in enumerate(value):
            yield from (
                (field, found) for field, found in _walk(f"{name}[{position}]", item) if isinstance(found, Stage)
            )


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
