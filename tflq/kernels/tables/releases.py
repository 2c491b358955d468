"""What the resolvers of each release register: operators and versions, told by what changed from release to release.

Read from the released packages (TensorFlow 2.3.4 and 2.5.3; tflite-runtime 2.7.0 to 2.14.0; ai-edge-litert 1.0.1 to
2.0.3) by asking each for every operator and version. Element types within a version are those of 2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from tflq.ir import TensorType
from tflq.kernels.exactness import close
from tflq.kernels.kernel import Kernel
from tflq.kernels.table import KernelTable
from tflq.kernels.tables.promises import floats_are_close
from tflq.kernels.tables.registered import registered
from tflq.kernels.tables.release_2_14 import OPTIMIZED, REFERENCE, known

#: Highest versions of the optimized resolver that differ from those of the next later release; 0: not there.
_OPTIMIZED_BACK: Mapping[str, str] = {
    "2.13": "CONCATENATION:3 PACK:3 RANGE:1 SELECT:3 SELECT_V2:1 SLICE:5 STRIDED_SLICE:6",
    "2.12": "ADD:4 BATCH_TO_SPACE_ND:3 BITCAST:0 BITWISE_XOR:0 CAST:4 DEPTHWISE_CONV_2D:6 EQUAL:3 EXP:1 FLOOR_DIV:2 "
    "FLOOR_MOD:1 FULLY_CONNECTED:9 GATHER:5 GATHER_ND:3 GREATER_EQUAL:2 LESS:2 MIRROR_PAD:2 MUL:6 "
    "RIGHT_SHIFT:0 SPACE_TO_BATCH_ND:3 TOPK_V2:2",
    "2.11": "ABS:4 CONV_2D:6 FILL:3 SELECT:2 SIGN:1 TRANSPOSE:5 TRANSPOSE_CONV:3 UNIDIRECTIONAL_SEQUENCE_LSTM:3",
    "2.10": "MUL:5 SIGN:0 UNSORTED_SEGMENT_MIN:0",
    "2.9": "ATAN2:0 RELU_0_TO_1:0 UNSORTED_SEGMENT_MAX:0 UNSORTED_SEGMENT_PROD:0 UNSORTED_SEGMENT_SUM:0",
    "2.8": "ARG_MAX:2 ARG_MIN:2 CAST:3 CONV_2D:5 DYNAMIC_UPDATE_SLICE:0 GELU:1",
    "2.7": "BUCKETIZE:0 CAST:2 GELU:0 MULTINOMIAL:0 RANDOM_UNIFORM:0 TILE:2 WHERE:1",
    "2.5": "ABS:3 ADD:3 ASSIGN_VARIABLE:0 BROADCAST_ARGS:0 CAST:1 CONV_3D_TRANSPOSE:0 DEQUANTIZE:4 MUL:4 PAD:3 "
    "PADV2:3 QUANTIZE:2 RANDOM_STANDARD_NORMAL:0 READ_VARIABLE:0 REDUCE_ALL:0 REDUCE_PROD:1 STRIDED_SLICE:5 "
    "VAR_HANDLE:0",
    "2.3": "ABS:1 ADD:2 BATCH_MATMUL:2 BIDIRECTIONAL_SEQUENCE_RNN:2 BROADCAST_TO:0 CALL_ONCE:0 COMPLEX_ABS:0 "
    "CONV_2D:4 CONV_3D:0 CUMSUM:0 DEPTHWISE_CONV_2D:5 DEPTH_TO_SPACE:1 FILL:2 FULLY_CONNECTED:8 GATHER:3 "
    "GATHER_ND:2 HASHTABLE:0 HASHTABLE_FIND:0 HASHTABLE_IMPORT:0 HASHTABLE_SIZE:0 IMAG:0 LSTM:3 MEAN:2 PAD:2 "
    "PADV2:2 REAL:0 REDUCE_MAX:2 REDUCE_MIN:2 RELU:2 RELU6:2 RESIZE_BILINEAR:3 RESIZE_NEAREST_NEIGHBOR:3 "
    "REVERSE_V2:2 RFFT2D:0 RNN:2 RSQRT:1 SLICE:3 SQUARED_DIFFERENCE:1 SQUEEZE:1 STRIDED_SLICE:4 SUB:3 SVDF:3 "
    "TRANSPOSE:4 UNIDIRECTIONAL_SEQUENCE_LSTM:2 UNIDIRECTIONAL_SEQUENCE_RNN:2",
}
#: The same of the reference resolver, which 2.3's package does not offer.
_REFERENCE_BACK: Mapping[str, str] = {
    "2.13": "",
    "2.12": "ADD:4 ASSIGN_VARIABLE:0 BATCH_TO_SPACE_ND:3 BITCAST:0 BITWISE_XOR:0 CALL_ONCE:0 EQUAL:3 EXP:1 "
    "FLOOR_DIV:2 FLOOR_MOD:1 GATHER:4 GATHER_ND:3 GREATER_EQUAL:2 LESS:2 MIRROR_PAD:2 MUL:6 READ_VARIABLE:0 "
    "RIGHT_SHIFT:0 SPACE_TO_BATCH_ND:3 TOPK_V2:2 VAR_HANDLE:0",
    "2.11": "",
    "2.10": "MUL:5 SIGN:0 UNSORTED_SEGMENT_MIN:0",
    "2.9": "ATAN2:0 RELU_0_TO_1:0 UNSORTED_SEGMENT_MAX:0 UNSORTED_SEGMENT_PROD:0 UNSORTED_SEGMENT_SUM:0",
    "2.8": "CAST:3 CONV_2D:5 DYNAMIC_UPDATE_SLICE:0 GELU:1",
    "2.7": "BUCKETIZE:0 CAST:2 GELU:0 MULTINOMIAL:0 RANDOM_UNIFORM:0 WHERE:1",
    "2.5": "BROADCAST_ARGS:0 CAST:1 CONV_3D_TRANSPOSE:0 MUL:4 PAD:3 PADV2:3 RANDOM_STANDARD_NORMAL:0 REDUCE_ALL:0 "
    "REDUCE_PROD:1",
}
#: What LiteRT's releases changed against the release before, which of 1.0 is 2.14: the optimized resolver.
_OPTIMIZED_ON: Mapping[str, str] = {
    "1.0": "CAST:6 CONV_2D:8 DEQUANTIZE:6 DILATE:1 DYNAMIC_UPDATE_SLICE:2 EMBEDDING_LOOKUP:4 FULLY_CONNECTED:13 "
    "GATHER:7 GATHER_ND:5 LOG:2 REDUCE_WINDOW:1 RSQRT:3 STABLEHLO_ADD:1 STABLEHLO_COMPOSITE:1 "
    "STABLEHLO_GATHER:1 STABLEHLO_MAXIMUM:1 STABLEHLO_MINIMUM:1 STABLEHLO_MULTIPLY:1 STABLEHLO_PAD:1 "
    "STABLEHLO_REDUCE_WINDOW:1 STABLEHLO_RNG_BIT_GENERATOR:1 STABLEHLO_SCATTER:1 TRANSPOSE_CONV:5",
    "1.2": "CAST:7 DYNAMIC_UPDATE_SLICE:3 STABLEHLO_AND:1 STABLEHLO_CASE:1 STABLEHLO_SHIFT_LEFT:1 TRANSPOSE:7",
    "1.4": "DYNAMIC_UPDATE_SLICE:4 aeq.hadamard_rotation:1",
    "2.0": "PAD:5 PADV2:5 SQRT:2",
}
#: The same of the reference resolver.
_REFERENCE_ON: Mapping[str, str] = {
    "1.0": "CONV_2D:8 DILATE:1 FULLY_CONNECTED:11 GATHER_ND:5 LOG:2 REDUCE_WINDOW:1 RSQRT:3 STABLEHLO_ADD:1 "
    "STABLEHLO_GATHER:1 STABLEHLO_MAXIMUM:1 STABLEHLO_MINIMUM:1 STABLEHLO_MULTIPLY:1 STABLEHLO_PAD:1 "
    "STABLEHLO_REDUCE_WINDOW:1 STABLEHLO_RNG_BIT_GENERATOR:1 STABLEHLO_SCATTER:1 TRANSPOSE_CONV:5",
    "1.2": "STABLEHLO_COMPOSITE:1",
    "1.4": "CAST:7 DEQUANTIZE:6 QUANTIZE:3 SIGN:2",
    "2.0": "CUMSUM:1 RFFT2D:1 SQRT:2",
}


@cache
def highest(release: str, optimized: bool) -> Mapping[str, int]:
    """The highest version of every operator that a release's resolver has."""
    versions = dict(OPTIMIZED if optimized else REFERENCE)
    both = (_OPTIMIZED_BACK, _OPTIMIZED_ON) if optimized else (_REFERENCE_BACK, _REFERENCE_ON)
    steps = next(steps for steps in both if release in steps)
    for step, changes in steps.items():
        versions.update((op, int(version)) for op, _, version in (word.partition(":") for word in changes.split()))
        if step == release:
            break
    return {op: version for op, version in versions.items() if version}


