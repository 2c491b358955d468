"""Push a suite through a Dask cluster of two workers, kill one in the middle, and count the results.

Every case must come back once per round. Seconds and memory are also printed: the growth of this process from a tenth
of the way to the end, and the surviving worker's.

    tflq conform make -o standard.npz
    python tools/measure_cluster.py standard.npz --count 100000

Exit status: 0 every case came back once per round; 1 some did not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tflq.devices.suites.run import SuitePart, on_cluster, parts_of

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cluster:
    """The scheduler's address, and two workers of one thread each."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def _started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-m", *words], env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def cluster(place: Path) -> Iterator[Cluster]:
    """Yield a scheduler and its workers, as processes that end with the block."""
    from distributed import Client

    file = place / "scheduler.json"
    with ExitStack() as stack:
        scheduler = ("distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        stack.enter_context(_started(*scheduler))
        worker = ("distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny")
        workers = [
            stack.enter_context(_started(*worker, "--no-dashboard", "--local-directory", str(place / name)))
            for name in ("one", "other")
        ]
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            address = client.scheduler.address
        yield Cluster(address, workers)


def push(parts: list[SuitePart], running: Cluster) -> tuple[Counter[str], list[int]]:
    """Return how often each case came back, and this process's memory after each part (KiB).

    One worker is killed half-way.
    """
    counted: Counter[str] = Counter()
    memory = []
    for number, judged in enumerate(on_cluster(parts, running.address), 1):
        counted.update(one.case.id for one in judged.cases)
        memory.append(_resident(os.getpid()))
        if number == len(parts) // 2:
            running.workers[0].kill()
    return counted, memory


def _resident(pid: int) -> int:
    """Return the resident memory of a process of this machine, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def main() -> int:
    """Push, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", help="a suite from `tflq conform make`")
    parser.add_argument("--target", default="profile:litert-ref", help="as for `tflq conform run`")
    parser.add_argument("--count", type=int, default=100_000, help="verifications, at least (default: 100,000)")
    args = parser.parse_args()
    one_round = [replace(part, groups=0) for part in parts_of(SuitePart(os.path.abspath(args.suite), args.target))]
    cases = one_round[-1].stop
    rounds = -(-args.count // cases)
    with tempfile.TemporaryDirectory() as place, cluster(Path(place)) as running:
        before = time.monotonic()
        counted, memory = push(one_round * rounds, running)
        seconds = time.monotonic() - before
        worker = _resident(running.workers[1].pid)
    wrong = sum(times != rounds for times in counted.values()) + (cases - len(counted))
    early, late = memory[len(memory) // 10], memory[-1]
    print(f"{counted.total():,} verifications of {cases:,} cases in {seconds:.0f} s; not once per round: {wrong}")
    print(f"client: {early / 1024:.0f} MiB after a tenth, {late / 1024:.0f} MiB at the end")
    print(f"surviving worker: {worker / 1024:.0f} MiB")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
