"""Blocks that were overwritten after they were read clear the operator; blocks of known contents are named."""

from __future__ import annotations

import numpy as np

from support.convolved import after_reading, alone, defect, network, result, runs
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import DefectKind


def _end_lost(value: np.ndarray) -> np.ndarray:
    value.reshape(-1)[3072:] = np.random.default_rng(2).integers(-128, 128, value.size - 3072)
    return value


def test_a_block_that_was_overwritten_after_it_was_read() -> None:
    found = defect(after_reading(_end_lost))
    assert found is not None
    assert (found.kind, found.certainty) == (DefectKind.OVERWRITTEN, Certainty.CERTAIN)
    assert f"tensor {result(network())} was overwritten after operator 2 read it" in found.name
    assert "elements 3,072 to 4,095 of 4,096" in found.place
    assert "rows 12 to 15 of 16" in found.place
    assert "operator 1 CONV_2D is right" in found.cleared


def test_samples_that_readers_did_not_read_are_the_dumps() -> None:
    tensor, samples = result(network()), runs(network(), 4)
    samples[2][tensor] = np.random.default_rng(3).integers(-128, 128, samples[2][tensor].shape).astype(np.int8)
    found = defect(samples)
    assert found is not None
    assert (found.kind, found.certainty) == (DefectKind.OVERWRITTEN, Certainty.CERTAIN)
    assert found.name == f"tensor {tensor} holds other values, not what operator 2 read"
    assert found.place == "in sample 2 of 4"


def test_an_operator_that_was_tested_alone_is_not_cleared() -> None:
    found = defect(after_reading(lambda value: (value ^ 1) + (value & 6)))
    assert found is None or found.kind != DefectKind.OVERWRITTEN


def test_a_block_of_older_results_is_stale() -> None:
    def half(k: int, right: list[np.ndarray]) -> np.ndarray:
        value = right[k].copy()
        value.reshape(-1)[2048:] = right[k - 1].reshape(-1)[2048:] if k else 0
        return value

    found = defect(alone(half))
    assert found is not None
    assert "sample before (stale)" in found.name
    assert "of 12,288 elements are right, so the arithmetic is" in found.cleared


def test_a_few_scattered_differences_are_no_block() -> None:
    def noisy(_k: int, right: list[np.ndarray]) -> np.ndarray:
        value = right[_k].copy()
        value.reshape(-1)[[5, 900, 2100, 3900]] ^= 1
        return value

    assert defect(alone(noisy)) is None
