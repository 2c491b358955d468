"""HASHTABLE_IMPORT: fills a hash table, unless that has been done.

| operand | shape   | types                 | quantization |
|---------|---------|-----------------------|--------------|
| handle  | (1)     | resource              | none         |
| keys    | any     | int64, string         | none         |
| values  | as keys | string, int64 (other) | none         |

Of equal keys the first counts.
Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, hashtable_import.cc; static_hashtable.cc Import.
"""

from __future__ import annotations

from tflq.kernels.families.resources import Table, number_of, require_handle, resource, table_of
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.kernels.operands import require_rank
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Keys and values must have the same shape."""
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


KERNELS = (
    Kernel("HASHTABLE_IMPORT", "resource int64 string ->", prepare, (1, 1), session=True),
    Kernel("HASHTABLE_IMPORT", "resource string int64 ->", prepare, (1, 1), session=True),
)
