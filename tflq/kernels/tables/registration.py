"""What the resolver of a runtime registers, of all the rows that it has."""

from __future__ import annotations

from tflq.kernels.table import KernelTable
from tflq.kernels.tables import micro, release_1_15, release_2_14, releases
from tflq.kernels.tables.cmsis_nn_rounding import rounded_by_the_library_once
from tflq.kernels.tables.registered import registered
from tflq.kernels.tables.rows import table_of
from tflq.kernels.validity import CMSIS_NN_SINGLE, REF, SPEC, Runtime


def kernels_of(runtime: Runtime) -> KernelTable:
    """Return the table of kernels that a runtime registers."""
    if runtime.library in ("", SPEC):
        return _registered(table_of(runtime), runtime)
    table = table_of(runtime, micro.accepted).only(micro.OPERATORS.__contains__)
    return rounded_by_the_library_once(table) if runtime.library == CMSIS_NN_SINGLE else table


def _registered(table: KernelTable, runtime: Runtime) -> KernelTable:
    is_optimized, release = runtime.resolver != REF, runtime.release
    if release == "litert-2.3":
        return table
    if release == "tf-1.15":
        return release_1_15.accepted(table, release_1_15.OPTIMIZED if is_optimized else release_1_15.REFERENCE)
    if release == "tflite-2.14":
        highest = release_2_14.OPTIMIZED if is_optimized else release_2_14.REFERENCE
        return registered(table, highest, release_2_14.known)
    return releases.registered_in(table, release.partition("-")[2], is_optimized)
