"""Which operators XNNPACK takes: the rule of each is stated once, in its file; what it leaves runs as without it.

Conditions that several operators share are here. Operands that an operator's shape follows from must be constant in the
file for all of them.
Source: LiteRT 2.3 xnnpack_delegate.cc Delegate::PrepareOpsToDelegate, Subgraph::VisitNode and what these call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import SINCE_2_1
from tflq.engine.kernels.facts.fact import UNCLAIMED as UNCLAIMED_FLOATS
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, promising
from tflq.engine.kernels.table import KernelTable, Rows, find
from tflq.engine.kernels.validity import Runtime, When, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType

#: The last of the fused activations that XNNPACK has.
ACTIVATIONS = 3
#: The largest rank that XNNPACK knows.
RANK = 6

_EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)
#: Types of codes -> the smallest and the largest.
_CODES = {TensorType.INT8: (-128, 127), TensorType.UINT8: (0, 255), TensorType.INT4: (-8, 7), TensorType.INT2: (-2, 1)}

#: Operators that the delegate knows; it takes nodes of them, and of no others. Source: Subgraph::VisitNode.
_VISITED = (
    "ABS ADD ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL CEIL CONCATENATION CONV_2D COS DEPTHWISE_CONV_2D "
    "DEPTH_TO_SPACE DEQUANTIZE DIV ELU EXP EXPAND_DIMS FLOOR FULLY_CONNECTED GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC "
    "MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL NEG PAD PRELU QUANTIZE READ_VARIABLE REDUCE_MAX REDUCE_MIN RELU RELU6 "
    "RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR ROUND RSQRT SIN SLICE SOFTMAX SPACE_TO_DEPTH SPLIT SQRT SQUARE "
    "SQUARED_DIFFERENCE STABLEHLO_COMPOSITE STRIDED_SLICE SUB SUM TANH TRANSPOSE TRANSPOSE_CONV VAR_HANDLE "
    "Convolution2DTransposeBias MaxPoolingWithArgmax2D MaxUnpooling2D"
)
VISITED = frozenset(_VISITED.split())
#: Operators that the delegate does once, when it is applied, on constants. Source: Delegate::PrepareOpsToDelegate.
UNPACKING = frozenset(("DENSIFY", "DEQUANTIZE"))


def delegate(kernel: Kernel, takes: Callable[[Node], bool]) -> Kernel:
    """Return the row of XNNPACK's kernel for the nodes that `takes` accepts."""
    return replace(kernel, takes=takes)


def over(row: Kernel, base: KernelTable) -> Kernel:
    """Return the row of XNNPACK with what `base` has for nodes that are not taken."""
    beneath = base.get(row.op, ())
    session = any(other.session for other in beneath if other.signature == row.signature)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        taken = does_take(row, node)
        chosen = row if taken else row_of(node, beneath, row.sparse)
        if taken and row.takes is not None:
            check_definable(node, (*filter(None, node.inputs), *node.outputs))
        prepared = chosen.prepare(node, arithmetic)
        if not taken:
            prepared = replace(prepared, exactness=prepared.exactness or chosen.exactness)
        return replace(prepared, alone=True) if session and not chosen.session else prepared

    known = [other.versions for other in beneath if other.signature == row.signature] or [row.versions]
    versions = min(low for low, _ in known), max(high for _, high in known)
    left = max((other.exactness for other in beneath), key=lambda promise: promise.strength, default=None)
    return replace(row, prepare=prepare, session=session, left=left, versions=versions)


def row_of(node: Node, rows: Rows, sparse: tuple[int, ...] = ()) -> Kernel:
    """Return the first of `rows` that takes the node; a ModelError if none does."""
    types = [None if operand is None else operand.type for operand in node.inputs]
    row = find({node.op: rows}, node.op, node.version, types, [operand.type for operand in node.outputs], sparse)
    if row is None:
        node.refuse("is not taken by XNNPACK, and has no other kernel")
    return row


