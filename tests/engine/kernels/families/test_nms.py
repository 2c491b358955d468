"""NON_MAX_SUPPRESSION_V4 and V5 against LiteRT, ties included."""

from __future__ import annotations

import numpy as np
import pytest

from support.graphs import Graph, Op, assert_runs, build
from support.single_op import Array, T
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import ModelError


def boxes_and_scores(rng: np.random.Generator, count: int, coarse: bool) -> tuple[Array, Array]:
    """Coarse ones lie on a grid and have scores of one digit: many overlaps and many ties."""
    boxes, scores = rng.uniform(0, 1, (count, 4)), rng.uniform(0, 1, count)
    if coarse:
        boxes, scores = np.round(boxes * 4) / 4, np.round(scores, 1)
    return boxes.astype(np.float32), scores.astype(np.float32)


@pytest.mark.slow
@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("op", ["NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("count", [1, 2, 7, 33, 200])
def test_against_litert(op: str, constant: bool, count: int) -> None:
    soft = op.endswith("5")
    for most in (1, 5, count + 3):
        scalar = T("float32", ())
        wanted = T("int32", (), value=most if constant else None)
        shape = (most,) if constant else ()
        made = [T("int32", shape), *([T("float32", shape)] if soft else []), T("int32", ())]
        tensors = [
            T("float32", (count, 4)),
            T("float32", (count,)),
            scalar,
            scalar,
            *([scalar] if soft else []),
            wanted,
        ]
        last = len(tensors) - 1
        free = [i for i in range(len(tensors)) if not constant or i != last]
        outputs = tuple(range(last + 1, last + 1 + len(made)))
        model = build(Graph([*tensors, *made], free, outputs, [Op(op, (0, 1, last, *range(2, last)), outputs)]))
        rng = np.random.default_rng(count)
        runs: list[list[Array]] = []
        for sigma in (0.0, 0.3, 2.0):
            for coarse in (False, True):
                run = [
                    *boxes_and_scores(rng, count, coarse),
                    *np.array([rng.choice([0.1, 0.5, 1.0]), rng.choice([0, 0.4])], np.float32),
                ]
                run += [np.array(sigma, np.float32)] if soft else []
                run += [] if constant else [np.array(most, np.int32)]
                runs.append([np.asarray(x) for x in run])
        assert_runs(model, runs)


def test_refusals() -> None:
    tensors = [
        T("float32", (3, 5)),
        T("float32", (3,)),
        T("int32", (), value=2),
        T("float32", ()),
        T("float32", ()),
        T("int32", (2,)),
        T("int32", ()),
    ]
    op = Op("NON_MAX_SUPPRESSION_V4", (0, 1, 2, 3, 4), (5, 6))
    with pytest.raises(ModelError, match="numbers of a box"):
        Interpreter(model_content=build(Graph(tensors, (0, 1, 3, 4), (5, 6), [op]))).allocate_tensors()
