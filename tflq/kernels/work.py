"""How much an operator computes, from shapes and options alone.

Sums of products count their multiply-accumulates: the innermost passes of the source's loops, what padding leaves out
included. Other operators count passes of their innermost loop where that is more than the elements they read and write.
Source: the loops of LiteRT 2.3's reference kernels, named row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from tflq.kernels.kernel import Array, Node, Shape


@dataclass(frozen=True, slots=True)
class Sizes:
    """Shapes and options of one operator. `values` are those of operands that decide shapes, None where not known."""

    inputs: Sequence[Shape | None]  # None where absent
    outputs: Sequence[Shape]
    options: Mapping[str, Any]
    values: Sequence[Array | None] = ()

    @classmethod
    def of(cls, node: Node, shapes: Sequence[Shape | None]) -> Sizes:
        """Those of a prepared node whose outputs have these shapes; an output of unknown shape counts nothing."""
        return cls(
            inputs=tuple([None if operand is None else operand.shape for operand in node.inputs]),
            outputs=tuple([(0,) if shape is None else shape for shape in shapes]),
            options=node.options.fields,
            values=tuple([None if operand is None else operand.value for operand in node.inputs]),
        )

    def input(self, position: int) -> Shape:
        """The shape of an input; (0,) where it is absent."""
        shape = self.inputs[position] if position < len(self.inputs) else None
        return (0,) if shape is None else shape

    @property
    def output(self) -> Shape:
        """The shape of the first output; (0,) where there is none."""
        return self.outputs[0] if self.outputs else (0,)

    def elements(self, *positions: int) -> int:
        """Elements of the inputs at `positions`, added up."""
        return sum(prod(self.input(position)) for position in positions)

    def option(self, name: str) -> int:
        """An option that is an integer; 0 where there is none."""
        return int(self.options.get(name) or 0)


Count = Callable[[Sizes], int]


def _convolution(sizes: Sizes) -> int:
    """w is (O, KH, KW, C / groups)."""
    return prod(sizes.output) * prod(sizes.input(1)[1:])


def _convolution_3d(sizes: Sizes) -> int:
    """w is (KD, KH, KW, C, O)."""
    return prod(sizes.output) * prod(sizes.input(1)[:-1])


def _depthwise(sizes: Sizes) -> int:
    """w is (1, KH, KW, O)."""
    return prod(sizes.output) * prod(sizes.input(1)[:-1])


def _transposed(sizes: Sizes) -> int:
    """Every element of x (operand 2) meets w (O, KH, KW, C) without its C."""
    return sizes.elements(2) * prod(sizes.input(1)[:-1])


def _transposed_3d(sizes: Sizes) -> int:
    """Every element of x (operand 2) meets w (KD, KH, KW, O, C) without its C."""
    return sizes.elements(2) * prod(sizes.input(1)[:-1])


def _dense(sizes: Sizes) -> int:
    """w is (O, K)."""
    return prod(sizes.output) * sizes.input(1)[-1] if sizes.input(1) else 0


def _matrices(sizes: Sizes) -> int:
    """x is (..., M, K), or (..., K, M) with the option adj_x."""
    x = sizes.input(0)
    return prod(sizes.output) * x[-2 if sizes.option("adj_x") else -1] if len(x) > 1 else 0


def _recurrent(*weights: int) -> Count:
    """Every matrix at these positions meets each row of x: each batch at each step."""
    return lambda sizes: prod(sizes.input(0)[:-1]) * sizes.elements(*weights)


def _lstm(sizes: Sizes) -> int:
    """Kernel type BASIC, of five operands, has one matrix; FULL has those of UNIDIRECTIONAL_SEQUENCE_LSTM."""
    return (_recurrent(2) if len(sizes.inputs) == 5 else _recurrent(*range(1, 9), 16))(sizes)


def _svdf(sizes: Sizes) -> int:
    """The feature weights meet every row of x, the time weights every row of the state."""
    return sizes.input(0)[0] * sizes.elements(1, 2) if sizes.input(0) else 0


def _weighted_rows(sizes: Sizes) -> int:
    """Each of the entries takes a row of the table, operand 4."""
    return sizes.elements(0) * prod(sizes.input(4)[1:])


#: Operators that are sums of products.
_MULTIPLY_ACCUMULATES: Mapping[str, Count] = MappingProxyType(
    {
        "BATCH_MATMUL": _matrices,  # batch_matmul.h BatchMatMul
        "BIDIRECTIONAL_SEQUENCE_LSTM": _recurrent(*range(1, 9), 16, *range(18, 26), 33, *range(40, 48)),  # lstm_eval.cc
        "BIDIRECTIONAL_SEQUENCE_RNN": _recurrent(1, 2, 5, 6, 10, 11),  # kernel_utils.cc RnnBatchStep
        "CONV_2D": _convolution,  # conv.h ConvPerChannel
        "CONV_3D": _convolution_3d,  # conv3d.h Conv3D
        "CONV_3D_TRANSPOSE": _transposed_3d,  # conv3d_transpose.h Conv3DTranspose
        "DEPTHWISE_CONV_2D": _depthwise,  # depthwise_conv.h DepthwiseConvPerChannel
        "EMBEDDING_LOOKUP_SPARSE": _weighted_rows,  # embedding_lookup_sparse.cc Eval
        "FULLY_CONNECTED": _dense,  # fully_connected.h FullyConnected
        "LSTM": _lstm,  # lstm_eval.cc LstmStepFloat; optimized_ops.h LstmCell
        "RNN": _recurrent(1, 2),  # kernel_utils.cc RnnBatchStep
        "SVDF": _svdf,  # svdf.h EvalFloatSVDF, ApplyTimeWeightsBiasAndActivation
        "TRANSPOSE_CONV": _transposed,  # transpose_conv.h TransposeConv
        "UNIDIRECTIONAL_SEQUENCE_LSTM": _recurrent(*range(1, 9), 16),  # lstm_eval.cc LstmStepFloat
        "UNIDIRECTIONAL_SEQUENCE_RNN": _recurrent(1, 2),  # kernel_utils.cc RnnBatchStep
    }
)


def _pool(sizes: Sizes) -> int:
    """A window for each output, as far as it fits into the image."""
    image = sizes.input(0)[1:3]
    window = (sizes.option("filter_height"), sizes.option("filter_width"))
    return prod(sizes.output) * prod(min(a, b) for a, b in zip(image, window, strict=False))


def _windows(sizes: Sizes) -> int:
    """The window's sizes are operand 2."""
    window = sizes.values[2] if len(sizes.values) > 2 else None
    return prod(sizes.output) * (1 if window is None else prod(map(int, window.ravel())))


