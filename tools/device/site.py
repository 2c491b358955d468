"""One operator of a model in the device's terms: codes, scales, zero points, options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import CARRIER, Model, TensorType, view

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor: its type, scales (float32, possibly none), zero point and, if constant, value."""

    tensor: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    scales: NDArray[np.float32]
    zero: int
    value: Array | None

    @property
    def scale(self) -> np.float32:
        """The only scale."""
        return np.float32(self.scales[0])

    @property
    def limits(self) -> tuple[int, int]:
        """Lowest and highest code of the type."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)


@dataclass(frozen=True, eq=False)
class Site:
    """An operator with one output."""

    index: int
    op: str
    inputs: tuple[Operand | None, ...]
    output: Operand
    options: Mapping[str, Any]

    def input(self, position: int) -> Operand:
        """Return an input that is present."""
        found = self.inputs[position]
        assert found is not None
        return found

    @property
    def type(self) -> str:
        """The type of the first input's codes."""
        return self.input(0).dtype.name

    @property
    def activation(self) -> str:
        """NONE, RELU, RELU_N1_TO_1, RELU6 ..."""
        names = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
        return names[int(self.options.get("fused_activation_function") or 0)]


def site_of(model: Model, index: int) -> Site | None:
    """Return operator `index` of the first subgraph; None with several outputs or an unknown type."""
    graph = view(model)
    operator = graph.op(index)
    if len(operator.outputs) != 1 or any(
        not isinstance(graph.tensors[t].type, TensorType) for t in (*operator.inputs, *operator.outputs) if t >= 0
    ):
        return None
    inputs = tuple(_operand(model, t) if t >= 0 else None for t in operator.inputs)
    options = operator.options.fields if operator.options is not None else {}
    return Site(index, operator.builtin, inputs, _operand(model, operator.outputs[0]), options)


def _operand(model: Model, tensor: int) -> Operand:
    spec = view(model).tensors[tensor]
    assert isinstance(spec.type, TensorType)
    dtype, quantization = CARRIER[spec.type], spec.quantization
    data = model.buffers[spec.buffer].data if spec.buffer else None
    has_scales = quantization is not None and quantization.scale is not None and len(quantization.scale)
    assert quantization is not None or not has_scales
    return Operand(
        tensor,
        dtype,
        spec.shape,
        np.asarray(quantization.scale, np.float32) if quantization and has_scales else np.empty(0, np.float32),
        int(quantization.zero_point[0]) if quantization and len(quantization.zero_point) else 0,
        _value(data, dtype, spec.shape),
    )


def _value(data: Array | None, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
    """Return a constant's codes; None if there are none, or if several share a byte."""
    if data is None or data.nbytes != dtype.itemsize * int(np.prod(shape)):
        return None
    return np.frombuffer(data.tobytes(), dtype).reshape(shape)
