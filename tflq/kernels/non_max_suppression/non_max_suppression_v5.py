"""NON_MAX_SUPPRESSION_V5: as NON_MAX_SUPPRESSION_V4, but overlapping boxes may lose score instead.

| operand         | shape       | types   | quantization |
|-----------------|-------------|---------|--------------|
| ...             | as of NON_MAX_SUPPRESSION_V4           |
| sigma           | scalar, >= 0| float32 | none         |
| indices         | count       | int32   | none         |
| selected scores | count       | float32 | none         |
| selected        | scalar      | int32   | none         |

A score is multiplied by exp(-iou**2 / (2 * sigma)) for each selected box it overlaps; sigma 0 means that none is.
Without the sixth operand it is NON_MAX_SUPPRESSION_V4.
Exactness: exact on the same libm (expf).
Source: LiteRT 2.3, non_max_suppression.cc Prepare, Eval.
"""

from __future__ import annotations

from tflq.kernels.families.nms import kernels

KERNELS = kernels("NON_MAX_SUPPRESSION_V5")
