"""Profiles built from the rows of the table: what a row does not state is its base's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from tflq.engine.kernels.kernel import Kernel
from tflq.engine.kernels.table import KernelTable
from tflq.engine.kernels.tables.registration import kernels_of
from tflq.engine.kernels.validity import Runtime
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles.profile import Profile, Source
from tflq.engine.profiles.table import ROWS, Row
from tflq.engine.profiles.values import changed, value_of
from tflq.model.ir.schema import schema

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
        return Profile(name, Source(**row.source), arithmetic, _kernels(Runtime(), ""), row.about)
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
def _kernels(runtime: Runtime, figures: str) -> KernelTable:
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
