"""HASHTABLE_SIZE: how many keys a hash table has.

| operand | shape | types    | quantization |
|---------|-------|----------|--------------|
| handle  | (1)   | resource | none         |
| y       | (1)   | int64    | none         |

Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, hashtable_size.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.resources import Table, number_of, require_handle, resource
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.kernels.operands import require_rank
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """One number."""
    require_rank(node, node.input(0), 1)
    require_handle(node, node.input(0))
    return Prepared(((1,),), None, eval_size)


def eval_size(data: None, session: Session, handle: Array) -> Array:
    """Equal keys count once; a table that was not filled has none."""
    return np.array([len(resource(session, number_of(handle), Table).entries)], np.int64)


KERNELS = (Kernel("HASHTABLE_SIZE", "resource -> int64", prepare, (1, 1), session=True),)