def registered_in(table: KernelTable, release: str, optimized: bool) -> KernelTable:
    """Return what a resolver of a release has of a table."""
    promised = table if release in _FLOATS_ALIKE else table.each(floats_are_close(_FLOATS, _OTHERWISE))
    return registered(promised, highest(release, optimized), _known_types(release))


def _known_types(release: str) -> Callable[[Kernel], Kernel | None]:
    """What makes rows of a release's types of those of 2.14, or of LiteRT 2.3."""
    if release not in _OPTIMIZED_BACK:
        return _known_in_litert
    return known if release == "2.13" else _known_in_2_12


#: The releases whose floats are those of the release after them.
_FLOATS_ALIKE = ("2.13",)
_FLOATS = close("floats of this release were not modelled")
#: Operators of one rounding at most whose floats some release makes otherwise: NaN, subnormal numbers, zeros.
_OTHERWISE = ("ADD", "DIV", "MUL", "REDUCE_MAX", "REDUCE_MIN", "RELU6", "SIGN", "SQRT", "SUB")


#: Types that an operator takes from LiteRT 2.1 on; versions say nothing of them.
_AFTER_2_0 = {
    "EMBEDDING_LOOKUP": (TensorType.FLOAT16, TensorType.INT4),
    "GREATER": (TensorType.INT16,),
    "LESS_EQUAL": (TensorType.INT16,),
    "NOT_EQUAL": (TensorType.INT16,),
}
#: Comparisons whose later version is that of 16 bits, which every version of 2.14's rows takes.
_NO_INT16_IN_2_12 = ("EQUAL", "GREATER_EQUAL", "LESS")


def _known_in_2_12(row: Kernel) -> Kernel | None:
    """Return the row without the element types that came after 2.12."""
    left = known(row)
    if left is None or row.op not in _NO_INT16_IN_2_12:
        return left
    signature = left.signature.without(TensorType.INT16)
    return None if signature is None else left.taking(signature)


def _known_in_litert(row: Kernel) -> Kernel | None:
    """The row without what came after LiteRT 2.0, or was read wrongly in 1.0: rows of an odd number of int4."""
    if row.op not in _AFTER_2_0:
        return row
    signature = row.signature.without(*_AFTER_2_0[row.op])
    return None if signature is None else row.taking(signature)
