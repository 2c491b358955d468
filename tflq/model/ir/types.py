"""Element types of tensors.

Source: LiteRT `tflite/converter/schema/schema.fbs`, enum TensorType.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class TensorType(IntEnum):
    """Element type of a tensor, with the schema's numbers."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22

    @property
    def label(self) -> str:
        """Lower-case name, as in kernel signatures and reports: `int8`."""
        return self.name.lower()


#: dtype of the arrays for a tensor of that type. Sub-byte integers are unpacked to one element per byte; bfloat16 and
#: float8 are raw bits; strings are objects (bytes).
CARRIER: dict[TensorType, np.dtype[np.generic]] = {
    TensorType.FLOAT32: np.dtype(np.float32),
    TensorType.FLOAT16: np.dtype(np.float16),
    TensorType.INT32: np.dtype(np.int32),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.INT64: np.dtype(np.int64),
    TensorType.STRING: np.dtype(object),
    TensorType.BOOL: np.dtype(np.bool_),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.COMPLEX64: np.dtype(np.complex64),
    TensorType.INT8: np.dtype(np.int8),
    TensorType.FLOAT64: np.dtype(np.float64),
    TensorType.COMPLEX128: np.dtype(np.complex128),
    TensorType.UINT64: np.dtype(np.uint64),
    TensorType.RESOURCE: np.dtype(object),
    TensorType.VARIANT: np.dtype(object),
    TensorType.UINT32: np.dtype(np.uint32),
    TensorType.UINT16: np.dtype(np.uint16),
    TensorType.INT4: np.dtype(np.int8),
    TensorType.BFLOAT16: np.dtype(np.uint16),
    TensorType.INT2: np.dtype(np.int8),
    TensorType.UINT4: np.dtype(np.uint8),
    TensorType.FLOAT8_E4M3FN: np.dtype(np.uint8),
    TensorType.FLOAT8_E5M2: np.dtype(np.uint8),
}

#: Bits of one stored element, for types that a buffer holds as a plain array.
STORED_BITS: dict[TensorType, int] = {
    **{t: 8 * d.itemsize for t, d in CARRIER.items() if d != np.dtype(object)},
    TensorType.INT4: 4,
    TensorType.INT2: 2,
    TensorType.UINT4: 4,
}
