"""EMBEDDING_LOOKUP, LSH_PROJECTION, SKIP_GRAM.

EMBEDDING_LOOKUP: rows of a table, by index.

| operand | shape                                | types                   | quantization                            |
|---------|--------------------------------------|-------------------------|-----------------------------------------|
| indices | (n)                                  | int32                   |                                         |
| table   | (rows, ...), at least two dimensions | every 8 to 64 bit type  | none; or per tensor, row or block       |
| y       | (n, ...)                             | as table, or a float    | passed by                               |

A table of int8, uint8 (read as int8), int4 or int2 gives rows of float32 or float16: code times scale, first zero point
0 for float32. Scales of blocks along rows (float16, in a tensor of their own) go with int4 and int2. Rows and blocks of
narrow types are read from the byte in which they begin, even where they begin in its middle.
An index outside the table fails the run.
Source: LiteRT 2.3, embedding_lookup.cc Prepare, EvalSimple, EvalHybrid, EvalBlockwise, Unpack4Bit, Unpack2Bit.

EMBEDDING_LOOKUP_SPARSE: rows of a table, weighted and added up by a sparse tensor of row numbers.

| operand | shape                     | types   | quantization |
|---------|---------------------------|---------|--------------|
| ids     | (M)                       | int32   | none         |
| indices | (M, R), without the last: where each id goes | int32 | none |
| shape   | (R)                       | int32   | none         |
| weights | (M)                       | float32 | none         |
| table   | (rows, ...)               | float32 | none         |
| y       | shape[:-1] + table[1:]    | float32 | none         |

Options: combiner: SUM, MEAN (divided by the sum of the weights), SQRTN (by the root of the sum of their squares). Sums
are divided whenever the place changes, so indices should be in order. An id outside the table fails the run; an index
outside the shape is refused, as LiteRT then divides memory that is not its own.
Source: LiteRT 2.3, embedding_lookup_sparse.cc Eval, FinalizeAggregation.

LSH_PROJECTION: bits that stay alike for inputs that are alike, by hashing each row of the input with each seed.

| operand | shape                                | types   | quantization |
|---------|--------------------------------------|---------|--------------|
| seeds   | (H, B <= 32)                         | float32 | none         |
| x       | (N > 0, ...)                         | any number | ignored   |
| weights | (N); may be absent: all 1            | float32 | none         |
| y       | dense: (H * B); sparse: (H)          | int32   | none         |

Options: type, DENSE (a bit each) or SPARSE (B bits, the first on top, and their row's range). A bit is 1 where
the weighted sum of a seed's hashes is positive; hashes count as signed.
Source: LiteRT 2.3, lsh_projection.cc Resize, RunningSignBit, SparseLshProjection, DenseLshProjection.

SKIP_GRAM: the word sequences of a text, some words of which may be skipped.

| operand | shape           | types  | quantization |
|---------|-----------------|--------|--------------|
| x       | at least 1 text | string | none         |
| y       | (number found)  | string | none         |

Options: ngram_size, max_skip_size (words between two neighbours), include_all_ngrams (shorter ones too). The first text
counts. Words are separated by white space of the C locale; a space at the very start belongs to the first word.
Source: LiteRT 2.3, skip_gram.cc Eval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import integers, require_rank, require_rank_from, require_same_type, require_size
from tflq.engine.kernels.families.hybrid import block_scales, is_blockwise, read_as_int8
from tflq.engine.kernels.families.movement import SIZED, check_positions
from tflq.engine.kernels.kernel import Call, Form, Kernel, Node, Operand, Prepared, Shape, filling
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.random import fingerprint64
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, STORED_BITS, TensorType
from tflq.model.ir.model import enum
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """How rows become reals."""

    row: Shape  # shape of a row
    block: int  # elements that share a scale
    scales: Array  # (rows, blocks), float32: real units per LSB, divided by `unit`
    per_byte: int  # codes in a byte
    unit: int  # what the source has narrow codes multiplied by
    dtype: np.dtype[Any]  # of the output


def prepare_plain(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare to copy rows as they are."""
    scales = node.input(1).quantization
    if scales is not None and len(scales.scale) > 1:
        node.reject("several scales", node.input(1), expected="a result of floats", got=node.outputs[0].type.label)
    table = check_table(node)
    node.check(not is_blockwise(table), "quantization", table, expected="per tensor or row", got="scales of blocks")
    require_same_type(node, table, node.outputs[0])
    return Prepared(((*node.input(0).shape, *table.shape[1:]),), None, eval_plain)


