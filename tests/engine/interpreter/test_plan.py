"""Plans: what is bound early, what is refused and how."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, build
from support.single_op import T
from support.toys import PROFILE, graph, ints, tensor
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.plan import Limits
from tflq.engine.profiles import by_name
from tflq.errors import LimitError, ModelError, OperatorFailed, UnsupportedError
from tflq.model.ir import Model, TensorType

CHAIN = graph([tensor(), tensor(), tensor()], [("DOUBLE", [0], [1]), ("DOUBLE", [1], [2])], [0], [2])


def test_every_step_of_a_static_graph_is_prepared() -> None:
    plan = make_plan(CHAIN, PROFILE)
    assert all(step.prepared is not None for step in plan.steps)
    assert all(plan.known)
    assert plan.makers == {1: 0, 2: 1}
    assert [step.last_uses for step in plan.steps] == [(0,), (1,)]


def test_input_shapes_reach_every_operand() -> None:
    plan = make_plan(CHAIN, PROFILE, input_shapes={0: (5, 7)})
    assert [o.shape for o in plan.operands] == [(5, 7)] * 3


def test_a_step_whose_shape_hangs_on_a_computed_value_waits() -> None:
    model = graph(
        [tensor(), tensor(), tensor(), tensor()], [("COPY", [0], [1]), ("ONES", [1], [2]), ("COPY", [2], [3])], [0], [3]
    )
    plan = make_plan(model, PROFILE)
    assert [step.prepared is None for step in plan.steps] == [False, True, True]
    assert plan.known == (True, True, False, False)


def test_a_constant_shape_is_bound_early() -> None:
    model = graph([tensor(buffer=1), tensor()], [("ONES", [0], [1])], [], [1], [ints(3, 4).tobytes()])
    plan = make_plan(model, PROFILE)
    assert plan.steps[0].prepared is not None
    assert plan.operands[1].shape == (3, 4)


def test_an_unknown_operator_is_refused_with_its_facts() -> None:
    model = graph([tensor(), tensor()], [("NOTHING", [0], [1])], [0], [1])
    with pytest.raises(UnsupportedError) as error:
        make_plan(model, PROFILE)
    facts = error.value
    assert (facts.op, facts.version, facts.types, facts.index) == ("NOTHING", 1, "int32 -> int32", 0)
    assert facts.profile == "toys"
    assert isinstance(facts, NotImplementedError)


def test_a_known_operator_in_another_form_names_the_nearest() -> None:
    model = graph([tensor(), tensor()], [("VERSIONED", [0], [1])], [0], [1])
    with pytest.raises(UnsupportedError, match="int8 -> int8, versions 2 to 3"):
        make_plan(model, PROFILE)


def test_an_absent_output_is_left_out() -> None:
    model = graph([tensor(), tensor()], [("COPY", [0], [1, -1])], [0], [1])
    assert make_plan(model, PROFILE).steps[0].outputs == (1,)


@each(
    ("model", "words"),
    [
        (graph([tensor(), tensor()], [("COPY", [9], [1])], [0], [1]), "out of range"),
        (graph([tensor(), tensor()], [("COPY", [-2], [1])], [0], [1]), "out of range"),
        (graph([tensor(), tensor()], [("COPY", [0], [9])], [0], [1]), "out of range"),
        (graph([tensor()], [], [7], [0]), "out of range"),
        (graph([tensor()], [], [-1], [0]), "out of range"),
        (graph([tensor()], [], [0], [7]), "out of range"),
        (graph([tensor(), tensor(), tensor()], [("COPY", [2], [1])], [0], [1]), "read before it is made"),
        (graph([tensor()] * 3, [("COPY", [2], [1]), ("COPY", [0], [2])], [0], [1]), "read before it is made"),
        (graph([tensor(), tensor()], [], [0], [1]), "never made"),
        (graph([tensor(), tensor(buffer=1)], [("COPY", [0], [1])], [0], [1], [bytes(8)]), "constant is written"),
        (graph([tensor(shape=(-2,)), tensor()], [("COPY", [0], [1])], [0], [1]), "negative"),
        (graph([tensor(buffer=1, shape=(-2,)), tensor()], [("COPY", [0], [1])], [], [1], [bytes(8)]), "negative"),
        (graph([tensor(buffer=1), tensor()], [("COPY", [0], [1])], [], [1], [bytes(7)]), "does not fit"),
        (graph([tensor(buffer=5), tensor()], [("COPY", [0], [1])], [], [1]), "buffer index"),
        (graph([tensor(), tensor()], [("TWO", [0], [1, -1])], [0], [1]), "int32 -> int32"),
    ],
)
def test_malformed_graphs(model: Model, words: str) -> None:
    with pytest.raises((ModelError, UnsupportedError), match=words):
        make_plan(model, PROFILE)


def test_no_such_subgraph() -> None:
    with pytest.raises(ModelError):
        make_plan(CHAIN, PROFILE, subgraph=1)


def test_an_error_of_a_kernel_keeps_its_cause() -> None:
    model = graph([tensor(), tensor()], [("BROKEN_PREPARE", [0], [1])], [0], [1])
    with pytest.raises(OperatorFailed, match="BROKEN_PREPARE: prepare failed: KeyError") as error:
        make_plan(model, PROFILE)
    assert isinstance(error.value.__cause__, KeyError)


def test_scales_whose_ratio_no_integer_holds_are_refused() -> None:
    tensors = [T("int8", (4,), 0.5), T("int8", (4,), 1e-39)]
    data = build(Graph(tensors, (0,), (1,), [Op("LEAKY_RELU", (0,), (1,), ("LeakyReluOptions", {"alpha": 0.1}))]))
    with pytest.raises(UnsupportedError, match=r"operator 0 LEAKY_RELU: .* XNNPACK asks for a normal scale"):
        make_plan(load(data), by_name("litert-xnnpack"))


def test_options_of_another_operator_are_refused() -> None:
    x = T("int32", (1,))
    options = ("DilateOptions", {})
    data = build(Graph([x, x], (0,), (1,), [Op("WHILE", (0,), (1,), options)]))
    with pytest.raises(ModelError, match=r"operator 0 WHILE: options: expected a table with .*, got DilateOptions"):
        make_plan(load(data), by_name("litert-ref"))


def test_an_input_beyond_the_limit_is_refused() -> None:
    with pytest.raises(LimitError):
        make_plan(CHAIN, PROFILE, input_shapes={0: (1 << 16, 1 << 16)})


def test_an_output_beyond_the_limit_is_refused_before_it_is_made() -> None:
    model = graph([tensor(), tensor()], [("HUGE", [0], [1])], [0], [1])
    with pytest.raises(LimitError, match="operator 0 HUGE"):
        make_plan(model, PROFILE)


def test_the_limit_counts_what_is_alive_together() -> None:
    """Two tensors of 400 bytes are alive at every step of the chain, never three."""
    shapes = {0: (100,)}
    assert make_plan(CHAIN, PROFILE, input_shapes=shapes, limits=Limits(memory=800)).cost.peak_memory == 800
    with pytest.raises(LimitError):
        make_plan(CHAIN, PROFILE, input_shapes=shapes, limits=Limits(memory=799))


@pytest.mark.parametrize(
    ("type_", "data", "values"),
    [
        (TensorType.INT4, [0x8F, 0x07], [-1, -8, 7]),
        (TensorType.UINT4, [0x8F, 0x07], [15, 8, 7]),
        (TensorType.INT2, [0b00_10_01_11], [-1, 1, -2]),
        (TensorType.BOOL, [0, 1, 2], [False, True, True]),
        (TensorType.INT8, [0, 128, 255], [0, -128, -1]),
        (TensorType.BFLOAT16, [1, 0, 0, 1, 2, 3], [1, 256, 770]),
    ],
)
def test_constants_are_unpacked(type_: TensorType, data: list[int], values: list[int]) -> None:
    model = graph([tensor(type_, (3,), buffer=1), tensor(type_, (3,))], [("COPY", [0], [1])], [], [1], [bytes(data)])
    operand = make_plan(model, PROFILE).operands[0]
    assert operand.value is not None
    assert operand.value.tolist() == values


def test_string_constants() -> None:
    data = np.array([2, 16, 18, 21], "<i4").tobytes() + b"abcde"
    model = graph([tensor(TensorType.STRING, (2, 1), buffer=1)], [], [], [0], [data])
    operand = make_plan(model, PROFILE).operands[0]
    assert operand.value is not None
    assert operand.value.tolist() == [[b"ab"], [b"cde"]]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1",
        bytes(4),
        ints(-1, 8, 8).tobytes(),
        ints(1, 0, 99).tobytes(),
        ints(1, 9, 8).tobytes(),
        ints(1 << 30, 4).tobytes(),
    ],
)
def test_broken_string_constants(data: bytes) -> None:
    model = graph(
        [tensor(TensorType.STRING, (1,), buffer=1), tensor(TensorType.STRING, (1,))],
        [("COPY", [0], [1])],
        [],
        [1],
        [data],
    )
    with pytest.raises(ModelError):
        make_plan(model, PROFILE)


def test_an_empty_constant_needs_no_buffer() -> None:
    model = graph([tensor(shape=(0,)), tensor()], [("ONES", [0], [1])], [], [1])
    assert make_plan(model, PROFILE).operands[1].shape == ()
