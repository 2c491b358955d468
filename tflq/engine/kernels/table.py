"""Tables of kernels by operator: tables derived from others, and the search for a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tflq.engine.kernels.kernel import Kernel
from tflq.model.ir import TensorType

Rows: TypeAlias = tuple[Kernel, ...]


class KernelTable(Mapping[str, Rows]):
    """The rows of each operator, in order of preference. They are built when the operator is first asked for, and kept.

    `rows` gives those of one of `operators`.
    """

    def __init__(self, operators: Iterable[str], rows: Callable[[str], Rows]) -> None:
        self._operators, self._make = dict.fromkeys(operators), rows
        self._made: dict[str, Rows] = {}

    def __getitem__(self, op: str) -> Rows:
        if op not in self._made:
            if op not in self._operators:
                raise KeyError(op)
            self._made[op] = self._make(op)
        return self._made[op]

    def __contains__(self, op: object) -> bool:
        return op in self._operators

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def only(self, takes: Callable[[str], bool]) -> KernelTable:
        """Return the table with the operators for which `takes` holds."""
        return KernelTable(filter(takes, self), self.__getitem__)

    def each(self, change: Callable[[Kernel], Kernel | None]) -> KernelTable:
        """Return the table with every row changed; rows for which `change` returns None are left out."""

        def rows(op: str) -> Rows:
            return tuple(row for row in map(change, self[op]) if row is not None)

        return KernelTable(self, rows)

    def overlaid(self, ours: Mapping[str, Rows]) -> KernelTable:
        """Return the table with the rows of `ours` before its own, in place of those that have the same signature."""

        return KernelTable((*self, *ours), lambda op: overlaid(ours.get(op, ()), self.get(op, ())))


def overlaid(first: Rows, rest: Rows) -> Rows:
    """Return the rows of `first`, then those of `rest` with other signatures."""
    replaced = {kernel.signature for kernel in first}
    return (*first, *(kernel for kernel in rest if kernel.signature not in replaced))


def table(*groups: Iterable[Kernel]) -> KernelTable:
    """Join the kernel files' tuples into one table.

    Raises:
        ValueError: Two rows have the same operator, signature, versions and sparse operands.
    """
    rows: dict[str, list[Kernel]] = {}
    for kernel in (k for group in groups for k in group):
        known = rows.setdefault(kernel.op, [])
        if any(_key(k) == _key(kernel) for k in known):
            raise ValueError(f"two kernels for {kernel.op} {kernel.signature}")
        known.append(kernel)
    return KernelTable(rows, lambda op: tuple(rows[op]))


def _key(kernel: Kernel) -> object:
    return kernel.signature, kernel.versions, kernel.sparse


def find(
    kernels: Mapping[str, Rows],
    op: str,
    version: int,
    inputs: Sequence[TensorType | None],
    outputs: Sequence[TensorType],
    sparse: tuple[int, ...] = (),
) -> Kernel | None:
    """Return the first row that accepts the operator, or None."""
    rows = kernels.get(op, ())
    return next((k for k in rows if k.sparse == sparse and k.accepts(version, inputs, outputs)), None)


def nearest(
    kernels: KernelTable, op: str, version: int, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]
) -> str:
    """Describe the supported form closest to the one asked for; "" if the operator is unknown."""
    rows = kernels.get(op, ())
    if not rows:
        return ""

    def distance(kernel: Kernel) -> tuple[int, bool]:
        return kernel.signature.mismatches(inputs, outputs), not kernel.versions[0] <= version <= kernel.versions[1]

    best = min(rows, key=distance)
    low, high = best.versions
    return f"{op} {best.signature}" + (f", versions {low} to {high}" if high < 99 else "")
