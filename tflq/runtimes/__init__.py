"""Real runtimes behind one small protocol. Each run happens in a child process."""

from __future__ import annotations

from dataclasses import replace

from tflq.errors import UnknownNameError
from tflq.runtimes import litert, tensorflow, tflite_micro, tflite_runtime
from tflq.runtimes.process import ProcessRuntime
from tflq.runtimes.runtime import Description, Execution, Runtime, Sample, Step, Stepped

__all__ = ["RUNTIMES", "Description", "Execution", "ProcessRuntime", "Runtime", "Sample", "Step", "Stepped", "by_name"]

#: Every runtime, by name.
RUNTIMES: dict[str, ProcessRuntime] = {
    runtime.name: runtime
    for family in (litert, tensorflow, tflite_runtime, tflite_micro)
    for runtime in family.RUNTIMES
}


def by_name(
    runtime: str | Runtime, *, python: str | None = None, threads: int | None = None, timeout: float | None = None
) -> Runtime:
    """Return the runtime of that name, in any case; a Runtime is returned unchanged.

    `python` is the path of the Python with the runtime, `timeout` the limit of a run in seconds.
    """
    if not isinstance(runtime, str):
        return runtime
    runtime = runtime.lower() if runtime.lower() in RUNTIMES else runtime
    if runtime not in RUNTIMES:
        raise UnknownNameError("runtime", runtime, tuple(RUNTIMES))
    chosen = RUNTIMES[runtime]
    return replace(
        chosen,
        python=python,
        threads=chosen.threads if threads is None else threads,
        timeout=chosen.timeout if timeout is None else timeout,
    )
