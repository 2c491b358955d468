"""LiteRT's delegates by name: they exist so that scripts which offer one can be told that there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from tflq.errors import OptionError


class Delegate:
    """LiteRT's wrapper of a delegate in a shared library. Making one is refused: it is native code."""

    def __init__(self, library: str, options: Mapping[str, object] | None = None) -> None:
        raise OptionError(
            "tflq loads no native code; run without the delegate, or choose the profile of the arithmetic that it has",
            name="load_delegate",
            got=library,
        )


def load_delegate(library: str, options: Mapping[str, object] | None = None) -> NoReturn:
    """Raise the ValueError that LiteRT raises where a delegate cannot be loaded; scripts fall back to the CPU then."""
    try:
        Delegate(library, options)
    except OptionError as error:
        raise error.opening(f"Failed to load delegate from {library}") from None
    raise AssertionError("a Delegate is never made")
