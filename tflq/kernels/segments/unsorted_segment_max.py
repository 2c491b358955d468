"""UNSORTED_SEGMENT_MAX: the largest elements of the rows that share an id.

| operand      | shape                      | types          |
|--------------|----------------------------|----------------|
| x            | ids..., row...             | float32, int32 |
| ids          | the first dimensions of x  | int32          |
| num_segments | one number                 | int32          |
| y            | num_segments, row...       | as x           |

Segments without rows hold the lowest finite number. A NaN never wins. Rows with a negative id are left out.
Source: LiteRT 2.3, unsorted_segment.cc EvalMax; reference_ops::UnsortedSegmentRef.
"""

from __future__ import annotations

from tflq.kernels.families.accumulation import keep_larger
from tflq.kernels.families.reduction import lowest
from tflq.kernels.families.segments import unsorted_kernels

KERNELS = unsorted_kernels("UNSORTED_SEGMENT_MAX", keep_larger, lowest)
