"""Names and numbers of a model's tensors, as files and logs spell them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tflq.model.ir import Model, view


def names_of(model: Model) -> dict[str, int]:
    """Return tensor indices by name and by its spelling in files; ambiguous names are left out."""
    indices_of: dict[str, set[int]] = {}
    for index, spec in enumerate(view(model).tensors):
        name = spec.name or ""
        for spelling in {name, re.sub(r"[^\w.-]", "_", name), re.sub(r"\W", "_", name)}:
            indices_of.setdefault(spelling, set()).add(index)
    return {name: next(iter(indices)) for name, indices in indices_of.items() if name and len(indices) == 1}


def index_of(model: Model, names: Mapping[str, int], key: str) -> int | None:
    """Return the tensor that an entry's key names, by name or number; None if it names none."""
    if key in names:
        return names[key]
    number = re.fullmatch(r"(?:t|tensor_?)?(\d{1,9})", key)
    index = int(number[1]) if number else -1
    return index if 0 <= index < len(view(model).tensors) else None
