"""STABLEHLO_COMPOSITE: a named operator, with a subgraph for runtimes without it.

STABLEHLO_COMPOSITE: run the subgraph that decomposes an operator.

| operand | type              | quantization   |
|---------|-------------------|----------------|
| x ...   | any, at least one | any            |
| y ...   | the subgraph's    | the subgraph's |

Option decomposition_subgraph_index. The name, the attributes and their version do not count. Source: LiteRT 2.3
stablehlo_composite.cc.

STABLEHLO_COMPOSITE "odml.scaled_dot_product_attention" by XNNPACK: the subgraph is never run.

| operand | shape      | type    |                                           |
|---------|------------|---------|-------------------------------------------|
| query   | B, T, N, H | float32 |                                           |
| key     | B, S, K, H | float32 | K heads, of which each serves N / K heads |
| value   | B, S, K, H | float32 |                                           |
| mask    | ..., T, S  | float32 | optional; broadcasts to B, N, T, S        |
| output  | B, T, N, H | float32 |                                           |

Attributes, a FlexBuffers map: `scale` and `logit_cap`, float32. The query is multiplied by `scale`, or by 1 / sqrt(H)
if there is none; sums over H and then over S are chains of fused multiply-adds; the softmax is that of SOFTMAX. With a
`logit_cap`, scores s become tanh(s / cap) * cap before the mask is added.
Attributes of other types are ignored; of floats of other sizes, the first four bytes count. Refused: several batches
with one head of keys, which XNNPACK takes for one.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitScaledDotAttentionCompositeNode, VisitDotAttentionNode; flexbuffers_util.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flatbuffers import flexbuffers

from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.delegation import UNCLAIMED, delegate, has_shape
from tflq.engine.kernels.families.ordered import NO_CLAMP, matrix_products
from tflq.engine.kernels.families.resources import prepare_call
from tflq.engine.kernels.families.xnnpack import OpData as Elements
from tflq.engine.kernels.families.xnnpack import Operation, softmax
from tflq.engine.kernels.families.xnnpack import evaluate as apply
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.xnnpack import TANH
from tflq.model.ir import TensorType
from tflq.typing import Array

DECOMPOSITION = "decomposition_subgraph_index"


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require at least one input, as LiteRT does."""
    node.input(0)
    return prepare_call(node, int(node.options[DECOMPOSITION]))


_REFERENCE = (Kernel("STABLEHLO_COMPOSITE", "any* -> any*", prepare, (1, 1), session=True, calls=(DECOMPOSITION,)),)


_NAME = "odml.scaled_dot_product_attention"


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    scale: np.float32  # of the query
    cap: np.float32 | None  # of the scores
    lanes: int  # of the softmax


def takes(node: Node) -> bool:
    """Return whether it is an attention of floats, whose lengths agree."""
    present = [operand for operand in (*node.inputs[:4], node.outputs[0]) if operand is not None]
    if node.options["name"] != _NAME or len(node.inputs) < 3 or len(present) < min(len(node.inputs), 4) + 1:
        return False
    if not all(operand.type == TensorType.FLOAT32 and has_shape(operand, 1) for operand in present):
        return False
    if not all(has_shape(operand, 2) for operand in present[:3]):
        return False
    query, key, value = (node.input(position).shape for position in range(3))
    mask = node.optional(3)
    return query[-1] == key[-1] == value[-1] and (mask is None or key[1] == value[1] == mask.shape[-1])


def prepare_xnnpack(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse operands that the delegate takes and cannot run."""
    query, key, value = (node.input(position) for position in range(3))
    for operand in (query, key, value):
        require_rank(node, operand, 4)
    batches, heads = query.shape[0], key.shape[2]
    node.check(value.shape == key.shape, "shape", value, expected=key.shape, got=value.shape)
    node.check(query.shape[2] % heads == 0, "heads", query, expected=f"a multiple of {heads}", got=query.shape[2])
    node.check(key.shape[0] == (1 if heads == 1 else batches), "batches", key, expected=batches, got=key.shape[0])
    mask, scores = node.optional(3), (batches, query.shape[2], query.shape[1], key.shape[1])
    if mask is not None:
        fits = len(mask.shape) <= 4 and all(a in (1, b) for a, b in zip(mask.shape[::-1], scores[::-1], strict=False))
        node.check(fits, "shape", mask, expected=f"broadcasts to {scores}", got=mask.shape)
    scale = _attribute(node, "scale")
    default = np.float32(1 / np.sqrt(query.shape[3]))
    cap = _attribute(node, "logit_cap")
    data = OpData(query.shape, default if scale is None else scale, cap, arithmetic.xnnpack_lanes)
    return Prepared((query.shape,), data, evaluate, work=query.shape[1] * int(np.prod(key.shape)) * query.shape[2])


def _attribute(node: Node, name: str) -> np.float32 | None:
    """Return the four bytes where a float of the attributes lies, regardless of its size; None if there is none."""
    try:
        value = flexbuffers.GetRoot(bytes(node.options["composite_attributes"])).AsMap[name]
        place = bytes(value._buf[:4]) if value.IsFloat else None
    except KeyError:
        return None
    except Exception as error:
        node.refuse(f"composite attributes are no FlexBuffers map: {type(error).__name__}: {error}")
    if place is None:
        return None
    node.check(len(place) == 4, f"attribute {name}", expected="4 bytes", got=len(place))
    return np.float32(np.frombuffer(place, "<f4")[0])


def evaluate(data: OpData, query: Array, key: Array, value: Array, *rest: Array | None) -> Array:
    """Rounding: the scaled query, fused products and sums, steps of the cap, sums with the mask; then as SOFTMAX."""
    batches, times, heads, depth = data.shape
    groups, length = key.shape[2], key.shape[1]
    scaled = _each(Operation.MULTIPLY, query, data.scale)
    grouped = scaled.transpose(0, 2, 1, 3).reshape(batches, groups, heads // groups, times, depth)
    keys = key.transpose(0, 2, 3, 1)[:, :, None]
    scores = matrix_products(grouped, keys, (*grouped.shape[:4], length)).reshape(batches, heads, times, length)
    if data.cap is not None:
        scores = _each(Operation.MULTIPLY, TANH(_each(Operation.DIVIDE, scores, data.cap)), data.cap)
    if rest and rest[0] is not None:
        scores = _each(Operation.ADD, rest[0], scores)
    weights = softmax(data.lanes, scores).reshape(*grouped.shape[:4], length)
    values = value.transpose(0, 2, 1, 3)[:, :, None]
    out = matrix_products(weights, values, grouped.shape).reshape(batches, heads, times, depth)
    return np.ascontiguousarray(out.transpose(0, 2, 1, 3))


def _each(operation: Operation, a: Array, b: Array | np.float32) -> Array:
    return np.asarray(apply(Elements(operation, NO_CLAMP), a, np.asarray(b)))


_ROWS = (delegate(Kernel("STABLEHLO_COMPOSITE", "any* -> any*", prepare_xnnpack, (1, 1)), takes),)

_XNNPACK = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *_ROWS),
    *valid(xnnpack("litert-2.1", cpu="arm64 wasm"), *promising(UNCLAIMED, _ROWS)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _ROWS)),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_XNNPACK)
