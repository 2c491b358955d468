"""UNIDIRECTIONAL_SEQUENCE_LSTM of CMSIS-NN: the second of two addends is not saturated before their sum is.

Operands: tflq/kernels/lstm/micro_unidirectional_sequence_lstm.py.
Bits differ only where a product alone exceeds 16 bits.
Source: CMSIS-NN 99f736a, arm_nn_lstm_calculate_gate_s8_s16, arm_nn_vec_mat_mul_result_acc_s8_s16,
arm_nn_vec_mat_mul_result_acc_s16, arm_elementwise_mul_acc_s16.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.kernel import Node, Prepared, valid
from tflq.kernels.lstm import micro_unidirectional_sequence_lstm as micro
from tflq.kernels.validity import cmsis_nn
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import OutputPipeline, type_range

_INT32 = np.dtype(np.int32)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like TensorFlow Lite Micro; recurrent products and the input gate's share stay in 32 bits."""
    prepared = micro.prepare(node, arithmetic)
    data: micro.OpData = prepared.data
    enter, forget, cell, leave = map(_gate, data.gates)
    ours = replace(data, gates=(enter, forget, cell, leave), enter=_unsaturated(data.enter))
    return replace(prepared, data=ours)


def _gate(gate: micro.Gate) -> micro.Gate:
    from_input, recurrent = gate.pipelines
    return replace(gate, pipelines=(from_input, _unsaturated(recurrent)))


def _unsaturated(pipeline: OutputPipeline) -> OutputPipeline:
    return replace(pipeline, clamp=type_range(_INT32), dtype=_INT32)


KERNELS = valid(cmsis_nn(), *(replace(row, prepare=prepare) for row in micro.KERNELS if not row.signature.is_float))
