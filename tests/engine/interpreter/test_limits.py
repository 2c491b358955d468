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


def chain(levels: int, cheap_else: bool) -> bytes:
    """Each of `levels` subgraphs calls the next one twice: 2**(levels - 1) ADDs in all, if the flag is set."""
    flag, x = T("bool", (1,)), T("float32", (1,))

    def call(level: int, given: int, made: int) -> Op:
        branches = {"then_subgraph_index": level + 1, "else_subgraph_index": levels if cheap_else else level + 1}
        return Op("IF", (0, 0, given), (made,), ("IfOptions", branches))

    graphs = [Graph([flag, x, x, x], (0, 1), (3,), [call(k, 1, 2), call(k, 2, 3)]) for k in range(levels - 1)]
    add = Graph([flag, x, x], (0, 1), (2,), [Op("ADD", (1, 1), (2,), ("AddOptions", {}))])
    return build(*graphs, add, Graph([flag, x, x], (0, 1), (2,), [Op("ABS", (1,), (2,))]))


def test_calls_that_double_at_each_level_are_refused_before_the_run() -> None:
    tflq.Interpreter(model_content=chain(6, False)).allocate_tensors()
    with pytest.raises(LimitError, match=r"operator \d IF: work of"):
        tflq.Interpreter(model_content=chain(40, False)).allocate_tensors()


@pytest.mark.parametrize("condition", [False, True])
def test_calls_that_may_end_early_are_counted_in_the_run(condition: bool) -> None:
    interpreter = tflq.Interpreter(model_content=chain(40, True), work_limit=10**11)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([condition]))
    if not condition:
        interpreter.invoke()
        return
    with pytest.raises(LimitError, match=r"operator \d IF: work of"):
        interpreter.invoke()


def growing() -> bytes:
    """A WHILE whose value grows by an element each round, as long as it is below a limit that is an input."""
    x, limit, flag = T("float32", (1,)), T("int32", (1,)), T("bool", (1,))
    one = T("float32", (1,), value=np.ones(1, np.float32))
    axis = ("ConcatenationOptions", {"axis": 0})
    loop = Op("WHILE", (0, 1), (2, 3), ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))
    return build(
        Graph([x, limit, x, limit], (0, 1), (2,), [loop]),
        Graph(
            [x, limit, limit, flag],
            (0, 1),
            (3,),
            [Op("SHAPE", (0,), (2,), ("ShapeOptions", {"out_type": 2})), Op("LESS", (2, 1), (3,))],
        ),
        Graph([x, limit, one, x], (0, 1), (3, 1), [Op("CONCATENATION", (0, 2), (3,), axis)]),
    )


def test_operators_bound_anew_in_each_round_count_as_work() -> None:
    interpreter = tflq.Interpreter(model_content=growing(), work_limit=2 * 10**10)
    interpreter.allocate_tensors()
    interpreter.set_tensor(1, np.array([5], np.int32))
    interpreter.invoke()
    interpreter.set_tensor(1, np.array([1000], np.int32))
    with pytest.raises(LimitError, match="work of"):
        interpreter.invoke()


def test_each_run_may_prepare_as_much_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflq.engine.interpreter.planning.DEFAULT_WORK", 0)
    length, x, value = T("int32", (1,)), T("float32", (1,)), T("float32", (), value=np.float32(1))
    fill = Op("FILL", (0, 1), (2,), ("FillOptions", {}))
    call = Op("STABLEHLO_COMPOSITE", (2,), (3,), ("StableHLOCompositeOptions", {"decomposition_subgraph_index": 1}))
    graph, called = (
        Graph([length, value, x, x], (0,), (3,), [fill, call]),
        Graph([x, x], (0,), (1,), [Op("ABS", (0,), (1,))]),
    )
    interpreter = tflq.Interpreter(model_content=build(graph, called), work_limit=3 * 10**9)
    interpreter.allocate_tensors()
    for size in range(1, 6):
        interpreter.set_tensor(0, np.array([size], np.int32))
        interpreter.invoke()
        assert interpreter.get_tensor(3).shape == (size,)


def test_what_an_operator_works_with_counts() -> None:
    """Three tensors of 100 kB, and three arrays of 800 kB of float64 on the way."""
    x = T("int8", (100_000,))
    model = build(Graph([x, x, x], (0, 1), (2,), [Op("FLOOR_DIV", (0, 1), (2,))]))
    tflq.Interpreter(model_content=model, memory_limit=2_700_000).allocate_tensors()
    with pytest.raises(LimitError, match="operator 0 FLOOR_DIV: memory of 2700000 bytes"):
        tflq.Interpreter(model_content=model, memory_limit=2_699_999).allocate_tensors()


def test_sorting_counts_where_the_result_is_not_known() -> None:
    """100 kB of values, and besides the index of 400 kB what NumPy sorts with."""
    x, index = T("int8", (100_000,)), T("int32", (100_000,))
    model = build(
        Graph([x, x, index], (0,), (1, 2), [Op("UNIQUE", (0,), (1, 2), ("UniqueOptions", {"idx_out_type": 2}))])
    )
    tflq.Interpreter(model_content=model, memory_limit=10_000_000).allocate_tensors()
    with pytest.raises(LimitError, match="operator 0 UNIQUE: memory of"):
        tflq.Interpreter(model_content=model, memory_limit=1_000_000).allocate_tensors()