def prepare_scaled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one scale for the table, for every row or for every block."""
    table = check_table(node)
    length = math.prod(table.shape[1:])
    if is_blockwise(table):
        scales, block = block_scales(node, table, length)
    else:
        scales, block = row_scales(node, table), length
    bits = STORED_BITS[table.type]
    data = Scaled(
        row=table.shape[1:],
        block=block,
        scales=scales / np.float32(2 ** (8 - bits)),
        per_byte=8 // bits,
        unit=2 ** (8 - bits),
        dtype=CARRIER[node.outputs[0].type],
    )
    return Prepared(((*node.input(0).shape, *table.shape[1:]),), data, eval_scaled)


def row_scales(node: Node, table: Operand) -> Array:
    """Return the scales as (rows, 1), float32."""
    rows, q = table.shape[0], table.quantization
    if q is None or not len(q.scale):
        return np.zeros((rows, 1), np.float32)
    if node.outputs[0].type == TensorType.FLOAT32:
        node.check(int(q.zero_point[0]) == 0, "zero point", table, expected=0, got=q.zero_point[:1])
    if len(q.scale) == 1:
        return np.full((rows, 1), table.scale, np.float32)
    fits = len(q.scale) == rows and q.quantized_dimension == 0 and len(q.zero_point) in (1, rows)
    node.check(fits, "scales", table, expected=f"{rows} along dimension 0", got=len(q.scale))
    return q.scale.astype(np.float32)[:, None]


def check_table(node: Node) -> Operand:
    """Return the table, of at least two dimensions; require a vector of indices."""
    table = node.input(1)
    require_rank(node, node.input(0), 1)
    require_rank_from(node, table, 2)
    return table


def eval_plain(_: None, indices: Array, table: Array) -> Array:
    """Source: EvalSimple, which leaves the output as it was where the table has no rows."""
    if not table.shape[0] and indices.size:
        raise UndefinedResultError("embedding_lookup", "rows of a table without rows")
    check_positions("embedding_lookup", indices, table.shape[0])
    return table.take(indices, 0)


def _scaled_form(data: Scaled, indices: Array, table: Array) -> Form:
    return (len(indices), *data.row), data.dtype


@filling(_scaled_form)
def eval_scaled(data: Scaled, out: Array, indices: Array, table: Array) -> Call:
    """Source: EvalHybrid, EvalBlockwise. Rounding: one float32 product; to float16 once more."""
    codes, blocks = read_as_int8(table).reshape(-1), data.scales.shape[1]
    rows = out.reshape(len(indices), blocks, data.block)
    widths = data.per_byte, np.float32(data.unit)

    def call() -> None:
        check_positions("embedding_lookup", indices, table.shape[0])
        if data.dtype == np.float32:
            _scale(indices, rows, codes, data.scales, *widths)
        elif data.block < 1 << (8 // data.per_byte):
            reals = np.empty(rows.shape, np.float32)
            _scale(indices, reals, codes, data.scales, *widths)
            rows[...] = reals
        else:  # a table of all codes for each block
            lowest = -128 // data.unit
            every = np.arange(lowest, -lowest, dtype=np.float32) * np.float32(data.unit)
            reals = (every * data.scales.take(indices, 0)[..., None]).astype(np.float16)
            _choose(indices, rows.view(np.uint16), codes, reals.view(np.uint16), data.per_byte)

    return call


@writes("out")
@in_pieces(lambda indices, out, *_: out.size, indices="n", out="n")
@compiled
def _scale(indices: Array, out: Array, codes: Array, scales: Array, per_byte: Int, unit: Real) -> None:
    """Fill `out` (N, blocks, elements) with the rows at `indices` (N): code times `unit` times the block's scale.

    Eval guarantees: `codes` are whole rows, `scales` (rows, blocks); `indices` are numbers of rows.
    """
    for n in range(out.shape[0]):
        row = np.int64(indices[n])
        for b in range(out.shape[1]):
            start = (row * out.shape[1] + b) * out.shape[2]
            start -= start % per_byte
            scale, part, reals = scales[row, b], codes[start : start + out.shape[2]], out[n, b]
            for k in range(reals.size):
                reals[k] = np.float32(part[k]) * unit * scale


@in_pieces(lambda indices, out, *_: out.size, indices="n", out="n", values="n")
@compiled
def _choose(indices: Array, out: Array, codes: Array, values: Array, per_byte: Int) -> None:
    """Fill `out` (N, blocks, elements) with the `values` (N, blocks, numbers) of codes in the rows at `indices` (N).

    Half of the values, a power of two of them, are those of codes below 0.

    Eval guarantees: `codes` are whole rows; `indices` are numbers of rows.
    """
    lowest = values.shape[2] // 2
    for n in range(out.shape[0]):
        row = np.int64(indices[n])
        for b in range(out.shape[1]):
            start = (row * out.shape[1] + b) * out.shape[2]
            start -= start % per_byte
            part, reals = codes[start : start + out.shape[2]], out[n, b]
            for k in range(reals.size):
                reals[k] = values[n, b, (np.int64(part[k]) + lowest) & (values.shape[2] - 1)]


_EMBEDDING_LOOKUP = (
    Kernel("EMBEDDING_LOOKUP", "int32 int8|uint8|int4|int2 -> float32|float16", prepare_scaled, (1, 5)),
    Kernel("EMBEDDING_LOOKUP", f"int32 {SIZED} -> {SIZED}", prepare_plain, (1, 5)),
)


_SUM, _MEAN, _SQRTN = (enum("CombinerType")[name] for name in ("SUM", "MEAN", "SQRTN"))


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """`strides` turns an index into a place, in rows of the output."""

    combiner: int
    places: int
    strides: Array
    shape: Shape


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require as many ids as indices and weights."""
    ids, indices, shape, weights, table = (node.input(position) for position in range(5))
    for operand, rank in ((ids, 1), (indices, 2), (shape, 1), (weights, 1)):
        require_rank(node, operand, rank)
    require_rank_from(node, table, 2)
    for operand in (indices, weights):
        node.check(operand.shape[0] == ids.shape[0], "entries", operand, expected=ids.shape[0], got=operand.shape[0])
    node.check(shape.shape[0] == indices.shape[1], "rank", shape, expected=indices.shape[1], got=shape.shape[0])
    node.check(shape.shape[0] >= 1, "rank", shape, expected="at least 1", got=0)
    kept = integers(node, 2)[:-1]
    require_size(node, node.outputs[0], kept)
    strides = np.array([prod(kept[i + 1 :]) for i in range(len(kept))], np.int64)
    output_shape = kept + table.shape[1:]
    return Prepared(
        (output_shape,), OpData(int(node.options["combiner"]), prod(kept), strides, output_shape), eval_sparse
    )


