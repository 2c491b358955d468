"""FULLY_CONNECTED: rows of the input times a weight row per output unit, plus bias, clamped.

| operand | shape                | types                                   | quantization                             |
|---------|----------------------|-----------------------------------------|------------------------------------------|
| x       | any, >= B * K values | float32, uint8, int8, int16             | per tensor; int16: zero point 0          |
| w       | O, K                 | float32, uint8, int8, int4, int2, int16 | per tensor; signed: or along O           |
| bias    | O, optional          | float32, int32, int64                   | a per-tensor scale is checked            |
| y       | B, O, or x's and O   | as x; int16 for uint8 too               | per tensor; int16: zero point 0          |

Options: keep_num_dims, fused activation, quantized_bias_type (16-bit activations).
Weights of 2 and 4 bits have zero point 0; zero points per unit are ignored, and so is x beyond the last whole row.
Other weights: tflq/engine/kernels/fully_connected/hybrid.py, shuffled.py, sparse.py.
Up to LiteRT 1.0, packed weights of 16-bit and float activations are refused. Up to 2.14, 16-bit activations without a
bias have sums of 32 bits, scaled as such; hybrid results are not claimed. Up to 2.9, several weight scales read as 0,
so that the output is its zero point. Outputs of more than two dimensions are not written, and refused: those of 16 bits
up to 2.7, and of several weight scales up to 1.0 (16 bits, and 8 bits by the reference kernels).
Source: LiteRT 2.3, fully_connected.cc PrepareImpl, EvalQuantized; reference/fully_connected.h FullyConnected;
reference/integer_ops/fully_connected.h FullyConnected, FullyConnectedPerChannel (those that take scales).
TensorFlow 2.14 fully_connected.cc EvalQuantized; reference/integer_ops/fully_connected.h FullyConnectedPerChannel.
TensorFlow 2.9 core/subgraph.cc GetLegacyQuantization; fully_connected.cc PrepareImpl.
TensorFlow 2.7 reference/integer_ops/fully_connected.h FullyConnected (int16).
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels.families.four_bits import refuse_packed
from tflq.engine.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.engine.kernels.families.legacy_scales import Prepare, one_scale, only_one_scale
from tflq.engine.kernels.fully_connected import dense, hybrid, shuffled, sparse
from tflq.engine.kernels.fully_connected.dense import prepare_quantized
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, promising, valid
from tflq.engine.kernels.validity import ref, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like today's kernel for a model without a bias that declares an int32 bias type."""
    if node.optional(2) is not None:
        return prepare_quantized(node, arithmetic)
    fields = {**node.options.fields, "quantized_bias_type": int(TensorType.INT32)}
    return prepare_quantized(replace(node, options=replace(node.options, fields=fields)), arithmetic)


_PACKED = (
    Kernel("FULLY_CONNECTED", "int16 int4 int32|int64? -> int16", refuse_packed),
    Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", refuse_packed),
)


def flat(prepare: Prepare, *, by_channel: bool = False) -> Prepare:
    """Return `prepare`, which refuses outputs of more than two dimensions: the loops take the first two for rows and
    units. `by_channel`: only those of weights with several scales.
    """

    def prepare_flat(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared, q = prepare(node, arithmetic), node.input(1).quantization
        shape = prepared.shapes[0]
        if shape is not None and len(shape) > 2 and not (by_channel and (q is None or len(q.scale) == 1)):
            raise UndefinedResultError(node.op, "outputs of more than two dimensions are not written")
        return prepared

    return prepare_flat


def four_bits(prepare: Prepare) -> Kernel:
    """Return the row of 4-bit weights without scales by channel. Source: TensorFlow 2.14, LiteRT 1.0 PrepareImpl."""
    return Kernel("FULLY_CONNECTED", "int8 int4 int32? -> int8", only_one_scale(prepare), (1, 14))


KERNELS = (
    *dense.ROWS,
    *hybrid.ROWS,
    *shuffled.ROWS,
    *sparse.ROWS,
    *valid(tflite("tflite-2.13", "litert-1.0"), four_bits(prepare_quantized)),
    *valid(
        tflite(until="tflite-2.14"),
        *_PACKED,
        *promising(UNCLAIMED_2_14, (replace(row, prepare=one_scale(row.prepare)) for row in hybrid.ROWS)),
    ),
    *valid(tflite("litert-1.0", "litert-1.0"), *_PACKED),
    *valid(
        ref("tflite-2.11", "litert-1.0"),
        Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", flat(prepare_quantized, by_channel=True), (1, 14)),
        Kernel(
            "FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", flat(prepare_quantized, by_channel=True), (1, 14)
        ),
    ),
    *valid(
        ref(until="tflite-2.14"),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", flat(prepare_int16, by_channel=True), (1, 10)),
    ),
    *valid(
        tflite(until="tflite-2.9"),
        Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", one_scale(prepare_quantized), (1, 9)),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", one_scale(prepare_int16), (1, 9)),
    ),
    *valid(
        tflite(until="tflite-2.7"),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", flat(one_scale(prepare_int16)), (1, 9)),
    ),
)
