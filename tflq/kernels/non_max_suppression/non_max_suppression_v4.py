"""NON_MAX_SUPPRESSION_V4: the boxes of highest score that do not overlap each other too much.

| operand         | shape  | types   | quantization |
|-----------------|--------|---------|--------------|
| boxes           | (N, 4) | float32 | none         |
| scores          | (N)    | float32 | none         |
| count           | scalar | int32   | none         |
| iou threshold   | scalar | float32 | none         |
| score threshold | scalar | float32 | none         |
| indices         | count  | int32   | none         |
| selected        | scalar | int32   | none         |

Boxes are (y1, x1, y2, x2), corners in any order. What is not selected is 0. With a sixth operand it is
NON_MAX_SUPPRESSION_V5.
Source: LiteRT 2.3, non_max_suppression.cc Prepare, Eval.
"""

from __future__ import annotations

from tflq.kernels.families.nms import kernels

KERNELS = kernels("NON_MAX_SUPPRESSION_V4")
