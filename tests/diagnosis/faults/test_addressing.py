"""Right elements in other places are found with their order; the arithmetic is cleared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from support.convolved import after_reading, alone, defect
from tflq.diagnosis.faults import DefectKind

DeviceChange = Callable[[np.ndarray], np.ndarray]


def _stride(value: np.ndarray) -> np.ndarray:
    memory = np.concatenate([value.reshape(-1), np.arange(512).astype(np.int8)])
    places = np.arange(16)[:, None] * (16 * 16 + 16) + np.arange(16 * 16)
    return memory[places].reshape(value.shape)


def _gaps(value: np.ndarray) -> np.ndarray:
    memory = np.zeros((16, 16 * 16 + 24), np.int8)
    memory[:, : 16 * 16] = value.reshape(16, -1)
    return memory.reshape(-1)[: value.size].reshape(value.shape)


CHANGES: dict[str, DeviceChange] = {
    "rows in reverse order": lambda v: v[:, ::-1],
    "shifted down by 1 row, with wrap-around": lambda v: np.roll(v, 1, 1),
    "shifted towards the end in memory by 3 elements, with wrap-around": lambda v: np.roll(v.reshape(-1), 3).reshape(
        v.shape
    ),
    "blocks of 8 channels": lambda v: v.reshape(1, 256, 2, 8).transpose(0, 2, 1, 3).reshape(v.shape),
    "lie 272 apart": _stride,
    "were written 280 apart": _gaps,
    "every second column repeats": lambda v: v[:, :, np.arange(16) // 2 * 2],
}


@pytest.mark.parametrize("words", CHANGES)
def test_an_order_of_results_is_named(words: str) -> None:
    found = defect(alone(lambda k, right: np.ascontiguousarray(CHANGES[words](right[k]))))
    assert found is not None
    assert found.kind == DefectKind.ADDRESSING
    assert words in found.name
    assert "so the arithmetic is right" in found.cleared


def test_a_shift_by_the_padding_is_named_as_such() -> None:
    """The convolution has one row of padding above; without it, every row is one too high, and the last is another."""
    found = defect(alone(lambda k, right: np.concatenate([right[k][:, 1:], right[k][:, :1] ^ 5], 1)))
    assert found is not None
    assert found.name == "the output is shifted up by 1 row, as if padding at the top were missing"
    assert found.cleared == "3,840 of 4,096 values are right but 1 row too high, so the arithmetic is right"


def test_an_input_that_is_read_in_another_order_is_named() -> None:
    """The device reads the image upside down, and computes right."""
    from support.convolved import INDEX, REF, network, result, runs
    from tflq.engine.api.many import part_of
    from tflq.model.ir import view

    model = network()
    image = view(model).op(INDEX).inputs[0]
    samples = []
    for values in runs(model):
        part = part_of(model, (INDEX,), {**values, image: np.ascontiguousarray(values[image][:, ::-1])})
        samples.append({image: values[image], result(model): part.run(part.plan(REF))[result(model)]})
    found = defect(samples)
    assert found is not None
    assert "input 0 is read from other places: rows in reverse order" in found.name


def test_a_stuck_bit_is_named() -> None:
    found = defect(alone(lambda k, right: right[k] | np.int8(4)))
    assert found is not None
    assert "bit 2 of every result is 1" in found.name


def test_another_order_after_the_reader_is_of_the_dump() -> None:
    found = defect(after_reading(lambda v: np.ascontiguousarray(v[:, ::-1])))
    assert found is not None
    assert found.kind == DefectKind.BLOCK
    assert "in the dump only: operator 2 read right values" in found.name
