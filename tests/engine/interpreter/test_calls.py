"""Subgraphs that are called: plans that are kept, memory that is counted, shapes that only the run can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.toys import PROFILE, graph, ints, tensor
from tflq.engine.interpreter import State, binding, make_plan, planning, run
from tflq.engine.interpreter.binding import NO_OPTIONS
from tflq.engine.interpreter.plan import Limits
from tflq.engine.kernels.families.resources import prepare_call
from tflq.engine.kernels.kernel import CalledSubgraphs, Kernel, Node, Prepared
from tflq.engine.kernels.table import table
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import LimitError, ModelError, UnsupportedError
from tflq.model.ir import Model
from tflq.typing import Array


def _call(node: Node, arithmetic: Arithmetic) -> Prepared:
    return prepare_call(node, 1)


def _twice(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Calls subgraph 1 on its own output, in one entry."""

    def again(data: None, session: CalledSubgraphs, x: Array) -> Array:
        body = session.enter(1)
        return body([body([x])[0]])[0]

    node.around().subgraph(1, [node.input(0).shape])
    return Prepared((None,), None, again)


ROWS = (
    Kernel("CALL", "any* -> any*", _call, session=True, calls=("subgraph",)),
    Kernel("TWICE", "any -> any", _twice, session=True),
)
CALLING = replace(PROFILE, kernels=table(*(PROFILE.kernels[op] for op in PROFILE.kernels), ROWS))


def with_callee(main: Model, callee: Model) -> Model:
    """`callee`'s graph as subgraph 1 of `main`."""
    first, called = len(main.operator_codes), callee.subgraphs[0]
    codes = (*main.operator_codes, *callee.operator_codes)
    moved = (replace(operator, opcode_index=operator.opcode_index + first) for operator in called.operators)
    second = replace(called, operators=tuple(moved))
    return replace(main, operator_codes=codes, subgraphs=(main.subgraphs[0], second))


MAIN = graph([tensor(), tensor()], [("CALL", [0], [1])], [0], [1])
DOUBLE = graph([tensor(), tensor()], [("DOUBLE", [0], [1])], [0], [1])
ACCUMULATE = graph([tensor(), tensor(is_variable=True), tensor()], [("ACCUMULATE", [0, 1], [2])], [0], [2])


def test_a_call_is_one_step() -> None:
    plan = make_plan(with_callee(MAIN, DOUBLE), CALLING)
    assert [step.op for step in plan.steps] == ["CALL"]
    assert plan.operands[1].shape == (2,)
    assert run(plan, {0: ints(3, 4)}).values[1].tolist() == [6, 8]


def test_plans_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, state = make_plan(with_callee(MAIN, DOUBLE), CALLING), State()
    for module in (planning, binding):
        monkeypatch.setattr(module, "prepare", None)
    for _ in range(3):
        assert run(plan, {0: ints(1, 2)}, state).values[1].tolist() == [2, 4]


def test_variables_last_as_long_as_the_entry() -> None:
    plan, state = make_plan(with_callee(MAIN, ACCUMULATE), CALLING), State()
    assert [run(plan, {0: ints(1, 2)}, state).values[1].tolist() for _ in range(2)] == [[1, 2], [1, 2]]
    both = graph([tensor(), tensor()], [("TWICE", [0], [1])], [0], [1])
    plan = make_plan(with_callee(both, ACCUMULATE), CALLING)
    assert [run(plan, {0: ints(1, 2)}, state).values[1].tolist() for _ in range(2)] == [[2, 4], [2, 4]]


def test_shapes_that_change_within_an_entry() -> None:
    both = graph([tensor(shape=(4,)), tensor(shape=(4,))], [("TWICE", [0], [1])], [0], [1])
    minus = graph([tensor(shape=(4,)), tensor(), tensor()], [("POSITIVE", [0], [1]), ("DOUBLE", [1], [2])], [0], [2])
    plan, state = make_plan(with_callee(both, minus), CALLING), State()
    for values, want in [((1, -2, 3, -4), [4, 12]), ((-1, -2, -3, -4), []), ((1, 2, 3, 4), [4, 8, 12, 16])]:
        assert run(plan, {0: ints(*values)}, state).values[1].tolist() == want


