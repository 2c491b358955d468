"""Work and memory of a run, against their limits."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.errors import LimitError


def endless() -> bytes:
    """A WHILE whose condition is always true; its body adds 1."""
    x = T("float32", (1,))
    true = T("bool", (1,), value=np.array([True]))
    one = T("float32", (1,), value=np.ones(1, np.float32))
    loop = Op("WHILE", (0,), (1,), ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))
    add = Op("ADD", (0, 1), (2,), ("AddOptions", {}))
    return build(Graph([x, x], (0,), (1,), [loop]), Graph([x, true], (0,), (1,)), Graph([x, one, x], (0,), (2,), [add]))


def fills(count: int) -> bytes:
    """Tensors of 400 kB of a computed length, all of them outputs."""
    length = T("int32", (1,))
    add = Op("ADD", (0, 0), (1,), ("AddOptions", {}))
    value = T("float32", (), value=np.float32(1))
    made = [T("float32", (1,))] * count
    ops = [add, *(Op("FILL", (1, 2), (3 + i,), ("FillOptions", {})) for i in range(count))]
    return build(Graph([length, length, value, *made], (0,), range(3, 3 + count), ops))


def test_an_endless_loop_is_stopped_and_named() -> None:
    interpreter = tflq.Interpreter(model_content=endless(), work_limit=10**10)
    interpreter.allocate_tensors()
    with pytest.raises(LimitError, match=r"operator 0 WHILE: work of \d+ passes .* the limit of 10000000000 passes"):
        interpreter.invoke()


def test_work_that_shapes_tell_is_refused_before_the_run() -> None:
    x = T("float32", (100,))
    model = build(Graph([x, x], (0,), (1,), [Op("ABS", (0,), (1,))]))
    tflq.Interpreter(model_content=model, work_limit=200).allocate_tensors()
    with pytest.raises(LimitError, match="operator 0 ABS: work of 200 passes"):
        tflq.Interpreter(model_content=model, work_limit=199).allocate_tensors()


@pytest.mark.parametrize(("count", "fits"), [(2, True), (3, False)])
def test_tensors_of_computed_shapes_are_counted_together(count: int, fits: bool) -> None:
    interpreter = tflq.Interpreter(model_content=fills(count), memory_limit=1_000_000)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([50_000], np.int32))
    if fits:
        interpreter.invoke()
        return
    with pytest.raises(LimitError, match="operator 3 FILL: memory of"):
        interpreter.invoke()
