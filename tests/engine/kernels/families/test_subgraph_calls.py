"""IF, WHILE, CALL_ONCE, STABLEHLO_CASE and STABLEHLO_COMPOSITE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, assert_runs, build
from support.graphs import tflq as run_here
from support.single_op import Array, T, draw
from support.work import at_most
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import ModelError, UndefinedResultError, UnsupportedError

EMPTY_MAP = b"\x00\x00\x01\x00\x00$\x01"  # a flexbuffer
Options = tuple[str, dict[str, object]]
ADD: Options = ("AddOptions", {})
MUL: Options = ("MulOptions", {})
LESS: Options = ("LessOptions", {})
SUM, PRODUCT = Op("ADD", (0, 1), (2,), ADD), Op("MUL", (0, 1), (2,), MUL)


def binary(type_: str, shape: tuple[int, ...], op: Op, other: tuple[int, ...] | None = None) -> Graph:
    other = shape if other is None else other
    return Graph([T(type_, shape), T(type_, other), T(type_, np.broadcast_shapes(shape, other))], (0, 1), (2,), [op])


def if_model(type_: str, shape: tuple[int, ...], then: Graph, otherwise: Graph, outputs: int = 1) -> bytes:
    tensors = [T("bool", ()), T(type_, shape), T(type_, shape), *[T(type_, shape)] * outputs]
    options = ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2})
    made = tuple(range(3, 3 + outputs))
    main = Graph(tensors, (0, 1, 2), made, [Op("IF", (0, 1, 2), made, options)])
    return build(main, then, otherwise)


def both_ways(rng: np.random.Generator, type_: str, *shapes: tuple[int, ...]) -> list[list[Array]]:
    return [
        [np.array(condition), *(draw(rng, T(type_, shape)) for shape in shapes)] for condition in (True, False, True)
    ]


@each("type_", ["float32", "int32", "int64"])
@each("shape", [(), (3,), (2, 3), (1, 2, 3, 4)])
def test_if(type_: str, shape: tuple[int, ...]) -> None:
    model = if_model(type_, shape, binary(type_, shape, SUM), binary(type_, shape, PRODUCT))
    assert_runs(model, both_ways(np.random.default_rng(1), type_, shape, shape))


def test_if_resized_and_broadcast() -> None:
    rng = np.random.default_rng(2)
    model = if_model("float32", (2, 3), binary("float32", (2, 3), SUM), binary("float32", (2, 3), PRODUCT))
    runs = [*both_ways(rng, "float32", (4, 3), (3,)), *both_ways(rng, "float32", (1, 1), (5, 7))]
    assert_runs(model, runs)


def test_if_branches_of_different_shape() -> None:
    """Then the outputs are dynamic."""
    then = Graph(
        [T("float32", (2, 3))] * 2 + [T("float32", (4, 3))],
        (0, 1),
        (2,),
        [Op("CONCATENATION", (0, 1), (2,), ("ConcatenationOptions", {"axis": 0}))],
    )
    model = if_model("float32", (2, 3), then, binary("float32", (2, 3), SUM))
    assert_runs(model, both_ways(np.random.default_rng(3), "float32", (2, 3), (2, 3)))


@pytest.mark.parametrize("outputs", [(0, 1), (1, 0), (1, 2)])
def test_if_hands_inputs_on(outputs: tuple[int, ...]) -> None:
    """Inputs that are outputs, and inputs that nothing reads."""
    shape = (2, 2)
    then = Graph([T("int32", shape)] * 3, (0, 1), outputs, [SUM])
    otherwise = Graph([T("int32", shape), T("int32", shape), T("int32", shape, value=7)], (0, 1), (2, 0))
    model = if_model("int32", shape, then, otherwise, 2)
    assert_runs(model, both_ways(np.random.default_rng(4), "int32", shape, shape))


def test_nested_if_inside_while() -> None:
    """x is added to or multiplied by 3, by turns of its sign."""
    options = ("IfOptions", {"then_subgraph_index": 3, "else_subgraph_index": 4})
    main = Graph(
        [T("int32", ())] * 4,
        (0, 1),
        (2, 3),
        [Op("WHILE", (0, 1), (2, 3), ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))],
    )
    cond = Graph(
        [T("int32", ()), T("int32", ()), T("int32", (), value=9), T("bool", ())],
        (0, 1),
        (3,),
        [Op("LESS", (0, 2), (3,), LESS)],
    )
    body = Graph(
        [
            T("int32", ()),
            T("int32", ()),
            T("int32", (), value=1),
            T("int32", ()),
            T("bool", ()),
            T("int32", (), value=0),
            T("int32", (), value=-3),
            T("int32", ()),
        ],
        (0, 1),
        (3, 7),
        [Op("ADD", (0, 2), (3,), ADD), Op("LESS", (1, 5), (4,), LESS), Op("IF", (4, 1, 6), (7,), options)],
    )
    model = build(main, cond, body, binary("int32", (), PRODUCT), binary("int32", (), SUM))
    runs = [[np.array(a, np.int32), np.array(b, np.int32)] for a, b in [(0, 5), (0, -7), (3, 100), (9, 1), (20, 1)]]
    assert_runs(model, runs)


def while_model(tensors: list[T], limit: int, body: Graph) -> bytes:
    """Runs the body while the first value is below `limit`."""
    count = len(tensors)
    numbers = tuple(range(count))
    cond = Graph(
        [*tensors, T("int32", (), value=limit), T("bool", tensors[0].shape)],
        numbers,
        (count + 1,),
        [Op("LESS", (0, count), (count + 1,), LESS)],
    )
    options = ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    made = tuple(range(count, 2 * count))
    return build(Graph([*tensors, *tensors], numbers, made, [Op("WHILE", numbers, made, options)]), cond, body)


@pytest.mark.parametrize("counter", [(), (1,)])
@pytest.mark.parametrize("shape", [(), (4,), (2, 1, 3)])
def test_while(counter: tuple[int, ...], shape: tuple[int, ...]) -> None:
    tensors = [T("int32", counter), T("float32", shape)]
    body = Graph(
        [*tensors, T("int32", (), value=1), T("float32", (), value=0.75), *tensors],
        (0, 1),
        (4, 5),
        [Op("ADD", (0, 2), (4,), ADD), Op("MUL", (1, 3), (5,), MUL)],
    )
    rng = np.random.default_rng(5)
    runs = [[np.full(counter, n, np.int32), draw(rng, T("float32", shape))] for n in (0, 8, 9, 10, 11)]
    assert_runs(while_model(tensors, 10, body), runs)


def test_while_forwards_in_another_order() -> None:
    """(i, a, b) -> (i + 1, b, a), and (i + 1, a + b, a): later outputs are what earlier ones have overwritten."""
    tensors = [T("int32", ()), T("float32", (2,)), T("float32", (2,))]
    count = Op("ADD", (0, 3), (4,), ADD)
    rng = np.random.default_rng(6)
    runs = [[np.array(n, np.int32), *(draw(rng, t) for t in tensors[1:])] for n in (0, 1, 2, 3)]
    for outputs in [(4, 2, 1), (4, 5, 1), (4, 2, 5), (4, 1, 2), (4, 1, 5), (4, 5, 2), (4, 1, 1), (4, 2, 2), (4, 5, 5)]:
        body = Graph(
            [*tensors, T("int32", (), value=1), T("int32", ()), T("float32", (2,))],
            (0, 1, 2),
            outputs,
            [count, Op("ADD", (1, 2), (5,), ADD)],
        )
        assert_runs(while_model(tensors, 3, body), runs)


def test_while_whose_results_are_views_of_what_it_carries() -> None:
    """(i, a, b) -> (i + 1, b reshaped, a reshaped): a later result is what was there before the round."""
    tensors = [T("int32", ()), T("float32", (2, 3)), T("float32", (2, 3))]
    shape, reshape = T("int32", (2,), value=[2, 3]), ("ReshapeOptions", {"new_shape": [2, 3]})
    body = Graph(
        [*tensors, T("int32", (), value=1), shape, *tensors],
        (0, 1, 2),
        (5, 6, 7),
        [Op("ADD", (0, 3), (5,), ADD), Op("RESHAPE", (2, 4), (6,), reshape), Op("RESHAPE", (1, 4), (7,), reshape)],
    )
    rng = np.random.default_rng(11)
    runs = [[np.array(n, np.int32), *(draw(rng, t) for t in tensors[1:])] for n in (0, 0, 2, 9, 1)]
    assert_runs(while_model(tensors, 3, body), runs)


def test_while_that_writes_one_row_in_each_round() -> None:
    """Shapes between the first and the last operator are known only in the round; those of the values stay."""
    tensors = [T("int32", (1,)), T("float32", (6, 2))]
    join, cut = ("ConcatenationOptions", {"axis": 0}), ("StridedSliceOptions", {})
    body = Graph(
        [
            *tensors,
            T("int32", (), value=1),
            T("int32", (2,), value=[0, 0]),
            T("int32", (1,), value=2),
            T("int32", (2,), value=[6, 2]),
            T("int32", (1,), value=0),
            T("float32", (1, 2), value=[[0.5, -2]]),
            T("int32", (1,)),
            T("int32", (2,)),
            T("float32", (1, 2)),
            T("int32", (2,)),
            T("int32", (2,), value=[1, 1]),
            T("float32", (1, 2)),
            T("float32", (6, 2)),
        ],
        (0, 1),
        (8, 14),
        [
            Op("ADD", (0, 2), (8,), ADD),
            Op("CONCATENATION", (0, 4), (9,), join),
            Op("STRIDED_SLICE", (1, 3, 9, 12), (10,), cut),
            Op("CONCATENATION", (8, 6), (11,), join),
            Op("STRIDED_SLICE", (1, 11, 5, 12), (13,), cut),
            Op("CONCATENATION", (10, 7, 13), (14,), join),
        ],
    )
    rng = np.random.default_rng(12)
    runs = [[np.array([n], np.int32), draw(rng, tensors[1])] for n in (0, 0, 3, 0, 4, 9, 0)]
    assert_runs(while_model(tensors, 5, body), runs)


def test_while_with_growing_values() -> None:
    """Each round appends: shapes are only known when the model runs."""
    tensors = [T("int32", ()), T("float32", (1, 2))]
    body = Graph(
        [*tensors, T("int32", (), value=1), T("int32", ()), T("float32", (2, 2))],
        (0, 1),
        (3, 4),
        [Op("ADD", (0, 2), (3,), ADD), Op("CONCATENATION", (1, 1), (4,), ("ConcatenationOptions", {"axis": 0}))],
    )
    rng = np.random.default_rng(7)
    runs = [[np.array(n, np.int32), draw(rng, T("float32", s))] for n, s in [(0, (1, 2)), (2, (1, 2)), (1, (3, 2))]]
    runs += [[np.array(9, np.int32), draw(rng, T("float32", (1, 2)))]]
    assert_runs(while_model(tensors, 3, body), runs)


@pytest.mark.slow
def test_a_round_of_a_loop_takes_few_calls() -> None:
    """Nothing is planned again."""
    tensors = [T("int32", ())]
    body = Graph([*tensors, T("int32", (), value=1), *tensors], (0,), (2,), [Op("ADD", (0, 1), (2,), ADD)])
    model = while_model(tensors, 10_000, body)
    with at_most(calls=10_000 * 100):
        assert run_here(model, [[np.array(0, np.int32)]])[0][0] == 10_000


def test_random_numbers_go_on_within_a_loop() -> None:
    """They begin anew with each call of the loop."""
    tensors = [T("int32", ()), T("float32", (5,))]
    options = ("RandomOptions", {"seed": 3, "seed2": 4})
    body = Graph(
        [
            *tensors,
            T("int32", (), value=1),
            T("int32", (1,), value=5),
            T("int32", ()),
            T("float32", (5,)),
            T("float32", (5,)),
        ],
        (0, 1),
        (4, 6),
        [Op("ADD", (0, 2), (4,), ADD), Op("RANDOM_UNIFORM", (3,), (5,), options), Op("ADD", (1, 5), (6,), ADD)],
    )
    runs = [[np.array(n, np.int32), np.zeros(5, np.float32)] for n in (0, 0, 2, 3, 1)]
    assert_runs(while_model(tensors, 3, body), runs)


def test_random_numbers_of_a_branch_begin_anew() -> None:
    options = ("RandomOptions", {"seed": 3, "seed2": 4})
    branch = Graph(
        [T("float32", (3,)), T("float32", (3,)), T("int32", (1,), value=3), T("float32", (3,))],
        (0, 1),
        (3,),
        [Op("RANDOM_STANDARD_NORMAL", (2,), (3,), options)],
    )
    model = if_model("float32", (3,), branch, binary("float32", (3,), SUM))
    assert_runs(model, both_ways(np.random.default_rng(8), "float32", (3,), (3,)))


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_composite(shape: tuple[int, ...]) -> None:
    options = (
        "StableHLOCompositeOptions",
        {
            "name": "my.sum",
            "decomposition_subgraph_index": 1,
            "composite_attributes": np.frombuffer(EMPTY_MAP, np.uint8),
        },
    )
    main = Graph([T("float32", shape)] * 3, (0, 1), (2,), [Op("STABLEHLO_COMPOSITE", (0, 1), (2,), options)])
    rng = np.random.default_rng(9)
    runs = [[draw(rng, T("float32", s)), draw(rng, T("float32", s))] for s in (shape, shape, (4, 1))]
    assert_runs(build(main, binary("float32", shape, SUM)), runs)


def test_case() -> None:
    """An index out of range takes the last branch. LiteRT has it in its full resolver only."""
    options = ("StablehloCaseOptions", {"branch_subgraph_indices": np.array([1, 2], np.int32)})
    shape = (2, 3)
    main = Graph(
        [T("int32", ()), *[T("float32", shape)] * 3], (0, 1, 2), (3,), [Op("STABLEHLO_CASE", (0, 1, 2), (3,), options)]
    )
    model = build(main, binary("float32", shape, SUM), binary("float32", shape, PRODUCT))
    rng = np.random.default_rng(10)
    runs = [
        [np.array(n, np.int32), draw(rng, T("float32", shape)), draw(rng, T("float32", shape))]
        for n in (0, 1, 2, -1, 0)
    ]
    assert_runs(model, runs, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")


def test_undefined_results() -> None:
    """One tensor as two outputs, and values of different shapes that change places: LiteRT gives stray memory."""
    twice = Graph([T("float32", (2,))] * 3, (0, 1), (2, 2), [SUM])
    model = if_model("float32", (2,), twice, twice, 2)
    with pytest.raises(UndefinedResultError, match="two outputs"):
        run_here(model, both_ways(np.random.default_rng(11), "float32", (2,), (2,)))
    tensors = [T("int32", ()), T("float32", (2,)), T("float32", (3,))]
    body = Graph(
        [*tensors, T("int32", (), value=1), T("int32", ())], (0, 1, 2), (4, 2, 1), [Op("ADD", (0, 3), (4,), ADD)]
    )
    run = [np.array(0, np.int32), np.zeros(2, np.float32), np.zeros(3, np.float32)]
    with pytest.raises(UndefinedResultError, match="given back"):
        run_here(while_model(tensors, 3, body), [run])
    run[0] = np.array(3, np.int32)
    assert_runs(while_model(tensors, 3, body), [run])


def test_refusals() -> None:
    """What cannot run is refused when memory is allocated, wherever it is."""
    unknown = Graph([T("float32", (3,))] * 3, (0, 1), (2,), [Op("Unheard", (0, 1), (2,), custom=b"")])
    with pytest.raises(UnsupportedError, match="Unheard"):
        Interpreter(model_content=if_model("float32", (3,), unknown, unknown)).allocate_tensors()
    fewer = Graph([T("float32", (3,))], (0,), (0,))
    with pytest.raises(ModelError, match="number of inputs"):
        Interpreter(model_content=if_model("float32", (3,), fewer, fewer)).allocate_tensors()
    other = binary("int32", (3,), SUM)
    with pytest.raises(ModelError, match="element type"):
        Interpreter(model_content=if_model("float32", (3,), other, other)).allocate_tensors()
    itself = Graph(
        [T("float32", (3,))] * 3,
        (0, 1),
        (2,),
        [Op("STABLEHLO_COMPOSITE", (0, 1), (2,), ("StableHLOCompositeOptions", {"decomposition_subgraph_index": 1}))],
    )
    with pytest.raises(ModelError, match="calls itself"):
        Interpreter(model_content=if_model("float32", (3,), itself, itself)).allocate_tensors()


def passing(given: str, made: str) -> Graph:
    """(given) -> (made) by CAST, or by ADD where both are the same."""
    op = Op("ADD", (0, 0), (1,), ADD) if given == made else Op("CAST", (0,), (1,))
    return Graph([T(given, (3,)), T(made, (3,))], (0,), (1,), [op])


def stopping(given: str, made: str) -> Graph:
    """A condition that is always false, as `made`."""
    return Graph([T(given, (3,)), T(made, (1,), value=0)], (0,), (1,))


def calling(op: str, given: str, made: str, *called: Graph) -> bytes:
    """`op` on one operand of type `given`, with an output that is declared as `made`."""
    numbers = np.arange(1, 1 + len(called), dtype=np.int32)
    options: dict[str, Options] = {
        "IF": ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2}),
        "WHILE": ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}),
        "STABLEHLO_CASE": ("StablehloCaseOptions", {"branch_subgraph_indices": numbers}),
        "STABLEHLO_COMPOSITE": ("StableHLOCompositeOptions", {"decomposition_subgraph_index": 1}),
    }
    selector = {"IF": T("bool", ()), "STABLEHLO_CASE": T("int32", ())}.get(op)
    tensors = [T(given, (3,)), T(made, (3,)), *([selector] if selector else [])]
    inputs = (2, 0) if selector else (0,)
    return build(Graph(tensors, inputs, (1,), [Op(op, inputs, (1,), options[op])]), *called)


FLOATS, TO_INT, OF_INT = passing("float32", "float32"), passing("float32", "int8"), passing("int8", "float32")
NEVER = stopping("float32", "bool")


@each(
    ("op", "made", "called"),
    [
        ("WHILE", "int8", (NEVER, FLOATS)),
        ("WHILE", "float32", (NEVER, TO_INT)),
        ("WHILE", "int8", (NEVER, TO_INT)),
        ("WHILE", "float32", (NEVER, OF_INT)),
        ("WHILE", "float32", (stopping("int8", "bool"), FLOATS)),
        ("WHILE", "float32", (stopping("float32", "int8"), FLOATS)),
        ("IF", "int8", (FLOATS, FLOATS)),
        ("IF", "float32", (FLOATS, TO_INT)),
        ("IF", "float32", (OF_INT, FLOATS)),
        ("STABLEHLO_CASE", "int8", (FLOATS, FLOATS)),
        ("STABLEHLO_CASE", "float32", (FLOATS, FLOATS, TO_INT)),
        ("STABLEHLO_CASE", "float32", (FLOATS, FLOATS, OF_INT)),
        ("STABLEHLO_COMPOSITE", "int8", (FLOATS,)),
        ("STABLEHLO_COMPOSITE", "float32", (TO_INT,)),
        ("STABLEHLO_COMPOSITE", "float32", (OF_INT,)),
    ],
)
def test_declared_types_must_be_those_of_the_subgraphs(op: str, made: str, called: tuple[Graph, ...]) -> None:
    with pytest.raises(ModelError, match="element type"):
        Interpreter(model_content=calling(op, "float32", made, *called)).allocate_tensors()


def test_a_while_with_fewer_outputs_is_refused() -> None:
    tensors = [T("int32", ()), T("float32", (2,))]
    body = Graph([*tensors, T("int32", (), value=1), T("int32", ())], (0, 1), (3, 1), [Op("ADD", (0, 2), (3,), ADD)])
    cond = Graph([*tensors, T("bool", (1,), value=0)], (0, 1), (2,))
    options = ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    main = Graph([*tensors, T("int32", ())], (0, 1), (2,), [Op("WHILE", (0, 1), (2,), options)])
    with pytest.raises(ModelError, match="number of outputs"):
        Interpreter(model_content=build(main, cond, body)).allocate_tensors()


def test_rounds_of_a_loop_share_what_the_first_ones_made() -> None:
    """A body whose shapes are fixed is bound to its memory once, for later rounds and runs: few calls a round."""
    tensors = [T("int32", ()), T("float32", (2, 3))]
    multiplied = [T("float32", (2, 3))] * 4
    steps = [Op("MUL", (4 + i, 3), (5 + i,), MUL) for i in range(4)]
    first = Op("ADD", (0, 2), (9,), ADD), Op("MUL", (1, 3), (4,), MUL)
    body = Graph(
        [
            *tensors,
            T("int32", (), value=1),
            T("float32", (), value=0.75),
            *multiplied,
            T("float32", (2, 3)),
            tensors[0],
        ],
        (0, 1),
        (9, 8),
        [*first, *steps],
    )
    model = while_model(tensors, 1000, body)
    rng = np.random.default_rng(8)
    runs = [[np.array(n, np.int32), draw(rng, T("float32", (2, 3)))] for n in (0, 990, 998, 1000)]
    assert_runs(model, runs)
    with at_most(calls=1000 * 60):
        run_here(model, runs[:1])
