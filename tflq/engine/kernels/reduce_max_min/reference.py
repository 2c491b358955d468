"""REDUCE_MAX, REDUCE_MIN: the largest or smallest of x over the axes.

| operand | shape                | types                       | quantization                    |
|---------|----------------------|-----------------------------|---------------------------------|
| x       | any                  | float32, int32, int64, bool | none                            |
|         |                      | uint8, int8, int16          | per tensor; int16: zero point 0 |
| axes    | any                  | int32                       |                                 |
| y       | x without, or with 1 | as x                        | x's                             |

Options: keep_dims. NaN is skipped, unless it is the first of all elements and every axis is reduced.
Source: LiteRT 2.3, reduce.cc EvalGeneric, ReduceAllDims; reference/reduce.h ReduceGeneric.
"""

from __future__ import annotations

from tflq.engine.kernels.families.reduction import fold_largest, fold_smallest, highest, kernels, lowest
from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.validity import spec, tflite
from tflq.model.ir import TensorType

REDUCE_MAX = kernels(
    "REDUCE_MAX", fold_largest, lowest, ("float32", "int32", "int64", "uint8", "int8", "int16", "bool"), (1, 3)
)

REDUCE_MIN = kernels(
    "REDUCE_MIN", fold_smallest, highest, ("float32", "int32", "int64", "uint8", "int8", "int16", "bool"), (1, 3)
)

_BOOL = tuple(row for row in (*REDUCE_MAX, *REDUCE_MIN) if row.signature.makes(TensorType.BOOL))
KERNELS = (
    *(row for row in (*REDUCE_MAX, *REDUCE_MIN) if row not in _BOOL),
    *valid(tflite("litert-2.3"), *_BOOL),
    *valid(spec(), *_BOOL),
)
