"""Profiles built from their entries, and the names of the values in them.

The names of the values that the fields of an `Arithmetic` take: how files and tables of profiles spell them.

Profiles built from the rows of the table: what a row does not state is its base's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from tflq.engine.kernels.kernel import Kernel
from tflq.engine.kernels.table import KernelTable
from tflq.engine.kernels.tables.rows import kernels_of
from tflq.engine.kernels.validity import RuntimeConditions
from tflq.engine.numerics.arithmetic import STAGES, Arithmetic, below_zero, exact_real, prepared_real
from tflq.engine.numerics.dynamic_range import rescale_apart, rescale_fused
from tflq.engine.numerics.estimates import fuse, round_apart
from tflq.engine.numerics.stage_roundings import NAMED_STAGES
from tflq.engine.numerics.xnnpack import AVX2, AVX512
from tflq.engine.profiles.profile import Profile, Source
from tflq.engine.profiles.table import ROWS, Row
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir.model import schema

#: The values of each field by name; a field that is missing here takes a whole number of bytes.
VALUES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        **dict.fromkeys(STAGES, NAMED_STAGES),
        "dense_real": {"exact": exact_real, "prepared": prepared_real},
        "multiply_add": {"rounded-apart": round_apart, "fused": fuse},
        "xnnpack_rescale": {"fused": rescale_fused, "apart": rescale_apart},
        "xnnpack_blocks": {"unknown": None, "four-lanes": 4, "by-block": 1},
        "xnnpack_functions": {"avx2": AVX2, "avx-512": AVX512},
        "xnnpack_negative": {"sign-bit": np.signbit, "below-zero": below_zero},
        "xnnpack_lanes": {"eight": 8, "sixteen": 16},
        "int4_offset": {"seven": 7, "eight": 8},
        "scale_type": {"float32": np.float32, "float64": np.float64},
        "operand_scale_type": {"as others": None, "float64": np.float64},
        "difference_scale_type": {"float32": np.float32, "float64": np.float64},
    }
)
FIELDS = tuple(field.name for field in fields(Arithmetic))


def value_of(field: str, name: object) -> object:
    """Return the value of a field that `name` denotes.

    Raises:
        UnknownNameError: The field does not exist, or has no value of that name.
        OptionError: The field takes a number of bytes, and `name` is none.
    """
    if field not in FIELDS:
        raise UnknownNameError("arithmetic field", field, FIELDS)
    if field not in VALUES:
        if not isinstance(name, int) or isinstance(name, bool) or not 1 <= name <= 1 << 30:
            raise OptionError(f"{field} takes a number of bytes from 1 to {1 << 30}, not {name!r}")
        return name
    if not isinstance(name, str) or name not in VALUES[field]:
        raise UnknownNameError(f"value of {field}", str(name), tuple(VALUES[field]))
    return VALUES[field][name]


def name_of(field: str, value: object) -> str | int:
    """Return how files spell the value of a field."""
    if field not in VALUES:
        assert isinstance(value, int)
        return value
    return next(name for name, known in VALUES[field].items() if known == value)


def changed(arithmetic: Arithmetic, named: Mapping[str, object]) -> Arithmetic:
    """Return the arithmetic with the fields in `named`, whose values are spelled by name."""
    values: dict[str, Any] = {field: value_of(field, name) for field, name in named.items()}
    return replace(arithmetic, **values)


def names(arithmetic: Arithmetic) -> dict[str, str | int]:
    """Return every field of an arithmetic, spelled by name."""
    return {field: name_of(field, getattr(arithmetic, field)) for field in FIELDS}


#: In place of a name of figures: none were measured.
NOT_MEASURED = "none"


@cache
def profile_of(name: str) -> Profile:
    """Return the profile of a row of the table."""
    return profile_from(ROWS[name])


def profile_from(row: Row) -> Profile:
    """Return the profile that a row states."""
    name = row.name
    if not row.base:
        arithmetic = Arithmetic(**{key: value_of(key, value) for key, value in row.arithmetic.items()})  # type: ignore[arg-type]
        return Profile(name, Source(**row.source), arithmetic, _kernels(RuntimeConditions(), ""), row.about)
    base = profile_of(row.base)
    runtime = replace(base.runtime, **row.runtime)  # type: ignore[arg-type]
    figures = _figures(row)
    return Profile(
        name,
        replace(base.source, **row.source),
        changed(base.arithmetic, row.arithmetic),
        _kernels(runtime, figures),
        row.about or base.about,
        runtime,
        figures,
    )


def _figures(row: Row) -> str:
    """Return the name of the profile whose figures count: the row's or the nearest base's; empty if there are none."""
    while not row.figures and row.base:
        row = ROWS[row.base]
    return "" if row.figures == NOT_MEASURED else row.figures


@cache
def _kernels(runtime: RuntimeConditions, figures: str) -> KernelTable:
    table = kernels_of(runtime)
    return table.each(_measure(figures)) if figures else table


def _measure(name: str) -> Callable[[Kernel], Kernel]:
    """Return the change that gives rows which promise to be close the figures measured for the profile `name`.

    `tools/measure_close.py` measures them (`schemas/measured_ulp.json`) and lists the rows that have none.
    """
    figures = MappingProxyType(schema("measured_ulp")[name]["rows"])

    def with_figure(row: Kernel) -> Kernel:
        if row.exactness.word != "close":
            return row
        figure = figures.get(f"{row.op} {row.signature}")
        return replace(row, exactness=replace(row.exactness, ulp=None if figure is None else figure["ulp"]))

    return with_figure
