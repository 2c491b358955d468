"""The interpreters of real runtimes behind one interface, with stand-ins for the runtimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflq.engine.runtimes.child.tflq_drivers import Desktop, Micro, readable


class Noted:
    """A stand-in for the child's stage."""

    def __call__(self, doing: str) -> None:
        self.doing = doing


class Old:
    """An interpreter of a release without signature runners. It counts its runs in a variable."""

    def __init__(self, **_: Any) -> None:
        self.runs, self.allocations = 0, 0

    def get_input_details(self) -> list[dict[str, Any]]:
        return [{"index": 0, "shape": np.array([2])}]

    def get_output_details(self) -> list[dict[str, Any]]:
        return [{"index": 1, "shape": np.array([2]), "dtype": np.float32}]

    def resize_tensor_input(self, index: int, shape: tuple[int, ...]) -> None:
        pass

    def allocate_tensors(self) -> None:
        self.allocations += 1

    def set_tensor(self, index: int, value: np.ndarray) -> None:
        self.value = value

    def invoke(self) -> None:
        self.runs += 1

    def get_tensor(self, index: int) -> np.ndarray:
        return self.value + self.runs


def test_an_interpreter_keeps_its_state_from_step_to_step() -> None:
    driver = Desktop(Old, b"", 1)
    zeros = {"0": np.zeros(2, np.float32)}
    values = [driver.step(None, zeros, Noted())["0"].tolist() for _ in range(2)]
    assert values == [[1, 1], [2, 2]]
    assert driver.interpreter.allocations == 1
    driver.step(None, {"0": np.zeros(3, np.float32)}, Noted())
    assert driver.interpreter.allocations == 2


def test_a_release_without_signature_runners_refuses() -> None:
    with pytest.raises(NotImplementedError, match="this release of the runtime cannot run signatures"):
        Desktop(Old, b"", 1).step("decode", {}, Noted())
    with pytest.raises(ValueError, match="the model has 1 inputs, got 2"):
        Desktop(Old, b"", 1).step(None, {"0": np.zeros(2), "1": np.zeros(2)}, Noted())


class Tiny:
    """A stand-in for tflite-micro's interpreter."""

    @classmethod
    def from_bytes(cls, model: bytes, arena_size: int) -> Tiny:
        assert arena_size > len(model)
        return cls()

    def set_input(self, value: np.ndarray, position: int) -> None:
        self.value = value

    def invoke(self) -> None:
        pass

    def get_output(self, position: int) -> np.ndarray:
        return [self.value][position]


def test_a_microcontrollers_interpreter_runs_the_first_subgraph_only() -> None:
    driver = Micro(Tiny, b"model")
    assert list(driver.step(None, {"0": np.ones(1)}, Noted())) == ["0"]
    with pytest.raises(NotImplementedError, match="runs the first subgraph, not signatures"):
        driver.step("decode", {}, Noted())


class Runner:
    """A signature runner with an output without a value, an empty one, and one with a value."""

    _subgraph_index = 1

    @property
    def _interpreter_wrapper(self) -> Runner:
        return self

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        shapes = {"gone": [1], "empty": [0, 2], "there": [1]}
        return {name: {"index": k, "shape": shape, "dtype": np.int8} for k, (name, shape) in enumerate(shapes.items())}

    def GetTensor(self, index: int, subgraph: int) -> np.ndarray:
        if index == 0:
            raise ValueError("Tensor data is null. Run allocate_tensors() first")
        return np.full(1, subgraph, np.int8)


def test_outputs_without_values_are_none() -> None:
    values = readable(Runner())
    assert values["gone"] is None
    assert values["empty"].shape == (0, 2)
    assert values["there"].tolist() == [1]