def check_definable(node: Node, operands: Iterable[Operand]) -> None:
    """Refuse an operator that XNNPACK takes if one of its tensors of codes has a scale or zero point that it refuses.

    So is one whose bias alone is a float16 constant behind DEQUANTIZE, beside weights of 8 bits.
    Source: GetXNNPackDatatype, CheckFilterAndBiasTypes; XNNPACK xnn_validate_quantized_tensor.
    """
    for operand in operands:
        if operand.is_half and not node.input(1).is_half:
            node.reject(
                "XNNPACK asks for biases of float32 beside weights of 8 bits",
                operand,
                expected="float32",
                got="float16",
            )
        q = operand.quantization
        if q is None or operand.type not in (*_CODES, TensorType.INT32):
            continue
        if len(q.scale) > 1 or operand.type == TensorType.INT32:
            points = q.zero_point.tolist()[:8]
            if np.any(q.zero_point):
                node.reject("XNNPACK asks for zero points of 0", operand, expected=0, got=points)
            continue
        if len(q.scale) != 1:
            continue
        low, high = _CODES[operand.type]
        point = int(q.zero_point[0]) if len(q.zero_point) else 0
        if not is_normal(q.scale):
            node.reject("XNNPACK asks for a normal scale", operand, expected="a normal number", got=float(q.scale[0]))
        if not low <= point <= high:
            node.reject("XNNPACK asks for a zero point that is a code", operand, expected=f"{low} to {high}", got=point)


#: The promise for XNNPACK's float results.
UNCLAIMED = close("XNNPACK's float kernels have orders and polynomials of their own, which depend on the CPU")


def has_floats_only(row: Kernel) -> bool:
    """Return whether a row takes float32 or float16 data, and nothing quantized."""
    return any(has_only(row, type_) for type_ in (TensorType.FLOAT32, TensorType.FLOAT16))


def has_only(row: Kernel, type_: TensorType) -> bool:
    """Return whether a row takes data of one type."""
    slots = row.signature.slots
    return row.signature.outputs[-1].is_only(type_) and all(slot.is_only(type_, TensorType.INT32) for slot in slots)


#: Where XNNPACK computes float results in ways that are not reproduced.
_UNCLAIMED: Mapping[str, tuple[When, ...]] = {
    "": (),
    UNCLAIMED_FLOATS: (xnnpack(),),
    SINCE_2_1: (xnnpack(until="litert-2.0"), xnnpack(cpu="arm64 wasm")),
}


def floats_left(op: str, runtime: Runtime, reference: Rows) -> Rows:
    """Return the reference's float rows of an operator that XNNPACK takes and that are not reproduced, not claimed.

    float16 never is.
    """
    claims = OPERATORS[op].xnnpack_floats
    if any(when.holds(runtime) for when in _UNCLAIMED[claims]):
        return promising(UNCLAIMED, filter(has_floats_only, reference))
    return promising(UNCLAIMED, (row for row in reference if claims and has_only(row, TensorType.FLOAT16)))


#: Releases whose XNNPACK takes unsigned codes; earlier ones are built without its unsigned operators.
_UINT8 = xnnpack("litert-1.0")


def codes_known(runtime: Runtime) -> tuple[TensorType, ...]:
    """Return the types of codes that a runtime's XNNPACK is built for."""
    return _EIGHT_BITS if _UINT8.holds(runtime) else _EIGHT_BITS[:1]


def enable(row: Kernel, runtime: Runtime) -> Kernel | None:
    """Return the row of XNNPACK with the types that a runtime's build takes; None if it takes none of them."""
    signature = row.signature if _UINT8.holds(runtime) else row.signature.without(TensorType.UINT8)
    return None if signature is None else row.taking(signature)


def unpacks(node: Node) -> bool:
    """Return whether the node unpacks a constant, so that XNNPACK takes its output for one.

    Source: Delegate::PrepareOpsToDelegate, quasi-static tensors.
    """
    x = node.optional(0)
    if x is None or not (x.is_constant or x.is_unpacked):
        return False
    if node.op == "DENSIFY":
        return x.sparsity is not None
    is_narrow = x.type == TensorType.FLOAT16 or (x.type == TensorType.INT8 and x.is_quantized)
    return node.op == "DEQUANTIZE" and x.sparsity is None and is_narrow


def is_taken(node: Node, rows: Rows) -> bool | None:
    """Return whether XNNPACK takes a node, by the rows of a profile with XNNPACK; None if no row states the rule."""
    if node.op not in VISITED:
        return False
    types = [None if operand is None else operand.type for operand in node.inputs]
    own = (row for row in rows if row.takes is not None)
    row = next((row for row in own if row.accepts(node.version, types, [o.type for o in node.outputs])), None)
    return None if row is None else does_take(row, node)