def _stablehlo_windows(sizes: Sizes) -> int:
    window = sizes.options.get("window_dimensions")
    return prod(sizes.output) * (1 if window is None else prod(map(int, window)))


def _neighbours(sizes: Sizes) -> int:
    """Each output sees `radius` channels to either side."""
    return prod(sizes.output) * min(2 * sizes.option("radius") + 1, sizes.output[-1]) if sizes.output else 0


def _sorted(sizes: Sizes) -> int:
    """Comparisons of a sort."""
    count = sizes.elements(0)
    return count * count.bit_length()


def _transform(sizes: Sizes) -> int:
    """Butterflies of a Fourier transform that gives this output."""
    count = prod(sizes.output)
    return 2 * count * count.bit_length()


def _overlaps(sizes: Sizes) -> int:
    """Every box is held against every box selected before it."""
    return prod(sizes.input(0)[:1]) * prod(sizes.output)


def _detections(sizes: Sizes) -> int:
    """Work of one suppression for each class: encodings (1, boxes, 4), scores (1, boxes, classes)."""
    return sizes.elements(1) * max(prod(sizes.output) // 4, 1)


def _hashes(sizes: Sizes) -> int:
    """Each seed is hashed with each row of x."""
    return sizes.elements(0) * sizes.elements(1)


#: Operators that take more passes than they read and write elements.
_PASSES: Mapping[str, Count] = MappingProxyType(
    {
        "AudioSpectrogram": _transform,  # spectrogram.cc ProcessCoreFFT
        "AVERAGE_POOL_2D": _pool,  # pooling.h AveragePool
        "L2_POOL_2D": _pool,  # pooling.h L2Pool
        "LOCAL_RESPONSE_NORMALIZATION": _neighbours,  # reference_ops.h LocalResponseNormalization
        "LSH_PROJECTION": _hashes,  # lsh_projection.cc RunningSignBit
        "MAX_POOL_2D": _pool,  # pooling.h MaxPool
        "NON_MAX_SUPPRESSION_V4": _overlaps,  # non_max_suppression.h NonMaxSuppression
        "NON_MAX_SUPPRESSION_V5": _overlaps,
        "REDUCE_WINDOW": _windows,  # stablehlo_reduce_window.cc StridedReduce
        "RFFT2D": _transform,  # rfft2d.cc Rfft2dImpl
        "STABLEHLO_REDUCE_WINDOW": _stablehlo_windows,
        "TFLite_Detection_PostProcess": _detections,  # detection_postprocess.cc NonMaxSuppressionMultiClassHelper
        "TOPK_V2": _sorted,  # topk_v2.cc TopContainer
        "UNIQUE": _sorted,  # unique.cc EvalImpl
    }
)


def multiply_accumulates(op: str, sizes: Sizes) -> int:
    """How many multiply-accumulates the operator takes; 0 for operators that are no sums of products."""
    count = _MULTIPLY_ACCUMULATES.get(op)
    return 0 if count is None else max(0, count(sizes))


def work_of(op: str, sizes: Sizes) -> int:
    """Passes of the operator's innermost loop, and at least one for each element that it reads or writes."""
    moved = sizes.elements(*range(len(sizes.inputs))) + sum(map(prod, sizes.outputs))
    count = _MULTIPLY_ACCUMULATES.get(op) or _PASSES.get(op)
    return moved if count is None else max(moved, count(sizes))
