"""Which operators XNNPACK takes: the rule of each is stated once, in its file; what it leaves runs as without it.

Conditions that several operators share are here. Operands that an operator's shape follows from must be constant in the
file for all of them.
Source: LiteRT 2.3 xnnpack_delegate.cc Delegate::PrepareOpsToDelegate, Subgraph::VisitNode and what these call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq.interrupts import import_whole
from tflq.ir import TensorType
from tflq.kernels.exactness import close
from tflq.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.kernels.reference.registry import REFERENCE
from tflq.kernels.table import KernelTable, Rows, find
from tflq.numerics.arithmetic import Arithmetic

#: The largest rank that XNNPACK knows.
_RANK = 6

_EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)


@dataclass(frozen=True, slots=True)
class Delegate:
    """One row: XNNPACK's kernel, and whether it is given a node."""

    kernel: Kernel
    takes: Callable[[Node], bool]

    def over(self, base: KernelTable) -> Kernel:
        """The row, with what `base` has for nodes that are not taken."""
        session = any(row.session for row in base.get(self.kernel.op, ()) if row.signature == self.kernel.signature)

        def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
            static = all(node.input(position).is_constant for position in self.kernel.shape_operands)
            row = self.kernel if static and self.takes(node) else without(node, base, self.kernel.sparse)
            prepared = row.prepare(node, arithmetic)
            return replace(prepared, alone=True) if session and not row.session else prepared

        return replace(self.kernel, prepare=prepare, session=session)


def without(node: Node, base: KernelTable, sparse: tuple[int, ...]) -> Kernel:
    """The row of `base` for a node."""
    types = [None if operand is None else operand.type for operand in node.inputs]
    row = find(base, node.op, node.version, types, [operand.type for operand in node.outputs], sparse)
    if row is None:
        node.refuse("is not taken by XNNPACK, and has no other kernel")
    return row


#: What is said of XNNPACK's float results.
UNCLAIMED = close("XNNPACK's float kernels have orders and polynomials of their own, which depend on the CPU")


def has_floats_only(row: Kernel) -> bool:
    """Whether a row takes float32 or float16 data, and nothing quantized."""
    result = row.signature.outputs[-1]
    return any(
        result.is_only(type_) and all(slot.is_only(type_, TensorType.INT32) for slot in row.signature.slots)
        for type_ in (TensorType.FLOAT32, TensorType.FLOAT16)
    )


def delegation(
    package: str,
    files: Mapping[str, str],
    base: KernelTable,
    unclaimed: Collection[str] = (),
    doubtful: Collection[str] = (),
) -> KernelTable:
    """XNNPACK's rows over those of `base`. `files`: which modules of `package` hold an operator's DELEGATES.

    Float rows of the operators in `unclaimed` are the reference's, with results that are not claimed to be equal; nor
    are those of the files in `doubtful`.
    """

    def rows(op: str) -> Rows:
        taken = [_unless(name in doubtful, row) for name in files.get(op, "").split() for row in delegates(op, name)]
        floats = [row for row in REFERENCE.get(op, ()) if op in unclaimed and has_floats_only(row)]
        return (*taken, *(replace(row, exactness=UNCLAIMED) for row in floats))

    def delegates(op: str, name: str) -> list[Kernel]:
        module = import_whole(f"{package}.{name}")
        return [row.over(base) for row in module.DELEGATES if row.kernel.op == op]

    return KernelTable((*(op for op in unclaimed if op in base), *files), rows)


def without_uint8(table: KernelTable) -> KernelTable:
    """What XNNPACK takes while its unsigned quantized operators are switched off."""

    def narrowed(row: Kernel) -> Kernel | None:
        signature = row.signature.without(TensorType.UINT8)
        return None if signature is None else row.taking(signature)

    return table.each(narrowed)


def _unless(doubtful: bool, row: Kernel) -> Kernel:
    return replace(row, exactness=UNCLAIMED) if doubtful else row


def is_quantized(operand: Operand) -> bool:
    """Whether an 8-bit operand has one scale, along dimension 0. Source: CheckTensorFloat32OrQUInt8Type."""
    q = operand.quantization
    return operand.type in _EIGHT_BITS and q is not None and len(q.scale) == 1 and q.quantized_dimension == 0


def has_filter_scales(operand: Operand, dimension: int) -> bool:
    """Whether weights have one scale, or several along `dimension`. Source: CheckTensorFloat32OrQCInt8Type."""
    q = operand.quantization
    if q is None or len(q.scale) == 0:
        return False
    if operand.type == TensorType.UINT8:
        return is_quantized(operand) and is_normal(q.scale)
    along = len(q.scale) == 1 or q.quantized_dimension == dimension
    return along and is_normal(q.scale) and (len(q.scale) == 1 or not int(q.zero_point[0]))


def has_bias_scales(operand: Operand) -> bool:
    """Whether a bias is quantized along dimension 0. Source: CheckTensorFloat32OrFloat16OrQCInt32Type."""
    q = operand.quantization
    if q is None or len(q.scale) == 0 or q.quantized_dimension != 0:
        return False
    return is_normal(q.scale) and not int(q.zero_point[0])


def is_normal(scales: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> bool:
    """Whether all are positive and normal. Source: xnn_validate_quantized_tensor."""
    return bool(np.all(np.isfinite(scales) & (scales >= np.finfo(np.float32).tiny)))


def has_shape(operand: Operand, lowest: int = 0, highest: int = _RANK) -> bool:
    """Whether the rank lies between these, and no dimension is 0. Source: CheckTensorShape."""
    return lowest <= len(operand.shape) <= highest and min(operand.shape, default=1) > 0


def ratio_lies(x: Operand, y: Operand, lowest: float, beyond: float) -> bool:
    """Whether scale(x) / scale(y), in float32, is in [lowest, beyond). Source: CheckTensorsInputOutputScale."""
    with np.errstate(all="ignore"):
        return bool(lowest <= x.scale / y.scale < beyond)
