"""How far results that are only close were found to be from the runtime's own: figures of `schemas/measured_ulp.json`.

`tools/measure_close.py` measures them, and says of which rows it gives none.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir.schema import schema
from tflq.kernels.kernel import Kernel
from tflq.kernels.table import KernelTable


def measured(name: str, table: KernelTable) -> KernelTable:
    """`table`, whose rows that promise to be close have the figures that were measured for the profile `name`."""

    def with_figure(row: Kernel) -> Kernel:
        if row.exactness.word != "close":
            return row
        figure = schema("measured_ulp")[name]["rows"].get(f"{row.op} {row.signature}")
        return replace(row, exactness=replace(row.exactness, ulp=None if figure is None else figure["ulp"]))

    return table.each(with_figure)
