"""The type of arrays that all rooms share."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

#: An array of any type.
Array: TypeAlias = NDArray[Any]
