"""Interfaces below LiteRT's Python interpreter that other packages call.

These are the native interpreter, with LiteRT's names, and ai-edge-quantizer's calibration, which is native code in
LiteRT.

Source: LiteRT 2.3, interpreter_wrapper_pybind11.cc; tfl_calibration_wrapper.cc, tfl_tensor_stats_profiler.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.api.arguments import shape_of
from tflq.engine.api.exclusion import Exclusion, exclusive
from tflq.engine.api.session import Session
from tflq.engine.api.signature import Owner
from tflq.engine.api.values import give
from tflq.engine.interpreter.trace import Called
from tflq.errors import InputError, UnknownNameError
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Types of tensors whose values a calibration counts.
_CALIBRATED = (TensorType.FLOAT32, TensorType.INT32)


class NativeInterpreter:
    """Subgraphs of an interpreter by number, with the methods of LiteRT's native interpreter."""

    def __init__(self, interpreter: Owner) -> None:
        self._interpreter = interpreter
        self._exclusion: Exclusion = interpreter._exclusion

    def GetSubgraphIndexFromSignature(self, signature_key: str) -> int:  # noqa: N802
        """Return the subgraph that a signature runs."""
        signatures = self._interpreter._signatures()
        if signature_key not in signatures:
            raise UnknownNameError("signature", signature_key, tuple(signatures))
        return signatures[signature_key].subgraph_index

    @exclusive
    def ResizeInputTensor(  # noqa: N802
        self, i: int, value: Sequence[int] | Array, strict: bool = False, subgraph_index: int = 0
    ) -> None:
        """Give an input another shape, from the next allocation on."""
        self._session(subgraph_index).resize(int(i), shape_of(value), strict)

    @exclusive
    def AllocateTensors(self, subgraph_index: int = 0) -> None:  # noqa: N802
        """Bind the operators of a subgraph."""
        self._session(subgraph_index).allocate()

    @exclusive
    def SetTensor(self, i: int, value: Any, subgraph_index: int = 0) -> None:  # noqa: N802
        """Copy an array into a tensor."""
        self._session(subgraph_index).set(int(i), value)

    @exclusive
    def GetTensor(self, i: int, subgraph_index: int = 0) -> Array:  # noqa: N802
        """Return a copy of a tensor's value."""
        session = self._session(subgraph_index)
        return give(session.value(int(i)), session.type(int(i)))

    @exclusive
    def Invoke(self, subgraph_index: int = 0) -> None:  # noqa: N802
        """Run a subgraph."""
        self._interpreter._invoke(max(int(subgraph_index), 0))

    @exclusive
    def calibrate(self, subgraph_index: int) -> dict[str, Range]:
        """Run a subgraph and return the range of every tensor in it and in subgraphs below it, by name."""
        session = self._session(subgraph_index)
        ranges: dict[str, Range] = {}
        trace = session.invoke(keep_all=True)
        assert session.plan is not None  # it has just run
        for name, array in _activations((Called(session.plan.operands, trace.values), *trace.called.values())):
            low, high = float(np.float32(array.min())), float(np.float32(array.max()))
            before = ranges.get(name, Range(low, high))
            ranges[name] = Range(min(low, before.min), max(high, before.max))
        return dict(sorted(ranges.items()))

    def _session(self, subgraph_index: int) -> Session:
        return self._interpreter._session(max(int(subgraph_index), 0))  # -1 means the first, as in LiteRT


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest value of a tensor, as float32."""

    min: float
    max: float


def invoke_with_calibration(interpreter_handle: NativeInterpreter, subgraph_index: int) -> dict[str, Range]:
    """Run a subgraph and return the range of each float32 and int32 tensor except constants, by name.

    If a subgraph is called several times, its last call counts. `interpreter_handle` is the result of tflq's
    `_native_handle()`.
    """
    if not isinstance(interpreter_handle, NativeInterpreter):
        raise InputError("takes tflq's interpreters only", got=type(interpreter_handle).__name__)
    return interpreter_handle.calibrate(subgraph_index)


def _activations(subgraphs: Iterable[Called]) -> Iterator[tuple[str, Array]]:
    """Yield names and values of the inputs and results of subgraphs."""
    for subgraph in subgraphs:
        for tensor, value in subgraph.values.items():
            operand = subgraph.operands[tensor]
            if operand.type in _CALIBRATED and not operand.is_variable and value.size:
                yield operand.name, value
