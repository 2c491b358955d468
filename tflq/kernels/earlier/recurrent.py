"""Recurrent operators on floats up to 2.14: today's kernels, whose bits are not claimed for those releases."""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.exactness import close
from tflq.kernels.reference import (
    bidirectional_sequence_lstm,
    bidirectional_sequence_rnn,
    lstm,
    rnn,
    svdf,
    unidirectional_sequence_lstm,
    unidirectional_sequence_rnn,
)

UNCLAIMED = close("2.14 multiplies matrices by vectors of floats in another order")

FILES = (
    bidirectional_sequence_lstm,
    bidirectional_sequence_rnn,
    lstm,
    rnn,
    svdf,
    unidirectional_sequence_lstm,
    unidirectional_sequence_rnn,
)

KERNELS = tuple(
    replace(row, exactness=UNCLAIMED)
    for file in FILES
    for row in file.KERNELS
    if row.signature.starts_with(TensorType.FLOAT32)
)