def eval_sparse(data: OpData, ids: Array, indices: Array, _: Array, weights: Array, table: Array) -> Array:
    """Evaluate in float32: one product and one sum for each element, in the order of the entries."""
    check_positions("embedding_lookup_sparse", ids, len(table))
    places = indices[:, :-1].astype(np.int64) @ data.strides
    if np.any((places < 0) | (places >= data.places)):
        raise UndefinedResultError("embedding_lookup_sparse", f"an index lies outside {list(data.shape)}")
    rows = np.ascontiguousarray(table).reshape(len(table), -1)
    out = np.zeros((data.places, rows.shape[1]), np.float32)
    state, sums = np.zeros(2, np.int64), np.zeros(2, np.float32)
    _combine(np.ascontiguousarray(ids), places, np.ascontiguousarray(weights), rows, data.combiner, out, state, sums)
    _finish(data.combiner, state[1], sums[0], sums[1], out, state[0])
    return out.reshape(data.shape)


@in_pieces(lambda ids, places, weights, rows, *_: len(ids) * rows[:1].size, ids="i", places="i", weights="i")
@compiled
def _combine(
    ids: Array, places: Array, weights: Array, rows: Array, combiner: Int, out: Array, state: Array, sums: Array
) -> None:
    """Add weighted rows. `state` is the place that is summed up and its number of rows.

    `sums` (float32) are those of weights and of their squares.

    Prepare guarantees: `ids`, `places` and `weights` have the same size, rows of `rows` and `out` the same length.
    Eval guarantees: ids name rows of `rows`, places rows of `out`.
    """
    for i in range(len(ids)):
        if places[i] != state[0]:
            _finish(combiner, state[1], sums[0], sums[1], out, state[0])
            state[0], state[1] = places[i], 0
            sums[0], sums[1] = np.float32(0), np.float32(0)
        state[1] += 1
        sums[1] += weights[i] * weights[i]
        sums[0] += weights[i]
        for k in range(rows.shape[1]):
            out[state[0], k] += rows[ids[i], k] * weights[i]


