"""What is asked for: one value from which a quantized model can be made again, bit by bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tflq.ir import TensorType
from tflq.quantization.refine.methods import Refining
from tflq.quantization.search.methods import Ranging


class Mode(Enum):
    """Which integers an operator computes with."""

    INT8 = "int8"
    INT16X8 = "int16x8"
    UINT8 = "uint8"
    DYNAMIC = "dynamic"
    WEIGHTS = "weights"


@dataclass(frozen=True, slots=True)
class Types:
    """Element types of a mode: of activations (None: they stay float), weights and biases (None: it stays float)."""

    data: TensorType | None
    weights: TensorType
    bias: TensorType | None

    @property
    def per_channel(self) -> bool:
        """Whether weights have a scale for each channel, and zero points of 0."""
        return self.weights == TensorType.INT8


TYPES: dict[Mode, Types] = {
    Mode.INT8: Types(TensorType.INT8, TensorType.INT8, TensorType.INT32),
    Mode.INT16X8: Types(TensorType.INT16, TensorType.INT8, TensorType.INT64),
    Mode.UINT8: Types(TensorType.UINT8, TensorType.UINT8, TensorType.INT32),
    Mode.DYNAMIC: Types(None, TensorType.INT8, None),
    Mode.WEIGHTS: Types(None, TensorType.INT8, None),
}


@dataclass(frozen=True, slots=True)
class Methods:
    """One configuration of all methods, in the order in which they act.

    `equalize` is the strength of the equalization of channels, 0 to 1; None leaves them as they are.
    """

    equalize: float | None = None
    ranging: Ranging = field(default_factory=Ranging)
    refining: Refining = field(default_factory=Refining)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A whole order.

    `input_type` and `output_type` replace the float32 of the graph's inputs and outputs; None stands for the mode's own
    type of activations. `keep_float` names operators that stay as they are: indices, types, names of tensors that they
    make, or ranges FIRST..LAST of these. `candidates` are tried in turn.
    """

    mode: Mode = Mode.INT8
    input_type: TensorType | None = None
    output_type: TensorType | None = None
    weights_type: TensorType = TensorType.INT8  # of mode WEIGHTS: INT8 or FLOAT16
    keep_float: tuple[str, ...] = ()
    seed: int = 0
    candidates: tuple[Methods, ...] = field(default_factory=lambda: (Methods(),))
