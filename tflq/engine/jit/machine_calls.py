"""Calls of machine code with fixed arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any


class MachineCall:
    """A call with fixed arguments, to be made repeatedly: its words are all that compiled code needs to make it.

    The call keeps arrays among the arguments alive. `whole` is the function that can cut the call
    into pieces, None if it cannot be cut.
    """

    __slots__ = ("args", "at", "fail", "function", "whole", "words")

    def __init__(
        self, entry: Any, args: tuple[Any, ...], words: list[int], fail: Callable[..., Any], whole: Any = None
    ) -> None:
        self.words = (ctypes.c_int64 * (1 + len(words)))(entry.address, *words)
        self.at, self.function = ctypes.addressof(self.words), entry.call
        self.args, self.fail, self.whole = args, fail, whole

    def __call__(self) -> None:
        """Make the call."""
        if self.function(self.at):
            self.fail(*self.args)
