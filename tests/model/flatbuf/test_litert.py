"""What the writer writes, a real LiteRT runs: with the outputs that it gave for the original file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from opfuzz.remote import REFERENCE, Ran, Remote
from support.running import assert_same, samples_of
from support.suites import suite_models
from tflq.model.flatbuf import read, write
from tflq.model.flatbuf.writer import MAX_INSIDE

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None, reason="runtime missing: ai-edge-litert"
)


@pytest.fixture
def litert() -> Iterator[Remote]:
    with Remote([sys.executable], "ai_edge_litert.interpreter", REFERENCE) as one:
        yield one


def differing(litert: Remote, model: bytes, golden: Path) -> str:
    """Return how LiteRT's outputs differ from the recorded ones, or why there are none; empty if they are the same."""
    for inputs, wanted in samples_of(dict(np.load(golden, allow_pickle=False))):
        result = litert.outputs(model, [inputs])
        if not isinstance(result, Ran):
            return result.reason
        try:
            assert_same(result.outputs[0], wanted)
        except AssertionError as error:
            return str(error)
    return ""


@pytest.mark.parametrize(
    ("suite", "max_inside"), [("singleop", MAX_INSIDE), ("zip", MAX_INSIDE), ("real", MAX_INSIDE), ("singleop", 0)]
)
def test_litert_gives_the_recorded_outputs_for_the_rewritten_file(
    suite: str, max_inside: int, shared: Path, litert: Remote
) -> None:
    failures, count = [], 0
    for case in suite_models(suite):
        rewritten = bytes(write(read(case.model.read_bytes()), max_inside=max_inside))
        difference = differing(litert, rewritten, case.golden)
        if difference:
            failures.append(f"{case.id}: {difference}")
        count += 1
    assert count > 100
    assert not failures
