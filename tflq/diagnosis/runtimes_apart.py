"""The installed runtimes on one model: which of them give the same outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Thread

from tflq.comparison.verification.golden import Golden
from tflq.diagnosis.outcomes import bits_of
from tflq.errors import RuntimeFailed, RuntimeMissing

#: Runtimes that may be installed in one Python, the usual device first.
NAMES = ("litert-xnnpack", "litert-opt", "litert-ref", "tflite-runtime-xnnpack", "tflite-runtime-ref", "tflm")


@dataclass(frozen=True, slots=True)
class RuntimesApart:
    """Groups of runtimes with the same output bits on the same inputs, and those that failed, with the reason."""

    groups: tuple[tuple[str, ...], ...]
    failed: Mapping[str, str] = field(default_factory=dict)

    def subject(self, base: str) -> str:
        """Return the runtime to explain: the first outside of the group of `base`'s runtime, else the first."""
        first = self.groups[0][0]
        home = next((group for group in self.groups if base in group), None)
        return first if home is None else next((group[0] for group in self.groups if group != home), first)


def runtimes_apart(record: Callable[[str], Golden], names: Iterable[str] = NAMES) -> RuntimesApart:
    """Record every installed runtime with `record`, and group those whose outputs have the same bits.

    They run side by side: `record` is called in threads, which wait for child processes.

    Raises:
        RuntimeMissing: None is installed.
        RuntimeFailed: None of those that are installed runs the model.
    """
    recorded = _side_by_side(record, tuple(names))
    groups: dict[bytes, list[str]] = {}
    failed: dict[str, str] = {}
    missing: RuntimeMissing | None = None
    failure: RuntimeFailed | None = None
    for name, one in recorded.items():
        if isinstance(one, RuntimeMissing):
            missing = missing or one
        elif isinstance(one, RuntimeFailed):
            failure = failure or one
            failed[name] = one.reason
        elif isinstance(one, BaseException):
            raise one
        else:
            groups.setdefault(one, []).append(name)
    if not groups:
        raise failure or missing or RuntimeMissing("any runtime", "no names are given")
    return RuntimesApart(tuple(map(tuple, groups.values())), failed)


def _side_by_side(record: Callable[[str], Golden], names: Sequence[str]) -> dict[str, bytes | BaseException]:
    """Return a digest of each recording, or the error that it ended with, in the order of the names.

    An interrupt does not wait for the threads; their child processes end with this one.
    """
    found: dict[str, bytes | BaseException] = {}

    def work(name: str) -> None:
        try:
            found[name] = _digest(record(name))
        except BaseException as error:
            found[name] = error

    threads = [Thread(target=work, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: found[name] for name in names}


def _digest(golden: Golden) -> bytes:
    """Return a digest of the outputs of every sample."""
    whole = hashlib.blake2b(digest_size=16)
    for observation in golden.observations:
        for value in observation.outputs:
            whole.update(b"none" if value is None else f"{value.dtype.name}{value.shape}".encode() + bits_of(value))
    return whole.digest()
