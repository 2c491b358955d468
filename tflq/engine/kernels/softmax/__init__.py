"""LOG_SOFTMAX and SOFTMAX: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = (
    *formulas(
        "LOG_SOFTMAX",
        "int8",
        "activations.cc LogSoftmaxEval",
        (when.opt(until="tf-2.3"), "gemmlowp's fixed point"),
        (
            when.opt("tf-2.5", "tf-2.5"),
            "a float32 table of exps; codes more than 127 below their row's largest are looked up beside it",
        ),
        (when.opt("tflite-2.7"), "a float32 table of exps"),
    ),
    *formulas(
        "LOG_SOFTMAX",
        "uint8, int8",
        "activations.cc LogSoftmaxPrepare",
        (when.ref(until="tf-2.5"), "the lowest code for every input: constants are never prepared"),
        (when.ref("tflite-2.7"), "gemmlowp's fixed point"),
    ),
    *formulas(
        "SOFTMAX",
        "uint8, int8, also to int16",
        "register_ref.cc; activations.cc SoftmaxEval",
        (when.ref(until="tf-2.5"), "as the optimized resolver: a float32 table of exps"),
        (when.ref("tflite-2.7"), "gemmlowp's fixed point"),
    ),
)
FAULTS = (
    Fault(
        "SOFTMAX",
        ("int8 -> int8",),
        "2.3, reference kernels; 2.14 gives the highest code instead",
        "a row whose exponentials sum to 512 or more aborts the process: refused when it is run",
        "reference/softmax.h Softmax, GetReciprocal",
        (when.ref("tflite-2.14"), when.micro(when.SPEC)),
    ),
    Fault(
        "SOFTMAX",
        ("uint8 -> uint8",),
        "2.3, reference kernels; 2.14 gives the highest code instead",
        "a row whose exponentials sum to 512 or more aborts the process: refused when it is run",
        "reference/softmax.h Softmax, GetReciprocal",
        (when.ref("tflite-2.14"), when.spec()),
    ),
    Fault(
        "LOG_SOFTMAX",
        ("uint8 -> uint8", "int8 -> int8"),
        "2.5, reference kernels",
        "constants are never prepared: every result is the lowest code",
        "activations.cc LogSoftmaxPrepare",
        (when.ref(until="tf-2.5"),),
    ),
    Fault(
        "LOG_SOFTMAX",
        ("int8 -> int8",),
        "2.5, optimized kernels",
        "codes more than 127 below their row's largest are looked up beside the table of exps: refused",
        "optimized_ops.h LogSoftmax",
        (when.opt("tf-2.5", "tf-2.5"),),
    ),
)