def test_a_called_subgraph_counts_towards_the_limit() -> None:
    large = tensor(shape=(1000,))
    model = with_callee(
        graph([large, large], [("CALL", [0], [1])], [0], [1]),
        graph([large] * 3, [("DOUBLE", [0], [1]), ("DOUBLE", [1], [2])], [0], [2]),
    )
    peak = make_plan(model, CALLING).cost.peak_memory
    assert peak == 3 * 4000  # the caller's input, and two tensors inside
    make_plan(model, CALLING, limits=Limits(memory=peak))
    with pytest.raises(LimitError, match="with the subgraphs that it calls"):
        make_plan(model, CALLING, limits=Limits(memory=peak - 1))


def test_refusals_come_before_the_run() -> None:
    unknown = graph([tensor(), tensor()], [("UNHEARD", [0], [1])], [0], [1])
    late = graph([tensor(), tensor(), tensor()], [("POSITIVE", [0], [1]), ("CALL", [1], [2])], [0], [2])
    numbered = replace(late.subgraphs[0].operators[1], options=replace(NO_OPTIONS, fields={"subgraph": 1}))
    late = replace(late, subgraphs=(replace(late.subgraphs[0], operators=(late.subgraphs[0].operators[0], numbered)),))
    for main in (MAIN, late):
        with pytest.raises(UnsupportedError, match="UNHEARD"):
            make_plan(with_callee(main, unknown), CALLING)
    with pytest.raises(ModelError, match="calls itself"):
        make_plan(with_callee(MAIN, MAIN), CALLING)
    with pytest.raises(ModelError, match="no such subgraph"):
        make_plan(MAIN, CALLING)


def test_nested_calls_share_resources() -> None:
    """What one subgraph keeps, another finds."""

    def keep(node: Node, arithmetic: Arithmetic) -> Prepared:
        def count(data: None, session: CalledSubgraphs, x: Array) -> Array:
            session.resources["count"] = session.resources.get("count", 0) + 1
            return x + np.int32(session.resources["count"])

        return Prepared((node.input(0).shape,), None, count)

    rows = (Kernel("KEEP", "any -> any", keep, session=True),)
    profile = replace(CALLING, kernels=table(*(CALLING.kernels[op] for op in CALLING.kernels), rows))
    main = graph([tensor(), tensor(), tensor()], [("KEEP", [0], [1]), ("CALL", [1], [2])], [0], [2])
    model = with_callee(main, graph([tensor(), tensor()], [("KEEP", [0], [1])], [0], [1]))
    plan, state = make_plan(model, profile), State()
    assert [run(plan, {0: ints(0, 0)}, state).values[2].tolist() for _ in range(2)] == [[3, 3], [7, 7]]
    assert run(plan, {0: ints(0, 0)}, State()).values[2].tolist() == [3, 3]


def test_calls_of_a_subgraph_are_part_of_a_routine() -> None:
    main = graph([tensor()] * 4, [("CALL", [0], [1]), ("DOUBLE", [1], [2]), ("CALL", [2], [3])], [0], [1, 3])
    plan, state = make_plan(with_callee(main, DOUBLE), CALLING), State()
    traces = [run(plan, {0: ints(value, 5)}, state) for value in (1, 2, 3, 4)]
    assert [trace.values[3].tolist() for trace in traces] == [[8, 40], [16, 40], [24, 40], [32, 40]]
    assert [trace.values[1].tolist() for trace in traces] == [[2, 10], [4, 10], [6, 10], [8, 10]]
    assert state.routine


def test_a_subgraph_with_variables_is_entered_anew() -> None:
    plan, state = make_plan(with_callee(MAIN, ACCUMULATE), CALLING), State()
    assert [run(plan, {0: ints(1, 2)}, state).values[1].tolist() for _ in range(3)] == [[1, 2]] * 3
    assert not state.routine
