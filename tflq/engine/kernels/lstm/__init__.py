"""LSTM and the LSTMs over sequences: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import formulas

FORMULAS = (
    *formulas(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "int8 with gates of 16 bits, no projection; LSTM alike",
        "portable_tensor_utils.cc PortableCwiseMul",
        (when.tflite(until="tflite-2.11"), "the hidden state's zero point is subtracted"),
        (when.tflite("tflite-2.12"), "it is added"),
    ),
    *formulas(
        "LSTM",
        "uint8, kernel type BASIC",
        "lstm.cc basic",
        (when.tflite(vectors=True), "one row by the vector kernel"),
        (when.tflite(vectors=False), "gemmlowp"),
    ),
)
