"""HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND, HASHTABLE_SIZE: tables by handle. HASHTABLE_LOOKUP: rows by their keys.

| operator         | operands                                               | outputs                               |
|------------------|--------------------------------------------------------|---------------------------------------|
| HASHTABLE        |                                                        | handle (1): resource                  |
| HASHTABLE_IMPORT | handle, keys, values as keys                           |                                       |
| HASHTABLE_FIND   | handle, keys, default: at least 1 element              | y as keys, of the default's type      |
| HASHTABLE_SIZE   | handle                                                 | y (1): int64, the number of keys      |
| HASHTABLE_LOOKUP | lookup (N), keys (K > 0): int32; values (K, ...): any; | y (N, ...) as values; hits (N): uint8 |
|                  | strings (K)                                            |                                       |

Tables map int64 to string or string to int64; nothing is quantized, except that HASHTABLE_LOOKUP passes quantization.
HASHTABLE: options table_id, key_dtype, value_dtype. HASHTABLE_IMPORT fills a table once; of equal keys the first
counts. HASHTABLE_FIND gives the first default for a missing key; a table that was never filled fails the run.
HASHTABLE_LOOKUP expects keys in ascending order. Missing keys give zeros, or empty strings, and a hit of 0. Keys are
searched as C's bsearch does, the middle first, which decides the result for keys that are out of order or not unique.
BUILTIN_REF has HASHTABLE_LOOKUP only: the others are those of the full resolver.
Source: LiteRT 2.3, hashtable.cc, hashtable_import.cc, hashtable_find.cc, hashtable_size.cc; static_hashtable.cc Import,
Lookup; hashtable_lookup.cc Prepare, Eval; glibc bsearch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.resources import Table, number_of, require_handle, resource, table_of
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Session
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

_TYPES = ((TensorType.INT64, TensorType.STRING), (TensorType.STRING, TensorType.INT64))


@dataclass(frozen=True, slots=True)
class TableData:
    """Number and types of a table."""

    number: int
    types: tuple[TensorType, TensorType]  # of keys, of values


def prepare_table(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse other types of keys and values."""
    types = TensorType(int(node.options["key_dtype"])), TensorType(int(node.options["value_dtype"]))
    node.check(types in _TYPES, "types of keys and values", got=" and ".join(t.label for t in types))
    return Prepared(((1,),), TableData(int(node.options["table_id"]), types), eval_hashtable)


def eval_hashtable(data: TableData, session: Session) -> Array:
    """Make an empty table if there is none yet."""
    resource(session, data.number, Table, Table(*data.types))
    return np.array([data.number], object)


def prepare_import(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one shape for keys and values."""
    handle, keys, values = node.input(0), node.input(1), node.input(2)
    require_rank(node, handle, 1)
    require_handle(node, handle)
    node.check(keys.shape == values.shape, "shape", values, expected=keys.shape, got=values.shape)
    return Prepared((), (keys.type, values.type), eval_import)


def eval_import(types: tuple[object, object], session: Session, handle: Array, keys: Array, values: Array) -> tuple[()]:
    """Source: StaticHashtable::Import."""
    table = table_of(resource(session, number_of(handle), Table), types)
    if not table.filled:
        for key, value in zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True):
            table.entries.setdefault(key, value)
        table.filled = True
    return ()


def prepare_find(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output with the shape of the keys."""
    handle, keys, default, y = node.input(0), node.input(1), node.input(2), node.outputs[0]
    require_rank(node, handle, 1)
    require_handle(node, handle)
    require_same_type(node, default, y)
    return Prepared((keys.shape,), (keys.type, y.type), eval_find)


def eval_find(types: tuple[object, object], session: Session, handle: Array, keys: Array, default: Array) -> Array:
    """Source: StaticHashtable::Lookup."""
    table = table_of(resource(session, number_of(handle), Table), types)
    if not table.filled:
        raise LookupError("the hash table was not filled")
    missing = default.reshape(-1).tolist()[0]
    values = np.empty(keys.size, CARRIER[table.value_type])
    values[:] = [table.entries.get(key, missing) for key in keys.reshape(-1).tolist()]
    return values.reshape(keys.shape)


def prepare_size(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one number."""
    require_rank(node, node.input(0), 1)
    require_handle(node, node.input(0))
    return Prepared(((1,),), None, eval_size)


def eval_size(data: None, session: Session, handle: Array) -> Array:
    """Count equal keys once; a table that was not filled has none."""
    return np.array([len(resource(session, number_of(handle), Table).entries)], np.int64)


def prepare_lookup(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one row for each key."""
    lookup, keys, values = node.input(0), node.input(1), node.input(2)
    require_rank(node, lookup, 1)
    require_rank(node, keys, 1)
    require_same_type(node, values, node.outputs[0])
    node.check(len(values.shape) >= 1, "number of dimensions", values, expected="at least 1", got=0)
    node.check(keys.shape[0] == values.shape[0], "rows", values, expected=keys.shape[0], got=values.shape[0])
    node.check(keys.shape[0] > 0, "no rows", values)
    if values.type.label == "string":
        require_rank(node, values, 1)
    return Prepared((lookup.shape + values.shape[1:], lookup.shape), None, eval_lookup)


def eval_lookup(data: None, lookup: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """Source: hashtable_lookup.cc Eval."""
    rows = search(lookup, keys)
    hits = rows >= 0
    y = values[np.where(hits, rows, 0)]
    y[~hits] = b"" if values.dtype == object else 0
    return y, hits.astype(np.uint8)


def search(lookup: Array, keys: Array) -> Array:
    """Return the row at which bsearch finds each element of `lookup`, or -1. All are searched at once."""
    low, high = np.zeros(lookup.shape, np.int64), np.full(lookup.shape, len(keys), np.int64)
    rows = np.full(lookup.shape, -1, np.int64)
    while (open_ := (low < high) & (rows < 0)).any():
        middle = (low + high) // 2
        key = keys[np.minimum(middle, len(keys) - 1)]
        rows = np.where(open_ & (lookup == key), middle, rows)
        high = np.where(open_ & (lookup < key), middle, high)
        low = np.where(open_ & (lookup > key), middle + 1, low)
    return rows


KERNELS = (
    Kernel("HASHTABLE", "-> resource", prepare_table, (1, 1), session=True),
    Kernel("HASHTABLE_IMPORT", "resource int64 string ->", prepare_import, (1, 1), session=True),
    Kernel("HASHTABLE_IMPORT", "resource string int64 ->", prepare_import, (1, 1), session=True),
    Kernel("HASHTABLE_FIND", "resource int64 string -> string", prepare_find, (1, 1), session=True),
    Kernel("HASHTABLE_FIND", "resource string int64 -> int64", prepare_find, (1, 1), session=True),
    Kernel("HASHTABLE_SIZE", "resource -> int64", prepare_size, (1, 1), session=True),
    Kernel("HASHTABLE_LOOKUP", "int32 int32 any -> any uint8", prepare_lookup, (1, 1)),
)