@compiled
def _finish(combiner: Int, count: Int, total: Real, squares: Real, out: Array, place: Int) -> None:
    """Divide a sum as `combiner` demands. The caller guarantees: `place` is a row of `out` if `count` is not 0."""
    if combiner == _SUM or count == 0:
        return
    divisor: Real = np.float32(1)
    if combiner == _MEAN:
        divisor = total
    elif combiner == _SQRTN:
        divisor = np.sqrt(squares)
    for k in range(out.shape[1]):
        out[place, k] /= divisor


_EMBEDDING_LOOKUP_SPARSE = (
    Kernel("EMBEDDING_LOOKUP_SPARSE", "int32 int32 int32 float32 float32 -> float32", prepare, (1, 1), (2,)),
)


_SPARSE, _DENSE = (enum("LSHProjectionType")[name] for name in ("SPARSE", "DENSE"))
#: 32 bits shift beyond the word, and 31 overflow it from the second row on.
_MOST_SPARSE_BITS = 30


@dataclass(frozen=True, slots=True)
class LshProjectionData:
    """Which form."""

    sparse: bool


def prepare_lsh_projection(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one weight for each row."""
    seeds, x, weights = node.input(0), node.input(1), node.optional(2)
    kind = int(node.options["type"])
    require_rank(node, seeds, 2)
    node.check(kind in (_SPARSE, _DENSE), "type", got=kind)
    sparse = kind == _SPARSE
    most = _MOST_SPARSE_BITS if sparse and seeds.shape[0] > 1 else 32
    node.check(seeds.shape[1] <= most, "bits", seeds, expected=f"at most {most}", got=seeds.shape[1])
    node.check(len(x.shape) > 0 and x.shape[0] > 0, "rows", x, expected="at least 1", got=list(x.shape))
    if weights is not None:
        require_rank(node, weights, 1)
        node.check(weights.shape[0] == x.shape[0], "weights", weights, expected=x.shape[0], got=weights.shape[0])
    shape = (seeds.shape[0],) if sparse else (seeds.shape[0] * seeds.shape[1],)
    return Prepared((shape,), LshProjectionData(sparse), eval_projection)


def eval_projection(data: LshProjectionData, seeds: Array, x: Array, weights: Array | None = None) -> Array:
    """Hash keys: a seed's four bytes and a row's."""
    rows = np.ascontiguousarray(x).reshape(len(x), -1).view(np.uint8)
    bits = np.empty(seeds.size, np.int32)
    for place, seed in enumerate(np.ascontiguousarray(seeds).reshape(-1, 1).view(np.uint8)):
        keys = np.concatenate([np.broadcast_to(seed, (len(rows), 4)), rows], axis=1)
        bits[place] = _sign_bit(fingerprint64(keys), weights)
    if not data.sparse:
        return bits
    columns = seeds.shape[1]
    signature = np.zeros(len(seeds), np.int64)
    for column in bits.reshape(seeds.shape).T:
        signature = (signature << 1) | column
    ranges = np.arange(len(seeds), dtype=np.int64) << columns
    return np.asarray(signature + ranges, np.int64).astype(np.int32)  # wraps


def _sign_bit(hashes: Array, weights: Array | None) -> int:
    """Return 1 if the float64 sum in row order is positive, else 0."""
    values = hashes.view(np.int64).astype(np.float64)
    return int(np.add.accumulate(values if weights is None else weights * values)[-1] > 0)


_NUMBER = "float32|float16|float64|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|bfloat16|complex64"

_LSH_PROJECTION = (Kernel("LSH_PROJECTION", f"float32 {_NUMBER} float32? -> int32", prepare_lsh_projection, (1, 1)),)


_SPACES = b" \t\n\v\f\r"


@dataclass(frozen=True, slots=True)
class SkipGramData:
    """The options."""

    size: int
    most_skipped: int
    shorter_too: bool


def prepare_skip_gram(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare outputs whose number of sequences depends on the text."""
    x = node.input(0)
    node.check(0 not in x.shape, "no text", x, got=list(x.shape))
    options = node.options
    data = SkipGramData(int(options["ngram_size"]), int(options["max_skip_size"]), bool(options["include_all_ngrams"]))
    return Prepared((None,), data, eval_skip_gram)


def eval_skip_gram(data: SkipGramData, x: Array) -> Array:
    """Return sequences in the order in which the recursion finds them."""
    words = words_of(x.flat[0])
    indices = grams(data, len(words)) if 0 <= data.size <= len(words) else []
    y = np.empty(len(indices), object)
    y[:] = [b" ".join(words[i] for i in gram) for gram in indices]
    return y


def words_of(text: bytes) -> list[bytes]:
    """Return the words of a text. Its first character is never taken for a separator."""
    words, start = [], 0
    for i in range(1, len(text)):
        if text[i] in _SPACES:
            if i > start and text[start] not in _SPACES:
                words.append(text[start:i])
            start = i + 1
    return [*words, text[start:]] if len(text) > start else words


def grams(data: SkipGramData, count: int) -> list[tuple[int, ...]]:
    """Return the positions of the words of each sequence, out of `count` words."""
    stack, depth = [0] * data.size, 1
    indices: list[tuple[int, ...]] = []
    while depth >= 0:
        if _goes_deeper(data, stack, depth, count):
            stack[depth] += 1
            depth += 1
            if depth < data.size:
                stack[depth] = stack[depth - 1]
        else:
            if 0 < depth <= data.size and (data.shorter_too or depth == data.size):
                indices.append(tuple(stack[:depth]))
            depth -= 1
    return indices


def _goes_deeper(data: SkipGramData, stack: list[int], depth: int, count: int) -> bool:
    """Return whether the place at `depth` can take the next word. Source: ShouldStepInRecursion."""
    if depth >= data.size or stack[depth] + 1 >= count:
        return False
    return depth == 0 or stack[depth] - stack[depth - 1] <= data.most_skipped


_SKIP_GRAM = (Kernel("SKIP_GRAM", "string -> string", prepare_skip_gram, (1, 1)),)

#: The rows of all operators above.
KERNELS = (*_EMBEDDING_LOOKUP, *_EMBEDDING_LOOKUP_SPARSE, *_LSH_PROJECTION, *_SKIP_GRAM)
