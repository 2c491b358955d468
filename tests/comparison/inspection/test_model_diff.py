"""Two models side by side: each planted change is found, alone, and with what follows from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from support import suites
from tflq.comparison.inspection.model_diff import diff
from tflq.engine.api.files import load
from tflq.model.ir import Buffer, Model, TensorSpec, view, with_graph
from tflq.model.surgery.cut import extract

MODEL = load(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")
GRAPH = view(MODEL)
#: The first convolution, its weights and its output.
CONV = next(op.index for op in GRAPH.ops if op.name == "CONV_2D")
WEIGHTS, OUTPUT = GRAPH.op(CONV).inputs[1], GRAPH.op(CONV).outputs[0]


def with_tensor(index: int, spec: TensorSpec) -> Model:
    tensors = list(GRAPH.tensors)
    tensors[index] = spec
    return with_graph(MODEL, replace(GRAPH.record, tensors=tuple(tensors)))


def test_a_model_does_not_differ_from_itself() -> None:
    assert diff(MODEL, MODEL).changes == ()


def test_a_weight_is_told_in_lsb() -> None:
    buffer = GRAPH.tensors[WEIGHTS].buffer
    data = MODEL.buffers[buffer].data
    assert data is not None
    changed = data.copy().view(np.int8)
    changed[0] += -3 if changed[0] > 0 else 3
    buffers = list(MODEL.buffers)
    buffers[buffer] = Buffer(changed.view(np.uint8))
    (change,) = diff(MODEL, replace(MODEL, buffers=tuple(buffers))).changes
    assert (change.first, change.what) == (CONV, "input 1 values")
    assert change.after == f"1 of {changed.size} differ, up to 3 LSB"


def test_a_scale_changes_what_is_derived_from_it() -> None:
    spec = GRAPH.tensors[OUTPUT]
    assert spec.quantization is not None
    doubled = replace(spec.quantization, scale=spec.quantization.scale * np.float32(2))
    found = [
        c for c in diff(MODEL, with_tensor(OUTPUT, replace(spec, quantization=doubled))).changes if c.first == CONV
    ]
    assert any(c.what == "output 0 scale" for c in found)
    (shift,) = [c for c in found if c.what.startswith("derived") and c.what.endswith("shift")]
    before, after = int(shift.before.split()[0]), int(shift.after.split()[0])
    assert after == before - 1
    assert not any(c.what.endswith("mantissa") for c in found)


def test_operators_that_one_model_lacks_are_named() -> None:
    part, _ = extract(MODEL, [f"1..{len(GRAPH.ops) - 1}"])
    missing = [c for c in diff(MODEL, part).changes if c.what == "operator"]
    assert len(missing) == 1
    assert (missing[0].second, missing[0].after) == (None, "none")


def test_what_the_models_give_is_compared() -> None:
    """All operators are the same; another tensor is an output, or one more."""
    inner = GRAPH.op(CONV).outputs[0]
    more = with_graph(MODEL, replace(GRAPH.record, outputs=(*GRAPH.outputs, inner)))
    (count,) = diff(MODEL, more).changes
    assert (count.first, count.second, count.what, count.after) == (None, None, "model outputs", "2")
    other = with_graph(MODEL, replace(GRAPH.record, outputs=(inner,)))
    found = {change.what: (change.before, change.after) for change in diff(MODEL, other).changes}
    assert found["model output 0 maker"] == (str(len(GRAPH.ops) - 1), str(CONV))
    assert "model output 0 shape" in found
