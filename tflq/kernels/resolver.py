"""What a release's resolver registers, of a table of kernels that were written since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tflq.kernels.kernel import Kernel
from tflq.kernels.table import KernelTable

#: The highest version of operators whose versions no resolver limits.
_UNLIMITED = 99


def registered(base: KernelTable, highest: Mapping[str, int], known: Callable[[Kernel], Kernel | None]) -> KernelTable:
    """The operators of `base` that `highest` names, in the versions up to its; of their rows what `known` leaves.

    Custom operators stay.
    """

    def limited(row: Kernel) -> Kernel | None:
        left = known(row)
        if left is None:
            return None
        low, high = left.versions
        last = min(high, highest.get(row.op, _UNLIMITED))
        return replace(left, versions=(low, last)) if low <= last else None

    return base.only(lambda op: op in highest or not op.isupper()).each(limited)
