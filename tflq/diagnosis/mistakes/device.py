"""What a device with a mistake is to the rest: a function of one operator's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tflq.diagnosis.localization import Alone

#: What a device makes of an operator's inputs, by original tensor index. It raises a TflqError where it cannot run.
Device: TypeAlias = "Callable[[Alone], Mapping[int, NDArray[Any]]]"

#: A device with a mistake, and the mistake's name.
Mistaken: TypeAlias = "tuple[str, Device]"
