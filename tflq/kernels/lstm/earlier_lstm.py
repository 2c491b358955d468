"""LSTM, kernel type BASIC on 8 bits: gemmlowp makes the product of all gates, and rounds half away at the end.

Operands and refusals: tflq/kernels/lstm/lstm.py.
Source: TensorFlow 2.14 lite/kernels/lstm.cc basic; optimized_ops.h LstmCell; cpu_backend_gemm with gemmlowp.
"""

from __future__ import annotations

from tflq.kernels.families.recurrent.lstm_basic import prepare_with
from tflq.kernels.families.recurrent.promises import floats_unclaimed
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.lstm import bidirectional_sequence_lstm, lstm, unidirectional_sequence_lstm
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with the gates requantized by the profile's own stage."""
    return prepare_with(node, arithmetic.requantize)


KERNELS = (
    *valid(
        tflite(until="tflite-2.14"),
        Kernel("LSTM", "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16", prepare, (1, 3)),
    ),
    *valid(
        tflite(until="tflite-2.14"),
        *floats_unclaimed(lstm.KERNELS, unidirectional_sequence_lstm.KERNELS, bidirectional_sequence_lstm.KERNELS),
    ),
)
