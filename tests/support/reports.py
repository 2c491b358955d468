"""A verification report that has something of everything, built by hand."""

from __future__ import annotations

import math

from tflq.comparison.inspection.difference import Difference, First
from tflq.comparison.inspection.prepared import Constants, StageFacts
from tflq.comparison.results import CompareMode, InputFacts, OperatorResult, TensorResult
from tflq.comparison.verification.report import Verification
from tflq.engine.api.files import ModelFacts
from tflq.engine.kernels.kernel import EXACT, Exactness, close
from tflq.engine.runtimes import Description

STAGE = StageFacts("output", "DoubleRounding", (0.5, math.inf), (1 << 30, 3), (0, -4), -128, -128, 127)
FOUND = Difference(9, 2, "LSB", 3, 1, 1, -1.0, ((-3, 1), (1, 1)), First(1, (0, 1), math.nan, -math.inf))
NEAR = Difference(9, 2, "ULP", 300, 1, 1, 0.0, ((-16, 1), (1, 1)), First(0, (0, 1), 1e-9, 2e-9), at_scale=3)
RUNTIME = Description(
    "litert-xnnpack", "ai-edge-litert", "2.3.0", "BUILTIN", 1, "3.11", "2.4", "Linux", "XNNPACK", (1, 2)
)


def tensor(difference: Difference | None, reason: str = "", promise: Exactness | None = EXACT) -> TensorResult:
    return TensorResult(4, "a\0b", "int8", (3, 3), difference, reason, promise)


REPORT = Verification(
    model=ModelFacts("m.tflite", 7, "0" * 64),
    profile="litert-ref",
    against=RUNTIME,
    golden="",
    mode=CompareMode.ISOLATED,
    inputs=InputFacts("random", 0, 2),
    operators=(
        OperatorResult(0, "ADD", 1, (tensor(Difference(9, 0, "LSB")),)),
        OperatorResult(1, "CONV_2D", 1, (tensor(FOUND),), "", Constants((STAGE,), (("x", 1), ("y", math.nan)))),
        OperatorResult(2, "TANH", 1, (tensor(Difference(9, 0, problem="shape: ...")),)),
        OperatorResult(3, "ODD", 9, (), "unsupported"),
        OperatorResult(4, "MUL", 9, (tensor(None, "no value", None),)),
        OperatorResult(5, "EXP", 1, (tensor(NEAR, promise=close("order", 4)),)),
    ),
    outputs=(),
    notes=("a note",),
)
