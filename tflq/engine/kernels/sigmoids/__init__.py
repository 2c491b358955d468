"""LOGISTIC and TANH: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = (
    *formulas(
        "LOGISTIC",
        "int16",
        "activations.cc SigmoidPrepare; reference_integer_ops::Logistic",
        (
            when.opt(until="tf-2.3"),
            "scales are cut off to whole multiples of 2**-12; beyond its end the table begins again",
        ),
        (when.opt("tf-2.5"), "any scale; saturates"),
    ),
    *formulas(
        "TANH",
        "int16",
        "activations.cc TanhPrepare; reference_integer_ops::Tanh",
        (
            when.opt(until="tf-2.3"),
            "scales are cut off to whole multiples of 2**-12, doubled where they are nearest to 2**-11",
        ),
        (when.opt("tf-2.5"), "any scale"),
    ),
)
FAULTS = (
    Fault(
        "LOGISTIC",
        ("int16 -> int16",),
        "2.3",
        "scales that are no power of two are cut off to whole multiples of 2**-12; inputs beyond the table are refused",
        "activations.cc SigmoidPrepare; reference_integer_ops::Logistic",
        (when.opt(until="tf-2.3"),),
    ),
    Fault(
        "TANH",
        ("int16 -> int16",),
        "2.3",
        "scales that are no power of two are cut off to whole multiples of 2**-12, and doubled near 2**-11",
        "activations.cc TanhPrepare; reference_integer_ops::Tanh",
        (when.opt(until="tf-2.3"),),
    ),
)
