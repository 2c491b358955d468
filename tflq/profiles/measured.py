"""How far results that are only close were found to be from the runtime's own: figures of `schemas/measured_ulp.json`.

`tools/measure_close.py` measures them, and says of which rows it gives none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from tflq.ir.schema import schema
from tflq.kernels.kernel import Kernel, KernelTable


class Measured(Mapping[str, tuple[Kernel, ...]]):
    """`table`, whose rows that promise to be close have the figures that were measured for the profile `name`."""

    def __init__(self, name: str, table: KernelTable) -> None:
        self._name, self._table = name, table

    @cached_property
    def _figures(self) -> Mapping[str, Any]:
        rows: Mapping[str, Any] = schema("measured_ulp")[self._name]["rows"]
        return rows

    def __getitem__(self, op: str) -> tuple[Kernel, ...]:
        return tuple(row if row.exactness.word != "close" else self._with_figure(row) for row in self._table[op])

    def _with_figure(self, row: Kernel) -> Kernel:
        figure = self._figures.get(f"{row.op} {row.types}")
        ulp = None if figure is None else figure["ulp"]
        return replace(row, exactness=replace(row.exactness, ulp=ulp))

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
