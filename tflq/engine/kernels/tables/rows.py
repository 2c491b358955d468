"""The rows of each operator, and the tables that runtimes have and register.

The rows of each operator, and the table that a runtime has: computed from each row's condition.

Among rows of one signature that are valid, those with the narrowest condition win (`When.precedence`).

The rows that a runtime's resolver registers, of all the rows that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from pkgutil import iter_modules
from types import ModuleType

from tflq.engine import kernels
from tflq.engine.kernels.delegation import enable, floats_left, over, refusing
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Kernel, close
from tflq.engine.kernels.table import KernelTable, Rows, table
from tflq.engine.kernels.tables.micro import REGISTERED, accept, of_forms, round_by_the_library_once
from tflq.engine.kernels.tables.releases import floats_are_close, register
from tflq.engine.kernels.validity import CMSIS_NN_SINGLE, OPT, REF, SPEC, XNNPACK, RuntimeConditions, xnnpack
from tflq.interrupts import import_whole

#: Float rows that AArch64 shares with x86-64.
_FUSED = floats_are_close(close("compilers for AArch64 fuse products and sums, in some kernels and not in others"))
#: Changes a row, or leaves it out.
Change = Callable[[Kernel], Kernel | None]


@cache
def rows_of(op: str, runtime: RuntimeConditions | None = None) -> Rows:
    """Return the rows of an operator in modules that a runtime can need; by default, in all. They are imported."""
    return tuple(row for module in modules_of(op, runtime) for row in getattr(module, "KERNELS", ()) if row.op == op)


def modules_of(op: str, runtime: RuntimeConditions | None = None) -> tuple[ModuleType, ...]:
    """Return the modules that hold an operator's kernels: its home, and what XNNPACK alone needs beside it."""
    home = OPERATORS[op].home
    beside = [f"{home}_xnnpack"] if runtime is None or xnnpack().holds(runtime) else []
    names = [name for name in (home, f"{home}_dense", *beside) if name in _present()]
    return tuple(import_whole(f"{kernels.__name__}.{name}") for name in names)


@cache
def _present() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(kernels.__path__))


def table_of(runtime: RuntimeConditions, change: Change = lambda row: row) -> KernelTable:
    """Return the kernels that a runtime has. `change` applies to rows that every runtime shares."""

    def rows(op: str) -> Rows:
        return _winning(runtime, op, change)

    below = KernelTable((op for op, fact in OPERATORS.items() if not fact.delegated), rows)
    return below if runtime.resolver != XNNPACK else _delegating(runtime, change)


def _delegating(runtime: RuntimeConditions, change: Change) -> KernelTable:
    """Return XNNPACK's rows over those of the optimized resolver, to which it leaves what it does not take."""
    base = table_of(replace(runtime, resolver=OPT), change)

    def ours(op: str) -> Rows:
        taken = [over(row, base) for row in _winning(runtime, op, change, only_delegated=True)]
        rows = (enable(row, runtime) for row in (*taken, *floats_left(op, runtime, _share(op))))
        return tuple(row for row in rows if row is not None)

    operators = filter(partial(_has, runtime), OPERATORS)
    return base.overlaid(KernelTable(operators, ours)).each(lambda row: refusing(row, runtime))


def _has(runtime: RuntimeConditions, op: str) -> bool:
    """Return whether an operator of XNNPACK alone is in a runtime; True for others."""
    since = OPERATORS[op].delegated
    return not since or xnnpack(since).holds(runtime)


def _share(op: str) -> Rows:
    return tuple(row for row in rows_of(op, RuntimeConditions()) if row.when.libraries is None)


def _winning(runtime: RuntimeConditions, op: str, change: Change, only_delegated: bool = False) -> Rows:
    """Return the valid rows of an operator; a signature that a narrower row has is left to it."""
    valid = [
        row for row in rows_of(op, runtime) if row.when.holds(runtime) and (row.takes is not None) == only_delegated
    ]
    layers = groupby(sorted(valid, key=lambda row: row.when.precedence, reverse=True), lambda row: row.when.precedence)
    found: list[Kernel] = []
    for _, layer in layers:
        replaced = {row.signature for row in found}
        found += [row for row in _check(op, layer, change) if row.signature not in replaced]
    return tuple(_promise(row, runtime) for row in found)


def _check(op: str, layer: Iterable[Kernel], change: Change) -> Rows:
    changed = [change(row) if row.when.libraries is None else row for row in layer]
    return table(row for row in changed if row is not None).get(op, ())


def _promise(row: Kernel, runtime: RuntimeConditions) -> Kernel:
    is_shared = runtime.cpu.startswith("arm64") and not row.when.cpus and row.takes is None
    return _FUSED(row) if is_shared else row


def kernels_of(runtime: RuntimeConditions) -> KernelTable:
    """Return the table of kernels that a runtime registers."""
    if runtime.library in ("", SPEC):
        return register(table_of(runtime), runtime.release, runtime.resolver != REF)
    registers = table_of(runtime, accept).only(REGISTERED.__contains__)
    table = KernelTable(registers, lambda op: of_forms(registers[op]))
    return round_by_the_library_once(table) if runtime.library == CMSIS_NN_SINGLE else table
