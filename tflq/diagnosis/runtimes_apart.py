"""The installed runtimes on one model: which of them give the same outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tflq.errors import RuntimeFailed, RuntimeMissing
from tflq.verification.golden import Golden

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

    Raises:
        RuntimeMissing: None is installed.
        RuntimeFailed: None of those that are installed runs the model.
    """
    groups: dict[bytes, list[str]] = {}
    failed: dict[str, str] = {}
    missing: RuntimeMissing | None = None
    failure: RuntimeFailed | None = None
    for name in names:
        try:
            groups.setdefault(_digest(record(name)), []).append(name)
        except RuntimeMissing as error:
            missing = missing or error
        except RuntimeFailed as error:
            failure = failure or error
            failed[name] = error.reason
    if not groups:
        raise failure or missing or RuntimeMissing("any runtime", "no names are given")
    return RuntimesApart(tuple(map(tuple, groups.values())), failed)


def _digest(golden: Golden) -> bytes:
    """Return a digest of the outputs of every sample."""
    whole = hashlib.blake2b(digest_size=16)
    for observation in golden.observations:
        for value in observation.outputs:
            whole.update(b"none" if value is None else f"{value.dtype.name}{value.shape}".encode() + value.tobytes())
    return whole.digest()
