"""One cause for all failing operators: of those that fit the first, the one that explains the others, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.devices import Array, explained
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.comparison.evidence.dumps import Dump
from tflq.engine.api.files import load
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.explain import explain_report

#: An eighth of -4 is the only half-way case; RELU and QUANTIZE are different kernels.
ONE_TIE = np.array([8, -16, 24, -4, 0, 16, -24, 64], np.int8)
TIES = np.array([-12, 12, -20, 20, -28, 28, -36, 36], np.int8)


def device(second: Callable[[Array], Array]) -> tuple[bytes, Dump]:
    """QUANTIZE rounds half up, and so may RELU, an operator of its own with an input of its own."""
    tensors = [T("int8", (8,), scale, -20 if k == 3 else 0) for k, scale in enumerate((1.0, 8.0, 1.0, 8.0))]
    ops = [Op("QUANTIZE", [0], [1], ("QuantizeOptions", {})), Op("RELU", [2], [3])]
    model = build(Graph(tensors, [0, 2], [1, 3], ops))
    given = 4 * np.arange(1, 17, 2, dtype=np.int8)
    values = {0: ONE_TIE, 1: np.floor(ONE_TIE / 8 + 0.5).astype(np.int8), 2: given, 3: second(given)}
    return model, Dump("", values)


def test_a_cause_of_all_failing_operators_comes_before_others() -> None:
    """Among the roundings that give 0 for -0.5, only half down, to even and towards zero also give 0 for 0.5."""
    model, dump = device(lambda x: (np.maximum(np.trunc(x / 8), 0) - 20).astype(np.int8))
    found = explained(load(model), dump)
    explanation = found.explanation
    assert explanation is not None
    assert explanation.beyond == (1,)
    names = {name for cause in explanation.fitting for name in (cause.name, *cause.also)}
    assert "rounds towards zero, in fixed point" in names
    assert "rounds half up, in fixed point" not in names
    assert all(cause.also_at == (1,) for cause in explanation.fitting)
    left_out = {name for cause in explanation.ranking.only_here for name in (cause.name, *cause.also)}
    assert left_out or "litert-ref+single-rounding" not in names
    said = "\n".join(line.text for line in lines_of(explain_report(found)))
    assert "reproduces divergent operators of other types as well: 1" in said


def test_where_no_cause_explains_the_others_none_is_left_out() -> None:
    model, dump = device(lambda x: (np.maximum(x // 8, 0) - 20 + (np.arange(8) % 3)).astype(np.int8))
    explanation = explained(load(model), dump).explanation
    assert explanation is not None
    assert explanation.beyond == (1,)
    assert all(cause.also_at == () for cause in explanation.causes)
    names = {name for cause in explanation.fitting for name in (cause.name, *cause.also)}
    assert {"rounds half up, in fixed point", "rounds towards zero, in fixed point"} <= names
