"""LSH_PROJECTION: bits that stay alike for inputs that are alike, by hashing each row of the input with each seed.

| operand | shape                                | types   | quantization |
|---------|--------------------------------------|---------|--------------|
| seeds   | (H, B <= 32)                         | float32 | none         |
| x       | (N > 0, ...)                         | any number | ignored   |
| weights | (N); may be absent: all 1            | float32 | none         |
| y       | dense: (H * B); sparse: (H)          | int32   | none         |

Options: type, DENSE (a bit each) or SPARSE (B bits, the first on top, and their row's range). A bit is 1 where
the weighted sum of a seed's hashes is positive; hashes count as signed.
Source: LiteRT 2.3, lsh_projection.cc Resize, RunningSignBit, SparseLshProjection, DenseLshProjection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.farmhash import fingerprint64
from tflq.model.ir.schema import enum
from tflq.typing import Array

_SPARSE, _DENSE = (enum("LSHProjectionType")[name] for name in ("SPARSE", "DENSE"))
#: 32 bits shift beyond the word, and 31 overflow it from the second row on.
_MOST_SPARSE_BITS = 30


@dataclass(frozen=True, slots=True)
class OpData:
    """Which form."""

    sparse: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
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
    return Prepared((shape,), OpData(sparse), eval_projection)


def eval_projection(data: OpData, seeds: Array, x: Array, weights: Array | None = None) -> Array:
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

KERNELS = (Kernel("LSH_PROJECTION", f"float32 {_NUMBER} float32? -> int32", prepare, (1, 1)),)
