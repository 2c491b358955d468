"""HASHTABLE: the handle of a hash table, by number.

| operand | shape | types    | quantization |
|---------|-------|----------|--------------|
| y       | (1)   | resource | none         |

Options: table_id; key_dtype and value_dtype, int64 and string in either order.
Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, hashtable.cc PrepareHashtable, EvalHashtable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.families.resources import Table, resource
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.numerics.arithmetic import Arithmetic

_TYPES = ((TensorType.INT64, TensorType.STRING), (TensorType.STRING, TensorType.INT64))


@dataclass(frozen=True, slots=True)
class OpData:
    """Which table."""

    number: int
    types: tuple[TensorType, TensorType]  # of keys, of values


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuses other types of keys and values."""
    types = TensorType(int(node.options["key_dtype"])), TensorType(int(node.options["value_dtype"]))
    node.check(types in _TYPES, "types of keys and values", got=" and ".join(t.label for t in types))
    return Prepared(((1,),), OpData(int(node.options["table_id"]), types), eval_hashtable)


def eval_hashtable(data: OpData, session: Session) -> Array:
    """An empty table where there is none yet."""
    resource(session, data.number, Table, Table(*data.types))
    return np.array([data.number], object)


KERNELS = (Kernel("HASHTABLE", "-> resource", prepare, (1, 1), session=True),)
