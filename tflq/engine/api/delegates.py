"""LiteRT's delegates by name: scripts that request one get a clear error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from tflq.errors import OptionError


class Delegate:
    """LiteRT's wrapper of a delegate in a shared library. Creating one is refused: it is native code."""

    def __init__(self, library: str, options: Mapping[str, object] | None = None) -> None:
        raise OptionError(
            "tflq loads no native code; run without the delegate, or choose the profile with its arithmetic",
            name="load_delegate",
            got=library,
        )


def load_delegate(library: str, options: Mapping[str, object] | None = None) -> NoReturn:
    """Raise the ValueError that LiteRT raises for a delegate that it cannot load; scripts then fall back to the CPU."""
    try:
        Delegate(library, options)
    except OptionError as error:
        raise error.opening(f"Failed to load delegate from {library}") from None
    raise AssertionError("a Delegate is never made")
