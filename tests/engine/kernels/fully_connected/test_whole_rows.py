"""Tests for inputs of FULLY_CONNECTED with elements beyond the last whole row."""

from __future__ import annotations

import numpy as np
import pytest

from support.single_op import T, build
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import UnsupportedError

SHAPES = {"whole": ((4, 10), (5, 20)), "more": ((2, 20), (5, 19)), "less": ((1, 5), (5, 20))}


def model(kind: str, case: str) -> bytes:
    x, w = SHAPES[case]
    rows = max(int(np.prod(x)) // w[1], 1)
    real = T("float32", w, value=np.ones(w, np.float32))
    codes = T("int8", w, 0.01, value=np.ones(w, np.int8))
    is_integer = kind == "int8"
    given = T("int8", x, 0.05, 3) if is_integer else T("float32", x)
    made = T("int8", (rows, 5), 0.2, 3) if is_integer else T("float32", (rows, 5))
    weights = real if kind == "float" else codes
    return build("FULLY_CONNECTED", [given, weights, None], [made], ("FullyConnectedOptions", {}), 9)


@pytest.mark.parametrize("kind", ["float", "hybrid", "int8"])
@pytest.mark.parametrize("case", SHAPES)
def test_xnnpack_refuses_them_as_litert_does(kind: str, case: str) -> None:
    content = model(kind, case)
    runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    live = runtime.Interpreter(model_content=content)
    interpreter = Interpreter(model_content=content, profile="litert-xnnpack")
    if case == "whole":
        live.allocate_tensors()
        interpreter.allocate_tensors()
        return
    with pytest.raises(RuntimeError, match="reshape"):
        live.allocate_tensors()
    with pytest.raises(UnsupportedError, match="whole rows"):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("profile", ["litert-ref", "litert-opt", "litert-1.0-xnnpack"])
def test_other_kernels_drop_them(profile: str) -> None:
    Interpreter(model_content=model("int8", "more"), profile=profile).allocate_tensors()
