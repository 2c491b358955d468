"""A runtime in a child process: an abort in there is a result here, never the end of this process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tflq.errors import RuntimeFailed, RuntimeMissing
from tflq.runtimes.runtime import Array, Description, Execution, Sample
from tflq.runtimes.transport import pack, unpack

CHILD = Path(__file__).with_name("child.py")
#: How much of what the runtime printed goes into an error.
LAST_WORDS = 600


@dataclass(frozen=True, slots=True)
class ProcessRuntime:
    """One runtime and resolver, run by the Python at `python` (None: this one)."""

    name: str
    package: str  # the distribution to install
    adapter: str  # the function of child.py that drives it
    resolver: str  # OpResolverType's member, or the only one there is
    delegate: str = ""  # the delegate that the resolver applies by default
    python: str | None = None
    threads: int = 1
    timeout: float = 900.0  # seconds, for all models and samples together

    def describe(self) -> Description:
        """As Runtime.describe."""
        return self.run((), ()).description

    def run(self, models: Sequence[bytes], samples: Sequence[Sample]) -> Execution:
        """As Runtime.run."""
        with tempfile.TemporaryDirectory(prefix="tflq-") as name:
            folder = Path(name)
            self._write_job(folder, models, samples)
            result = self._execute(folder)
            with np.load(folder / "outputs.npz", allow_pickle=False) as entries:
                made = dict(entries)
        return Execution(self._description(result), _collect(made, result, len(models), len(samples)))

    def _write_job(self, folder: Path, models: Sequence[bytes], samples: Sequence[Sample]) -> None:
        job = {
            "adapter": self.adapter, "resolver": self.resolver, "threads": self.threads, "models": len(models),
            "samples": [len(sample) for sample in samples],
        }  # fmt: skip
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        for m, model in enumerate(models):
            (folder / f"model_{m}.tflite").write_bytes(model)
        entries: dict[str, Array] = {}
        for s, sample in enumerate(samples):
            for i, value in enumerate(sample):
                entries |= pack(f"s{s}_{i}", value)
        np.savez(folder / "inputs.npz", **entries)  # type: ignore[arg-type]

    def _execute(self, folder: Path) -> dict[str, Any]:
        python = shutil.which(self.python or sys.executable)
        if python is None:
            raise RuntimeMissing(self.name, f"no Python at {self.python}")
        command = [python, str(CHILD), str(folder)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
        with (folder / "printed.txt").open("w+b") as printed:
            try:
                status = subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, env=environment,
                    timeout=self.timeout, check=False,
                ).returncode  # fmt: skip
            except subprocess.TimeoutExpired:
                raise RuntimeFailed(self.name, f"no end after {self.timeout:g} s while {_stage(folder)}") from None
            except OSError as error:
                raise RuntimeMissing(self.name, f"cannot start {python}: {error.strerror}") from error
        if status != 0 or not (folder / "result.json").is_file():
            raise RuntimeFailed(self.name, f"{_ending(status)} while {_stage(folder)}{_last_words(folder)}")
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        if "missing" in result:
            raise RuntimeMissing(
                self.name, f"{result['missing']}; install {self.package} there, or name a Python that has it ({python})"
            )
        if "failed" in result:
            raise RuntimeFailed(self.name, f"{result['failed']} (while {_stage(folder)}){_last_words(folder)}")
        return result

    def _description(self, result: dict[str, Any]) -> Description:
        return Description(
            name=self.name,
            package=result["package"],
            version=result["version"],
            resolver=self.resolver,
            threads=self.threads,
            python=result["python"],
            numpy=result["numpy"],
            platform=result["platform"],
            delegate=self.delegate,
            delegated=tuple(result["delegated"]),
        )


def _collect(
    made: dict[str, Array], result: dict[str, Any], models: int, samples: int
) -> tuple[tuple[tuple[Array | None, ...], ...], ...]:
    counts = iter(result.get("counts", ()))
    return tuple(
        tuple(tuple(unpack(f"m{m}_s{s}_{i}", made) for i in range(next(counts))) for s in range(samples))
        for m in range(models)
    )


def _stage(folder: Path) -> str:
    path = folder / "stage.txt"
    return path.read_text(encoding="utf-8") if path.is_file() else "starting"


def _last_words(folder: Path) -> str:
    """The end of what the runtime printed, to be hung on an error's text."""
    words = (folder / "printed.txt").read_text(encoding="utf-8", errors="replace").strip()[-LAST_WORDS:]
    return f": {words}" if words else ""


def _ending(status: int) -> str:
    """How a process ended, in words: by a signal (negative on POSIX) or with an exit status."""
    if status < 0:
        try:
            return f"aborted with {signal.Signals(-status).name}"
        except ValueError:
            return f"aborted with signal {-status}"
    return f"ended with status {status}"
