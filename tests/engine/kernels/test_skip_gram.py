"""SKIP_GRAM, LSH_PROJECTION and EMBEDDING_LOOKUP_SPARSE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, assert_runs, build, texts
from support.graphs import tflq as run_here
from support.single_op import Array, T, draw
from tflq.errors import OperatorFailed, UndefinedResultError

TEXTS = [
    "The quick\t brown fox jumps over the  lazy dog!",
    " leading and trailing ",
    "one",
    "a b c d e f",
    "\n  \n x\v\fy z",
    "a  b",
    "   ",
    "ä ö ü ß",
]


@each("size", [1, 2, 3, 5])
@each("skipped", [0, 1, 3])
@each("shorter", [False, True])
def test_skip_gram(size: int, skipped: int, shorter: bool) -> None:
    options = {"ngram_size": size, "max_skip_size": skipped, "include_all_ngrams": shorter}
    op = Op("SKIP_GRAM", (0,), (1,), ("SkipGramOptions", options))
    model = build(Graph([T("string", (1,)), T("string", (1,))], (0,), (1,), [op]))
    runs = [[texts([text])] for text in TEXTS]
    found = [run for run in runs if run_here(model, [run])[0][0].size]  # LiteRT raises where it gives back no strings
    assert_runs(model, found)
    if size == 1:
        assert len(found) > 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("type_", ["float32", "int32", "int8", "int64", "bool", "float16"])
@pytest.mark.parametrize("weighted", [False, True])
def test_lsh_projection(kind: int, type_: str, weighted: bool) -> None:
    """Rows of every length that the hash treats in its own way."""
    rng = np.random.default_rng(kind)
    for columns in [0, 1, 2, 3, 5, 6, 9, 13, 16, 29, 47, 61, 64, 130]:
        shape = (7, columns) if columns else (7,)
        hashes = (3, int(rng.integers(1, 12)))
        made = T("int32", (3,) if kind == 1 else (3 * hashes[1],))
        tensors = [T("float32", hashes), T(type_, shape), *([T("float32", (7,))] if weighted else []), made]
        given = tuple(range(len(tensors) - 1))
        op = Op("LSH_PROJECTION", given, (len(given),), ("LSHProjectionOptions", {"type": kind}))
        model = build(Graph(tensors, given, (len(given),), [op]))
        assert_runs(model, [[draw(rng, t) for t in tensors[:-1]] for _ in range(2)])


@each("combiner", [0, 1, 2])
@each("rank", [1, 2, 3])
@each("row", [(1,), (5,), (2, 3)])
def test_embedding_lookup_sparse(combiner: int, rank: int, row: tuple[int, ...]) -> None:
    rng = np.random.default_rng(rank)
    tensors = [
        T("int32", (6,)),
        T("int32", (6, rank)),
        T("int32", (rank,)),
        T("float32", (6,)),
        T("float32", (4, *row)),
        T("float32", ()),
    ]
    options = ("EmbeddingLookupSparseOptions", {"combiner": combiner})
    model = build(Graph(tensors, range(5), (5,), [Op("EMBEDDING_LOOKUP_SPARSE", range(5), (5,), options)]))
    runs: list[list[Array]] = []
    for ordered in (True, True, True, False, False):
        indices = rng.integers(0, 3, (6, rank)).astype(np.int32)
        if ordered:
            indices = indices[np.lexsort(indices.T[::-1])]
        ids, shape = rng.integers(0, 4, 6).astype(np.int32), np.full(rank, 3, np.int32)
        runs.append([ids, indices, shape, draw(rng, tensors[3]), draw(rng, tensors[4])])
    assert_runs(model, runs)
    ids, indices, shape, weights, table = runs[0]
    with pytest.raises(OperatorFailed, match="outside"):
        run_here(model, [[ids + np.int32(9), indices, shape, weights, table]])
    if rank > 1:
        with pytest.raises(UndefinedResultError, match="outside"):
            run_here(model, [[ids, indices + np.int32(9), shape, weights, table]])
