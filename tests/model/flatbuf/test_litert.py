"""What the writer writes, a real LiteRT runs: with the outputs that it gave for the original file."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.suites import suite_models
from tflq.model.flatbuf import read, write
from tflq.model.flatbuf.writer import MAX_INSIDE

WORKER = Path(__file__).parents[2] / "support" / "litert_worker.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None, reason="runtime missing: ai-edge-litert"
)


class Worker:
    """LiteRT in a process that is started again whenever a model ends it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, model: Path, golden: Path) -> str:
        if self.process is None:
            command = [sys.executable, str(WORKER)]
            pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(f"{model}\t{golden}", file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("answer: "):
                return line.removeprefix("answer: ").strip()
        self.close()
        return "process ended"

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate()
            self.process = None


@pytest.fixture
def worker() -> Iterator[Worker]:
    one = Worker()
    yield one
    one.close()


#: LiteRT's Python interface refuses to hand out a tensor of no elements, whichever file it comes from.
EMPTY = "error ValueError('Invalid tensor size.')"


@pytest.mark.parametrize(
    ("suite", "max_inside"), [("singleop", MAX_INSIDE), ("zip", MAX_INSIDE), ("real", MAX_INSIDE), ("singleop", 0)]
)
def test_litert_gives_the_recorded_outputs_for_the_rewritten_file(
    suite: str, max_inside: int, shared: Path, worker: Worker, tmp_path: Path
) -> None:
    rewritten, failures, count = tmp_path / "rewritten.tflite", [], 0
    for case in suite_models(suite):
        rewritten.write_bytes(write(read(case.model.read_bytes()), max_inside=max_inside))
        got = worker.ask(rewritten, case.golden)
        if got != "same" and not (got == EMPTY == worker.ask(case.model, case.golden)):
            failures.append(f"{case.id}: {got}")
        count += 1
    assert count > 100
    assert not failures
