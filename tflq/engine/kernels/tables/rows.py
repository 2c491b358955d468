"""The rows of each operator, and the table that a runtime has: computed from each row's condition.

Among rows of one signature that are valid, those with the narrowest condition win (`When.precedence`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType

from tflq.engine import kernels
from tflq.engine.kernels.delegation import enable, floats_left, over
from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Kernel
from tflq.engine.kernels.notes import Fault, Formula
from tflq.engine.kernels.table import KernelTable, Rows, table
from tflq.engine.kernels.tables.promises import floats_are_close
from tflq.engine.kernels.undefinable import refusing
from tflq.engine.kernels.validity import (
    ALWAYS,
    OPT,
    SPEC,
    XNNPACK,
    Runtime,
    When,
    micro,
    opt,
    ref,
    tf1,
    tflite,
    xnnpack,
)
from tflq.interrupts import import_whole

#: Float rows that AArch64 shares with x86-64.
_FUSED = floats_are_close(close("compilers for AArch64 fuse products and sums, in some kernels and not in others"))
#: Changes a row, or leaves it out.
Change = Callable[[Kernel], Kernel | None]


#: Where the rows of a module are valid at most, by how its name begins: others need not import it.
LAYERS: Mapping[str, tuple[When, ...]] = MappingProxyType(
    {
        "earlier": (tf1(), tflite(until="litert-2.0"), tflite(cpu="arm64")),
        "micro": (micro(SPEC),),
        "optimized": (opt(), ref(until="tf-2.5"), tflite(cpu="arm64")),
        "tf1": (tflite("tf-1.15", "tflite-2.12"),),
        "xnnpack": (xnnpack(),),
    }
)


@cache
def rows_of(op: str, runtime: Runtime | None = None) -> Rows:
    """Return the rows of an operator in modules that a runtime can need; by default, in all. They are imported."""
    return tuple(row for module in modules_of(op, runtime) for row in getattr(module, "KERNELS", ()) if row.op == op)


def modules_of(op: str, runtime: Runtime | None = None) -> tuple[ModuleType, ...]:
    """Return the modules of an operator's room that a runtime can need; by default, all."""
    home = import_whole(f"{kernels.__name__}.{OPERATORS[op].home}")
    names = [module.name for module in iter_modules(getattr(home, "__path__", ()))]
    if not names:
        return (home,)
    return tuple(import_whole(f"{home.__name__}.{name}") for name in names if runtime is None or _needs(runtime, name))


def formulas() -> tuple[Formula, ...]:
    """Return the formulas of all operators."""
    return tuple(note for room in _rooms() for note in getattr(room, "FORMULAS", ()))


def faults() -> tuple[Fault, ...]:
    """Return the known faults of all operators."""
    return tuple(note for room in _rooms() for note in getattr(room, "FAULTS", ()))


def _rooms() -> Iterator[ModuleType]:
    """Yield the module or package of each room."""
    for room in dict.fromkeys(fact.home for fact in OPERATORS.values()):
        yield import_whole(f"{kernels.__name__}.{room}")


def _needs(runtime: Runtime, name: str) -> bool:
    conditions = next((when for layer, when in LAYERS.items() if name.startswith(layer)), (ALWAYS,))
    return any(when.holds(runtime) for when in conditions)


def table_of(runtime: Runtime, change: Change = lambda row: row) -> KernelTable:
    """Return the kernels that a runtime has. `change` applies to rows that every runtime shares."""

    def rows(op: str) -> Rows:
        return _winning(runtime, op, change)

    below = KernelTable((op for op, fact in OPERATORS.items() if not fact.delegated), rows)
    return below if runtime.resolver != XNNPACK else _delegating(runtime, change)


def _delegating(runtime: Runtime, change: Change) -> KernelTable:
    """Return XNNPACK's rows over those of the optimized resolver, to which it leaves what it does not take."""
    base = table_of(replace(runtime, resolver=OPT), change)

    def ours(op: str) -> Rows:
        taken = [over(row, base) for row in _winning(runtime, op, change, only_delegated=True)]
        rows = (enable(row, runtime) for row in (*taken, *floats_left(op, runtime, _share(op))))
        return tuple(row for row in rows if row is not None)

    operators = filter(partial(_has, runtime), OPERATORS)
    return base.overlaid(KernelTable(operators, ours)).each(lambda row: refusing(row, runtime))


def _has(runtime: Runtime, op: str) -> bool:
    """Return whether an operator of XNNPACK alone is in a runtime; True for others."""
    since = OPERATORS[op].delegated
    return not since or xnnpack(since).holds(runtime)


def _share(op: str) -> Rows:
    return tuple(row for row in rows_of(op, Runtime()) if row.when.libraries is None)


def _winning(runtime: Runtime, op: str, change: Change, only_delegated: bool = False) -> Rows:
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


def _promise(row: Kernel, runtime: Runtime) -> Kernel:
    is_shared = runtime.cpu.startswith("arm64") and not row.when.cpus and row.takes is None
    return _FUSED(row) if is_shared else row
