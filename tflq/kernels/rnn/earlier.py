"""RNNs of floats up to 2.14: results are not claimed."""

from __future__ import annotations

from tflq.kernels.families.recurrent.promises import floats_unclaimed
from tflq.kernels.kernel import valid
from tflq.kernels.rnn import bidirectional_sequence_rnn, rnn, unidirectional_sequence_rnn
from tflq.kernels.validity import tflite

KERNELS = valid(
    tflite(until="tflite-2.14"),
    *floats_unclaimed(rnn.KERNELS, unidirectional_sequence_rnn.KERNELS, bidirectional_sequence_rnn.KERNELS),
)
