"""Mutual exclusion: two threads must not use one interpreter at once, as in LiteRT."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from tflq.errors import StateError, out_of_memory

P = ParamSpec("P")
R = TypeVar("R")


class Exclusion:
    """A lock that one thread at a time can enter, also repeatedly.

    Another thread does not wait, but gets a StateError: if two threads alternated, one would read the results of the
    other's inputs.
    """

    def __init__(self) -> None:
        lock = threading.RLock()
        self._acquire, self.leave = lock.acquire, lock.release

    def enter(self) -> None:
        """Enter, until `leave`."""
        if not self._acquire(False):
            raise StateError(
                "another thread is using this interpreter: give each thread one of its own, or hold a lock from "
                "set_tensor to get_tensor"
            )


class Exclusive(Protocol):
    """An object whose methods exclude each other."""

    _exclusion: Exclusion


S = TypeVar("S", bound=Exclusive)


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method during which no other thread can call an exclusive method of the same object.

    If memory runs out, it raises a LimitError.
    """

    @functools.wraps(method)
    def alone(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        exclusion = self._exclusion
        exclusion.enter()
        try:
            return method(self, *args, **kwargs)
        except MemoryError as error:
            raise out_of_memory(method.__name__, error) from error
        finally:
            exclusion.leave()

    return alone
