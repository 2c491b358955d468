"""UNSORTED_SEGMENT_SUM: the sums of the rows that share an id.

| operand      | shape                      | types          |
|--------------|----------------------------|----------------|
| x            | ids..., row...             | float32, int32 |
| ids          | the first dimensions of x  | int32          |
| num_segments | one number                 | int32          |
| y            | num_segments, row...       | as x           |

Segments without rows are 0; int32 wraps. Rows with a negative id are left out.
Source: LiteRT 2.3, unsorted_segment.cc EvalSum; reference_ops::UnsortedSegmentRef.
"""

from __future__ import annotations

from tflq.kernels.families.accumulation import add
from tflq.kernels.families.segments import unsorted_kernels

KERNELS = unsorted_kernels("UNSORTED_SEGMENT_SUM", add, lambda dtype: dtype.type(0))
