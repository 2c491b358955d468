"""What a release's resolver registers, of a table of kernels that were written since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tflq.kernels.kernel import Kernel, KernelTable


class Registered(Mapping[str, tuple[Kernel, ...]]):
    """The operators of `base` that `highest` names, in the versions up to its; of their rows what `known` leaves.

    Custom operators stay.
    """

    def __init__(
        self, base: KernelTable, highest: Mapping[str, int], known: Callable[[Kernel], Kernel | None]
    ) -> None:  # fmt: skip
        self._base, self._highest, self._known = base, highest, known

    def __getitem__(self, op: str) -> tuple[Kernel, ...]:
        if op not in self:
            raise KeyError(op)
        last = self._highest.get(op, 99)
        known = (row for row in map(self._known, self._base[op]) if row is not None)
        rows = (replace(k, versions=(k.versions[0], min(k.versions[1], last))) for k in known)
        return tuple(k for k in rows if k.versions[0] <= k.versions[1])

    def __contains__(self, op: object) -> bool:
        return op in self._base and (op in self._highest or not str(op).isupper())

    def __iter__(self) -> Iterator[str]:
        return (op for op in self._base if op in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
