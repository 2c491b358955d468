"""NON_MAX_SUPPRESSION_V4, _V5: the boxes of highest score that do not overlap each other too much.

| operand         | shape        | types   |
|-----------------|--------------|---------|
| boxes           | (N, 4)       | float32 |
| scores          | (N)          | float32 |
| count           | scalar       | int32   |
| iou threshold   | scalar       | float32 |
| score threshold | scalar       | float32 |
| V5: sigma       | scalar, >= 0 | float32 |
| indices         | count        | int32   |
| V5: scores      | count        | float32 |
| selected        | scalar       | int32   |

Boxes are (y1, x1, y2, x2), corners in any order. What is not selected is 0. The number of operands decides between V4
and V5. V5 multiplies a score by exp(-iou**2 / (2 * sigma)) for each selected box that it overlaps, unless sigma is 0.
Exactness: V5 is exact on the same libm (expf).
Source: LiteRT 2.3, non_max_suppression.cc Prepare, Eval.
"""

from __future__ import annotations

from tflq.engine.kernels.families.nms import kernels

KERNELS = (*kernels("NON_MAX_SUPPRESSION_V4"), *kernels("NON_MAX_SUPPRESSION_V5"))
