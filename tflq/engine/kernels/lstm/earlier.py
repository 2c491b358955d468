"""LSTMs of earlier releases, in both resolvers. Operands and refusals: tflq/engine/kernels/lstm/reference.py.

LSTM, kernel type BASIC on 8 bits: up to 2.14 gemmlowp makes the product of all gates and rounds half away at the end.
The matrix-vector kernel makes that of one row on AArch64, where ruy makes the others after 2.14, and in builds with the
NEON code by way of SSE: up to 2.12, and in both resolvers of r1.15.
LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM on int8 up to 2.11: the hidden state's zero point is subtracted, not added.
Cells with 8-bit gates were not examined: their rows are today's. Float results up to 2.14 are not claimed.
Source: LiteRT 2.3, TensorFlow r1.15 to 2.14 lstm.cc basic; optimized_ops.h LstmCell; cpu_backend_gemm.h Gemm.
TensorFlow 2.11 portable_tensor_utils.cc PortableCwiseMul.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels.families.matrix_vector import Scaling, gemmlowp, ruy
from tflq.engine.kernels.families.recurrent import lstm_integer
from tflq.engine.kernels.families.recurrent.lstm_basic import WEIGHTS, prepare_with
from tflq.engine.kernels.families.recurrent.promises import floats_unclaimed
from tflq.engine.kernels.families.vector_blocks import Prepare
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.lstm import bidirectional, reference
from tflq.engine.kernels.validity import tf1, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.model.ir import TensorType


def prepare_half_away(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with the gates requantized by the profile's own stage."""
    return prepare_with(node, arithmetic.requantize)


def prepare_negated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare LSTM like later releases, with the other sign."""
    return _negate(reference.prepare_step(node, arithmetic))


def prepare_negated_sequence(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare UNIDIRECTIONAL_SEQUENCE_LSTM like later releases, with the other sign."""
    return _negate(reference.prepare_sequence(node, arithmetic))


def _negate(later: Prepared) -> Prepared:
    """Negate the zero point; if a projection follows, later releases do the same."""
    data = later.data
    if not isinstance(data, lstm_integer.OpData) or data.projection is not None:
        return later
    return replace(later, data=replace(data, hidden_zero_point=ZeroPoint(-data.hidden_zero_point)))


def by(scaling: Scaling) -> Prepare:
    """Return a prepare that scales gates by the shape of their product."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        weights, x = node.input(WEIGHTS), node.input(0)
        node.check(len(weights.shape) == 2 and len(x.shape) >= 1, "number of dimensions", weights, expected=2)
        return prepare_with(node, scaling(arithmetic, weights.shape[0], weights.shape[1], x.shape[0]))

    return prepare


def _basic(prepare: Prepare, last_version: int) -> Kernel:
    types = "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16"
    return Kernel("LSTM", types, prepare, (1, last_version))


_BY_GEMMLOWP = by(gemmlowp)
KERNELS = (
    *valid(tflite("litert-1.0", cpu="arm64"), _basic(by(ruy), 4)),
    *valid(
        tflite(until="tflite-2.14"),
        _basic(prepare_half_away, 3),
        *floats_unclaimed(reference.STEP, reference.SEQUENCE, bidirectional.ROWS),
    ),
    *valid(tflite(until="tflite-2.14", cpu="arm64"), _basic(_BY_GEMMLOWP, 4)),
    *valid(tflite(until="tflite-2.12", cpu="x86-64", vectors=True), _basic(_BY_GEMMLOWP, 3)),
    *valid(
        tflite(until="tflite-2.11"),
        *(
            replace(row, prepare=prepare_negated if row.op == "LSTM" else prepare_negated_sequence)
            for row in (*reference.STEP, *reference.SEQUENCE)
            if row.signature.starts_with(TensorType.INT8)
        ),
    ),
    *valid(tf1(), _basic(_BY_GEMMLOWP, 3)),
)
