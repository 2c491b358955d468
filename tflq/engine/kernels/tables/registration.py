"""The rows that a runtime's resolver registers, of all the rows that it has."""

from __future__ import annotations

from tflq.engine.kernels.table import KernelTable
from tflq.engine.kernels.tables import micro
from tflq.engine.kernels.tables.cmsis_nn_rounding import round_by_the_library_once
from tflq.engine.kernels.tables.releases import register
from tflq.engine.kernels.tables.rows import table_of
from tflq.engine.kernels.validity import CMSIS_NN_SINGLE, REF, SPEC, Runtime


def kernels_of(runtime: Runtime) -> KernelTable:
    """Return the table of kernels that a runtime registers."""
    if runtime.library in ("", SPEC):
        return register(table_of(runtime), runtime.release, runtime.resolver != REF)
    registers = table_of(runtime, micro.accept).only(micro.REGISTERED.__contains__)
    table = KernelTable(registers, lambda op: micro.of_forms(registers[op]))
    return round_by_the_library_once(table) if runtime.library == CMSIS_NN_SINGLE else table