def does_take(row: Kernel, node: Node) -> bool:
    """Return whether XNNPACK takes a node by a row that accepts its types; a row without a rule takes all."""
    if row.takes is None:
        return True
    static = all(node.input(position).is_constant for position in row.shape_operands)
    return static and has_activation(node) and row.takes(node)


def has_activation(node: Node) -> bool:
    """Return whether XNNPACK has the fused activation: NONE, RELU, RELU_N1_TO_1, RELU6.

    Source: ConvertActivationToOutputRange.
    """
    return int(node.options.get("fused_activation_function", 0)) <= ACTIVATIONS


def is_static(operand: Operand) -> bool:
    """Return whether XNNPACK takes the operand for a constant."""
    return operand.is_constant or operand.is_unpacked


def of_one_width(takes: Callable[[Node], bool]) -> Callable[[Node], bool]:
    """Return the rule for nodes whose filter and bias are both float16 constants behind DEQUANTIZE, or neither is.

    One that another operator reads, too, counts as float32. LiteRT 1.4 to 2.1 ask for it.
    Source: CheckFilterAndBiasTypes, GetTensorType.
    """
    return _with_bias(takes, lambda filter_, bias: bias.is_half == filter_.is_half)


def of_no_narrower_bias(takes: Callable[[Node], bool]) -> Callable[[Node], bool]:
    """Return the rule for nodes whose bias is no float16 constant behind DEQUANTIZE, unless the filter is one, too.

    LiteRT asks for it since 2.2. Source: CheckFilterAndBiasTypes, GetTensorType.
    """
    return _with_bias(takes, lambda filter_, bias: filter_.is_half or not bias.is_half)


def _with_bias(takes: Callable[[Node], bool], fits: Callable[[Operand, Operand], bool]) -> Callable[[Node], bool]:
    def holds(node: Node) -> bool:
        bias = node.optional(2)
        return takes(node) and (bias is None or fits(node.input(1), bias))

    return holds


def is_quantized(operand: Operand) -> bool:
    """Return whether an 8-bit operand has one scale, along dimension 0. Source: CheckTensorFloat32OrQUInt8Type."""
    q = operand.quantization
    return operand.type in _EIGHT_BITS and q is not None and len(q.scale) == 1 and q.quantized_dimension == 0


def has_filter_scales(operand: Operand, dimension: int) -> bool:
    """Return whether weights have one scale, or several along `dimension`. Source: CheckTensorFloat32OrQCInt8Type."""
    q = operand.quantization
    if q is None or len(q.scale) == 0:
        return False
    if operand.type == TensorType.UINT8:
        return is_quantized(operand) and is_normal(q.scale)
    along = len(q.scale) == 1 or q.quantized_dimension == dimension
    return along and is_normal(q.scale) and (len(q.scale) == 1 or not int(q.zero_point[0]))


def has_bias_scales(operand: Operand) -> bool:
    """Return whether a bias is quantized along dimension 0, with a zero point of 0 if it has one for all channels.

    Source: CheckTensorFloat32OrFloat16OrQCInt32Type, which leaves those of channels to `check_definable`.
    """
    q = operand.quantization
    if q is None or len(q.scale) == 0 or q.quantized_dimension != 0:
        return False
    return is_normal(q.scale) and (len(q.scale) > 1 or not int(q.zero_point[0]))


def is_normal(scales: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> bool:
    """Return whether all are positive and normal. Source: xnn_validate_quantized_tensor."""
    return bool(np.all(np.isfinite(scales) & (scales >= np.finfo(np.float32).tiny)))


def has_shape(operand: Operand, lowest: int = 0, highest: int = RANK) -> bool:
    """Return whether the recorded rank lies between these, and no dimension is 0. Source: CheckTensorShape.

    The delegate is applied before any operator is prepared, so that it does not see the shapes that operators announce.
    """
    shape = operand.shape if operand.recorded is None else operand.recorded
    return lowest <= len(shape) <= highest and min(shape, default=1) > 0


def has_recorded_image(node: Node) -> bool:
    """Return whether the file records an output of rank 4. Source: CheckTensorShape of the outputs of windows."""
    return has_shape(node.outputs[0], 4, 4)


def ratio_lies(x: Operand, y: Operand, lowest: float, beyond: float) -> bool:
    """Return whether scale(x) / scale(y), in float32, is in [lowest, beyond). Source: CheckTensorsInputOutputScale."""
    with np.errstate(all="ignore"):
        return bool(lowest <= x.scale / y.scale < beyond)
