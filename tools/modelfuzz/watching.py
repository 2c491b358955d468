"""A child process that runs variants, watched for its time, its memory and its death.

The child is forked after all imports. It writes the number of a variant to a pipe before it, and the outcome after it.
So the parent knows the variant of a silent or dead child, and forks another child for the rest.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from modelfuzz.subjects import Subject
from modelfuzz.variants import Variant

#: Address space of a child beyond that at its fork: exceeding it is a MemoryError, or an abort.
_ADDRESS_BYTES = 6 << 30
#: Seconds between two polls of a child.
_LOOK = 1.0


def watch(
    subject: Subject, variants: Iterable[Variant], seconds: float, most_bytes: int
) -> Iterator[tuple[Variant, str]]:
    """Yield the outcome of each variant: the subject's, "!crash: ...", "!hang", or "!memory: ..." beyond the limit."""
    waiting = list(variants)
    while waiting:
        process, pipe = _fork(subject, waiting, most_bytes)
        done = 0
        try:
            for end in _ends(process, pipe, seconds):
                yield waiting[done], end
                done += 1
        finally:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            pipe.close()
        waiting = waiting[done:]
        if waiting and done == 0 and os.WIFEXITED(status):
            raise RuntimeError(f"the child ended with status {os.WEXITSTATUS(status)} before its first variant")


def _ends(process: int, pipe: IO[bytes], seconds: float) -> Iterator[str]:
    """Yield the outcomes of one child's variants; the last may be that of the child itself."""
    since = time.monotonic()
    begun = False
    while True:
        ready, _, _ = select.select([pipe], [], [], _LOOK)
        line = pipe.readline() if ready else b""
        if line.strip() == b"begin":
            begun, since = True, time.monotonic()
        elif line:
            begun = False
            yield json.loads(line)
        elif ready:  # the end of the pipe: it has exited, or died
            if begun:
                yield f"!crash: {_cause(_status(process))}"
            return
        elif begun and time.monotonic() - since > seconds:
            yield "!hang"
            return


def _status(process: int) -> int:
    """Return the status of a process that has ended or is about to, without collecting it."""
    info = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    return 0 if info is None else info.si_status


def _cause(status: int) -> str:
    try:
        return signal.Signals(status).name
    except ValueError:
        return f"exit code {status}"


def _fork(subject: Subject, variants: list[Variant], most_bytes: int) -> tuple[int, IO[bytes]]:
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, os.fdopen(reading, "rb", buffering=0)
    os.close(reading)
    code = 1
    try:
        _work(subject, variants, writing, most_bytes)
        code = 0
    finally:
        os._exit(code)


def _work(subject: Subject, variants: list[Variant], writing: int, most_bytes: int) -> None:
    """Run all variants in the child."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _pages() * resource.getpagesize() + _ADDRESS_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for variant in variants:
        data = variant.data()
        os.write(writing, b"begin\n")
        before = _begin_peak()
        end = subject(variant, data)
        grown = _peak() - before
        if grown > most_bytes and not end.startswith("!"):
            end = f"!memory: {grown >> 20} MiB ({end})"
        os.write(writing, json.dumps(end[:300]).encode() + b"\n")


def _pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0])


def _begin_peak() -> int:
    """Reset the peak of memory, and return the present amount in bytes.

    Objects that survive a collection are modules and compiled code: they are frozen and not searched again.
    """
    gc.collect()
    gc.freeze()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _field("VmRSS")


def _peak() -> int:
    return _field("VmHWM")


def _field(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return 0
