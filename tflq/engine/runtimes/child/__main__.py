"""The program that runs a real runtime, in a process and perhaps an environment of its own.

It reads a job from stdin, the size of an `.npz` archive in a line and the archive, and writes another to stdout, a file
that describes the present stage until the answer is complete, in case the runtime aborts. The process ends with its
parent. The folder is stand-alone: it needs only Python 3.8, NumPy of any version and the runtime.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, Dict, List  # noqa: UP035

import numpy as np
from tflq_drivers import adapter_of  # type: ignore[import-not-found]
from tflq_processor import described  # type: ignore[import-not-found]
from tflq_wire import carry, pack, unpack  # type: ignore[import-not-found]

#: An option of Linux's prctl (linux/prctl.h): the signal that this process gets when its parent ends.
PR_SET_PDEATHSIG = 1

Values = List[Any]  # noqa: UP006


def main() -> None:
    """Do the job; every error that Python can catch goes into the answer."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # a runtime's prints to stdout must not enter the answer
        stage = StageNote(answer)
        archive = read_job()
        job = json.loads(archive["job"].tobytes().decode())
        if "timed" in job:
            end_by_kernel()
            import_module("tflq_timing").serve(job, archive, answer)
            return
        end_with_parent()
        outputs: Dict[str, Any] = {}  # noqa: UP006
        try:
            result = work(job, archive, stage, outputs)
        except Exception as error:
            result = {"failed": f"{type(error).__name__}: {error}", "stage": stage.doing}
        outputs["result"] = np.frombuffer(json.dumps(result).encode(), np.uint8)
        stage.clear()
        np.savez(answer, **outputs)


def read_job() -> Any:
    """Return the archive that the parent sends."""
    data = sys.stdin.buffer.read(size := int(sys.stdin.buffer.readline()))
    if len(data) != size:
        raise SystemExit("the parent ended while it sent the job")
    return np.load(io.BytesIO(data), allow_pickle=False)


def end_with_parent() -> None:
    """End this process when its parent ends: by the kernel on Linux, and otherwise when the stdin pipe breaks."""
    end_by_kernel()
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()


def end_by_kernel() -> None:
    """Ask Linux to end this process when its parent ends."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):  # a Python or C library without it; the pipe is enough
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def work(job: Any, archive: Any, stage: StageNote, outputs: Any) -> Any:
    """Run all models on all samples and fill `outputs`; return the description of the runtime."""
    stage("importing the runtime")
    load, distributions = adapter_of(job)
    try:
        runtime = load()
    except ImportError as error:
        return {"missing": str(error)}
    names: Values = []
    delegated: Values = []
    for m in range(job["models"]):
        model = job["paths"].get(str(m)) or archive[f"model_{m}"].tobytes()
        nodes = 0
        for s, steps in enumerate(job["sequences"]):
            stage.where = f" of model {m}, sample {s}"
            stage("loading")
            interpreter = runtime(model, job)
            latest: Dict[str, Any] = {}  # noqa: UP006
            for k, step in enumerate(steps):
                stage.where = f" of model {m}, sample {s}" + (f", step {k}" if len(steps) > 1 else "")
                given = {name: unpack(f"s{s}_{k}_{i}", archive) for i, name in enumerate(step["inputs"])}
                given.update(carry(step, latest))
                if step["poisoned"]:
                    interpreter.poison(step["signature"], given, step["poisoned"], stage)
                values = interpreter.step(step["signature"], given, stage)
                latest.update(values)
                for i, value in enumerate(values.values()):
                    if value is not None:
                        outputs.update(pack(f"m{m}_s{s}_{k}_{i}", np.asarray(value)))
                names.append(list(values))
            nodes = interpreter.delegated()
        delegated.append(nodes)
    return {**described(distributions), "delegated": delegated, "names": names}


class StageNote:
    """The present stage, noted in the answer's place, so that an abort can be located."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.where, self.doing = answer, "", "starting"

    def __call__(self, doing: str) -> None:
        """Overwrite the note."""
        self.doing = doing + self.where
        self.clear()
        self.answer.write(self.doing.encode())
        self.answer.flush()

    def clear(self) -> None:
        """Remove the note."""
        self.answer.seek(0)
        self.answer.truncate()


if __name__ == "__main__":
    main()
