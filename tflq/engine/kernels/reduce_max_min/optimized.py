"""REDUCE_MAX and REDUCE_MIN of float32 by the optimized kernels: of equal elements the last counts, and NaN stays until
the next element. Operands and options: tflq/engine/kernels/reduce_max_min/reference.py.

Observed in tflite-runtime 2.14 and LiteRT 1.0 to 2.3 on x86-64 with zeros of both signs and NaN; earlier releases and
AArch64 were not asked and keep the reference's rule.
Source: LiteRT 2.3, reduce.cc EvalType.
"""

from __future__ import annotations

from tflq.engine.kernels.families.reduction import fold_last_largest, fold_last_smallest, highest, kernels, lowest
from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.validity import opt

KERNELS = valid(
    opt("tflite-2.14", cpu="x86-64"),
    *kernels("REDUCE_MAX", fold_last_largest, lowest, ("float32",), (1, 3)),
    *kernels("REDUCE_MIN", fold_last_smallest, highest, ("float32",), (1, 3)),
)
