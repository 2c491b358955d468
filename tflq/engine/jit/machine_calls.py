"""Calls of machine code with fixed arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any


class MachineCall:
    """A call with fixed arguments, to be made repeatedly: its words are all that compiled code needs to make it.

    The call keeps arrays among the arguments alive.
    """

    __slots__ = ("args", "at", "fail", "function", "words")

    def __init__(self, entry: Any, args: tuple[Any, ...], words: list[int], fail: Callable[..., Any]) -> None:
        self.words = (ctypes.c_int64 * (1 + len(words)))(entry.address, *words)
        self.at, self.function = ctypes.addressof(self.words), entry.call
        self.args, self.fail = args, fail

    def __call__(self) -> None:
        """Make the call."""
        if self.function(self.at):
            self.fail(*self.args)
