"""What a release's resolver registers, of a table of kernels that were written since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tflq.kernels.kernel import Kernel
from tflq.kernels.table import KernelTable

#: The highest version of operators whose versions no resolver limits.
_UNLIMITED = 99
#: Custom operators that not every release has; `highest` names them where a release does.
_NEWER_CUSTOM = ("aeq.hadamard_rotation",)


def registered(base: KernelTable, highest: Mapping[str, int], known: Callable[[Kernel], Kernel | None]) -> KernelTable:
    """The operators of `base` that `highest` names, in the versions up to its; of their rows what `known` leaves.

    Custom operators stay where every release has them.
    """

    def limited(row: Kernel) -> Kernel | None:
        left = known(row)
        if left is None:
            return None
        low, high = left.versions
        last = min(high, highest.get(row.op, _UNLIMITED))
        return replace(left, versions=(low, last)) if low <= last else None

    return base.only(lambda op: op in highest or not (op.isupper() or op in _NEWER_CUSTOM)).each(limited)
