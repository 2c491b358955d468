"""Real runtimes behind one small protocol. Each run happens in a child process."""

from __future__ import annotations

import re
from dataclasses import replace

from tflq.engine.runtimes import litert, tensorflow, tflite_micro, tflite_runtime
from tflq.engine.runtimes.process import ProcessRuntime
from tflq.engine.runtimes.runtime import Description, Execution, Runtime, Sample, Step, Stepped
from tflq.errors import UnknownNameError

__all__ = [
    "RUNTIMES",
    "Description",
    "Execution",
    "ProcessRuntime",
    "Runtime",
    "Sample",
    "Step",
    "Stepped",
    "by_name",
    "named",
]

#: Every runtime, by name.
RUNTIMES: dict[str, ProcessRuntime] = {
    runtime.name: runtime
    for family in (litert, tensorflow, tflite_runtime, tflite_micro)
    for runtime in family.RUNTIMES
}

#: The name of a release with a resolver, and packages whose profiles have another name.
_RELEASE = re.compile(r"(?P<family>[a-z-]+)-(?P<release>\d+\.\d+)-(?P<resolver>[a-z]+)")
_FAMILIES = {"tf": "tensorflow", "tflite": "tflite-runtime"}


def named(name: str) -> ProcessRuntime:
    """Return the runtime of a name, in any case, such as `litert-ref`, or `litert-2.4-ref` for one release of it.

    Raises:
        UnknownNameError: There is no such runtime.
    """
    word = name.lower().removeprefix("runtime:")
    if word in RUNTIMES:
        return RUNTIMES[word]
    found = _RELEASE.fullmatch(word)
    base = found and f"{_FAMILIES.get(found['family'], found['family'])}-{found['resolver']}"
    if not found or base not in RUNTIMES:
        raise UnknownNameError("runtime", name, tuple(RUNTIMES))
    return replace(RUNTIMES[base], release=found["release"])


def by_name(
    runtime: str | Runtime, *, python: str | None = None, threads: int | None = None, timeout: float | None = None
) -> Runtime:
    """Return the runtime of that name, in any case; a Runtime is returned unchanged.

    Names of releases, as profiles have them (`litert-2.4-ref`), are those of their runtimes; another installed release
    is refused when it runs.

    `python` is the path of the Python with the runtime, `timeout` the limit of a run in seconds.
    """
    if not isinstance(runtime, str):
        return runtime
    chosen = named(runtime)
    return replace(
        chosen,
        python=python,
        threads=chosen.threads if threads is None else threads,
        timeout=chosen.timeout if timeout is None else timeout,
    )
