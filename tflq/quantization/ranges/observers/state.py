"""An observer's state as plain arrays, from which it can be restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from tflq.quantization.ranges.observers.observer import Observer
from tflq.typing import Array

AnObserver = TypeVar("AnObserver", bound=Observer)


def state_of(observer: Observer) -> dict[str, Array]:
    """Return an observer's fields as arrays; those of a nested observer are named `field.`, and None is left out."""
    state: dict[str, Array] = {}
    for entry in fields(cast("Any", observer)):
        value = getattr(observer, entry.name)
        if is_dataclass(value):
            state.update({f"{entry.name}.{name}": array for name, array in state_of(cast(Observer, value)).items()})
        elif value is not None:
            state[entry.name] = np.asarray(value)
    return state


def restore(observer: AnObserver, state: Mapping[str, Array]) -> AnObserver:
    """Return the observer with this `state_of`, of the same kind and settings as `observer`."""
    values: dict[str, Any] = {}
    for entry in fields(cast("Any", observer)):
        value = getattr(observer, entry.name)
        if is_dataclass(value):
            prefix = f"{entry.name}."
            inner = {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
            values[entry.name] = restore(cast(Observer, value), inner)
        elif value is not None:
            values[entry.name] = state[entry.name] if isinstance(value, np.ndarray) else state[entry.name].item()
    return cast(AnObserver, replace(cast("Any", observer), **values))
