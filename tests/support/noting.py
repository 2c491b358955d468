"""Notes what the kernel tests compare with LiteRT, where TFLQ_EVIDENCE names a file to add it to."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from opfuzz.evidence import Evidence, add_model


def note(model: bytes, sizes: Sequence[int]) -> None:
    """These outputs of the model, of so many elements each, were equal to LiteRT's."""
    if os.environ.get("TFLQ_EVIDENCE"):
        add_model(_collected(), model, sizes)


@cache
def _collected() -> Evidence:
    path, collected = Path(os.environ["TFLQ_EVIDENCE"]), Evidence()

    def save() -> None:
        known = Evidence.load(path)
        known.merge(collected)
        known.save(path)

    atexit.register(save)
    return collected
