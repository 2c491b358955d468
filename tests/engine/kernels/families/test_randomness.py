"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL against LiteRT: the same numbers, run after run."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, assert_runs, build
from support.graphs import tflq as run_here
from support.single_op import Array, T
from tflq.engine.numerics.random import blocks
from tflq.errors import UndefinedResultError

SEEDS = [(1, 0), (0, 1), (42, 7), (-1, -5), (2**40 + 3, -(2**35)), (87654321, 123456789)]
FILLS = ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"]


def fill(op: str, shape: tuple[int, ...], seeds: tuple[int, int], constant: bool = True) -> bytes:
    asked = T("int32", (len(shape),), value=np.array(shape) if constant else None)
    options = ("RandomOptions", {"seed": seeds[0], "seed2": seeds[1]})
    graph = Graph(
        [asked, T("float32", shape if constant else ())], () if constant else (0,), (1,), [Op(op, (0,), (1,), options)]
    )
    return build(graph)


@each("op", FILLS)
@each("seeds", SEEDS)
def test_constant_shapes(op: str, seeds: tuple[int, int]) -> None:
    for shape in [(1,), (2,), (5,), (3, 7), (2, 3, 4, 5), (), (4000,)]:
        assert_runs(fill(op, shape, seeds), [[], [], []])


@pytest.mark.parametrize("op", FILLS)
def test_shapes_that_the_run_tells(op: str) -> None:
    """Numbers go on whatever their shape."""
    runs = [[np.array(shape, np.int32)] for shape in [(2, 3), (5, 1), (5, 1), (1, 1)]]
    assert_runs(fill(op, (2, 3), (3, 4), constant=False), runs)


@each("type_", ["int32", "int64"])
@each("seeds", SEEDS)
@each("constant", [False, True])
def test_multinomial(type_: str, seeds: tuple[int, int], constant: bool) -> None:
    rng = np.random.default_rng(abs(seeds[0]))
    for rows, classes, samples in [(1, 1, 1), (2, 5, 3), (3, 40, 17), (4, 3, 8), (1, 1000, 200)]:
        options = ("RandomOptions", {"seed": seeds[0], "seed2": seeds[1]})
        count = T("int32", (), value=samples if constant else None)
        made = T(type_, (rows, samples) if constant else ())
        model = build(
            Graph(
                [T("float32", (rows, classes)), count, made],
                (0,) if constant else (0, 1),
                (2,),
                [Op("MULTINOMIAL", (0, 1), (2,), options)],
            )
        )
        runs: list[list[Array]] = []
        for _ in range(3):
            logits = rng.normal(0, 3, (rows, classes)).astype(np.float32)
            logits[rng.random(logits.shape) < 0.1] = rng.choice([-np.inf, np.inf, np.nan, -1e38])
            runs.append([logits] if constant else [logits, np.array(samples, np.int32)])
        assert_runs(model, runs)


def test_no_seeds_is_no_result() -> None:
    with pytest.raises(UndefinedResultError, match="seeds"):
        run_here(fill("RANDOM_UNIFORM", (3,), (0, 0)), [[]])


def test_counters_carry() -> None:
    """Block n of a range is the same wherever the range begins, also across the words of the counter."""
    for first in (0, 2**32 - 2, 2**64 - 2):
        together = blocks(5, 9, first, 4)
        alone = np.concatenate([blocks(5, 9, first + n, 1) for n in range(4)])
        np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(blocks(5, 9, 2**64, 3), blocks(5, 10, 0, 3))
