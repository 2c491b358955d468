"""LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM on int8 up to 2.11: the hidden state's zero point is subtracted, not added.

Operands and refusals: tflq/kernels/reference/{lstm,unidirectional_sequence_lstm}.py.
Source: TensorFlow 2.11 lite/kernels/internal/reference/portable_tensor_utils.cc PortableCwiseMul. Of the cells with
8-bit gates nothing is said: their rows are today's.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.families.recurrent import lstm_integer
from tflq.kernels.kernel import Node, Prepared, valid
from tflq.kernels.lstm import lstm, unidirectional_sequence_lstm
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare LSTM like later releases, with the other sign."""
    return _negated(lstm.prepare(node, arithmetic))


def prepare_sequence(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare UNIDIRECTIONAL_SEQUENCE_LSTM like later releases, with the other sign."""
    return _negated(unidirectional_sequence_lstm.prepare(node, arithmetic))


def _negated(later: Prepared) -> Prepared:
    """The zero point is negated; where a projection follows, later releases do the same."""
    data = later.data
    if not isinstance(data, lstm_integer.OpData) or data.projection is not None:
        return later
    return replace(later, data=replace(data, hidden_zero_point=ZeroPoint(-data.hidden_zero_point)))


KERNELS = valid(
    tflite(until="tflite-2.11"),
    *(
        replace(row, prepare=function)
        for file, function in ((lstm, prepare), (unidirectional_sequence_lstm, prepare_sequence))
        for row in file.KERNELS
        if row.signature.starts_with(TensorType.INT8)
    ),
)
