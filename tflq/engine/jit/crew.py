"""Several threads that compute one call: its parts are on a board, and each free thread takes the next one.

A handover through Python's lock takes as long as a small operator. So helpers stay in compiled code from operator to
operator: they poll the board until no call was put there for a while, and only then go to sleep. The thread that puts a
call there takes parts as well, and all of them if no helper comes: no thread ever waits for a helper that has not taken
a part. The thread that computes a part does not change any bit.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, unlock
from tflq.engine.jit.instructions import add, look, make, put, swap
from tflq.engine.jit.machine_calls import MachineCall
from tflq.typing import Array

#: Words of the board, each in a cache line of its own: the ticket, the number of parts of the call that are not done,
#: and whether one failed. Two words follow for each call: where its parts' addresses begin, and how many there are.
_TICKET, _LEFT, _FAILED, _CALLS = 0, 8, 16, 24
#: A ticket is the number of the call, shifted by this many bits, and the number of its parts that were taken.
_SHIFT = 16
_TAKEN = (1 << _SHIFT) - 1
#: How often a thread polls the board before it sleeps; this takes a few hundred microseconds.
_PATIENCE = 1 << 13
#: Seconds of sleep while a helper computes.
_NAP = 5e-5
#: Bytes that calls of a helper allocate.
_ROOM = 1 << 20
#: Outcomes of a call.
_DONE, _FAILURE, _PENDING = 0, 1, 2


def cores() -> int:
    """Return the number of threads of this process that can run at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew:
    """The thread that calls, one call at a time, and its helpers, which end with the last reference to the crew."""

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._shared: list[Sequence[MachineCall]] = []
        self._board: Array = np.zeros(0, np.int64)
        self._process = 0
        self._rest = _Rest()

    @property
    def size(self) -> int:
        """The number of threads."""
        return self._helpers + 1

    def shared(self, call: Callable[[], object], parts: Sequence[MachineCall]) -> Callable[[], object]:
        """Return a callable that makes `call` by its `parts`, calls of compiled code that may be made at the same time.

        If a part raises, `call` is made once more in this thread, so that the exception is raised here.
        """
        self._shared.append(parts)
        return partial(self._make, len(self._shared) - 1, call)

    def assemble(self) -> None:
        """Prepare shared calls: the board, helpers in this process, no state of an earlier run."""
        if not self._shared:
            return
        if not self._board.size:
            self._board = _board_of(self._shared)
            _serve(self._board, 0)
        if self._process != os.getpid():  # a new crew, or a forked child process, which has no helpers
            self._process, self._board[_LEFT] = os.getpid(), 0
            self._rest.close()
            self._rest = _Rest()
            weakref.finalize(self, self._rest.close)
            with suppress(RuntimeError):  # no more threads can be started: this one computes all parts
                for _ in range(self._helpers):
                    work = (self._board, self._shared, self._rest)
                    threading.Thread(target=_help, args=work, name="tflq", daemon=True).start()
        while _settle(self._board, _PATIENCE) == _PENDING:  # a run was interrupted while a helper computed
            time.sleep(_NAP)

    def _make(self, number: int, call: Callable[[], object]) -> None:
        if self._rest.sleeping:
            self._rest.wake()
        result = _share(self._board, number, _PATIENCE)
        while result == _PENDING:
            time.sleep(_NAP)
            result = _settle(self._board, _PATIENCE)
        if result == _FAILURE:
            call()


class _Rest:
    """Sleeping helpers: the lock that each waits for."""

    def __init__(self) -> None:
        self.sleeping: deque[threading.Lock] = deque()
        self.is_over = False

    def wake(self) -> None:
        """Wake all that sleep."""
        with suppress(IndexError):
            while True:
                self.sleeping.pop().release()

    def close(self) -> None:
        """Let all helpers end."""
        self.is_over = True
        self.wake()


def _help(board: Array, shared: object, rest: _Rest) -> None:
    """Run a helper; it keeps the arrays to which calls on the board are bound."""
    # An allocator that keeps memory by thread returns the end of it to the system whenever a call returns. A small
    # allocation at the end prevents that.
    room = [np.empty(_ROOM // 16, np.uint8) for _ in range(16)]
    end = np.empty(4096, np.uint8)
    del room
    awake = threading.Lock()
    awake.acquire()
    while not rest.is_over:
        _serve(board, _PATIENCE)
        rest.sleeping.append(awake)
        if not rest.is_over:
            awake.acquire()
    del end


def _board_of(shared: Sequence[Sequence[MachineCall]]) -> Array:
    """Return a board with all calls, none of them active."""
    starts = np.cumsum([_CALLS + 2 * len(shared), *map(len, shared)])
    calls = [word for start, parts in zip(starts, shared, strict=False) for word in (start, len(parts))]
    addresses = [part.at for parts in shared for part in parts]
    return np.array([_TAKEN, *[0] * (_CALLS - 1), *calls, *addresses], np.int64)


@compiled
def _take(board: Array) -> Int:
    """Run parts of calls until none is left; return how many were run.

    The caller guarantees: the board is a crew's.
    """
    taken = 0
    while True:
        ticket = look(board, _TICKET, 0, 0)
        call, part = _CALLS + 2 * (ticket >> _SHIFT), ticket & _TAKEN
        if part >= board[call + 1]:
            return taken
        if swap(board, _TICKET, ticket, ticket + 1):
            if make(board, board[call] + part, 0, 0):
                put(board, _FAILED, _FAILURE, 0)
            add(board, _LEFT, -1, 0)
            taken += 1


@unlock
@compiled
def _serve(board: Array, patience: Int) -> None:
    """Run parts until there were none for a while. The caller guarantees: the board is a crew's."""
    idle = 0
    while idle < patience:
        idle = 0 if _take(board) > 0 else idle + 1


@unlock
@compiled
def _share(board: Array, call: Int, patience: Int) -> Int:
    """Put a call on the board, run parts of it, and settle it. The caller guarantees: the board is a crew's."""
    put(board, _LEFT, board[_CALLS + 2 * call + 1], 0)
    put(board, _TICKET, call << _SHIFT, 0)
    _take(board)
    return _settle(board, patience)


@unlock
@compiled
def _settle(board: Array, patience: Int) -> Int:
    """Wait a while for parts that other threads run. The caller guarantees: the board is a crew's."""
    for _ in range(patience):
        if look(board, _LEFT, 0, 0) == 0:
            return put(board, _FAILED, _DONE, 0)
    return _PENDING
