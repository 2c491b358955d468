"""HASHTABLE_FIND: the values that a hash table has for keys.

| operand | shape              | types                 | quantization |
|---------|--------------------|-----------------------|--------------|
| handle  | (1)                | resource              | none         |
| keys    | any                | int64, string         | none         |
| default | at least 1 element | string, int64 (other) | none         |
| y       | as keys            | as default            | none         |

Keys that are not in the table give the first default. A table that was never filled fails the run.
Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, hashtable_find.cc; static_hashtable.cc Lookup.
"""

from __future__ import annotations

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.families.resources import Table, number_of, require_handle, resource, table_of
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.kernels.operands import require_rank, require_same_type
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The output has the shape of the keys."""
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


KERNELS = (
    Kernel("HASHTABLE_FIND", "resource int64 string -> string", prepare, (1, 1), session=True),
    Kernel("HASHTABLE_FIND", "resource string int64 -> int64", prepare, (1, 1), session=True),
)
