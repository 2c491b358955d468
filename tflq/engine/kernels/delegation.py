"""Which operators XNNPACK takes, and which of them it cannot define.

Which operators XNNPACK takes: the rule of each is stated once, in its file; what it leaves runs as without it.

`does_take` is that rule: what every operator is asked for, then the conditions of the row. Conditions that several
operators share are here. Operands that an operator's shape follows from must be constant in the
file for all of them.
Source: LiteRT 2.3 xnnpack_delegate.cc Delegate::PrepareOpsToDelegate, Subgraph::VisitNode and what these call.

Operators that XNNPACK's delegate takes and XNNPACK then fails to define, so that the whole model is refused.

Operators that move 8-bit codes: the delegate looks at types and shapes, and XNNPACK asks for one scale and zero point
on both sides.
Source: LiteRT 2.3 xnnpack_delegate.cc Subgraph::Create, GetXNNPackDatatype and the visitors of these operators;
XNNPACK xnn_subgraph_check_quantization_parameter_matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import SINCE_2_1
from tflq.engine.kernels.facts.fact import UNCLAIMED as UNCLAIMED_FLOATS
from tflq.engine.kernels.families.activation import without_function
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepare, Prepared, close, promising
from tflq.engine.kernels.table import KernelTable, Rows, find
from tflq.engine.kernels.validity import RuntimeConditions, When, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType

#: A condition on a node, and one on an operand.
Rule = Callable[[Node], bool]
Condition = Callable[[Operand], bool]
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


def delegate(kernel: Kernel, takes: Rule) -> Kernel:
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


def floats_left(op: str, runtime: RuntimeConditions, reference: Rows) -> Rows:
    """Return the reference's float rows of an operator that XNNPACK takes and that are not reproduced, not claimed.

    float16 never is.
    """
    claims = OPERATORS[op].xnnpack_floats
    if any(when.holds(runtime) for when in _UNCLAIMED[claims]):
        return promising(UNCLAIMED, filter(has_floats_only, reference))
    return promising(UNCLAIMED, (row for row in reference if claims and has_only(row, TensorType.FLOAT16)))


#: Releases whose XNNPACK takes unsigned codes; earlier ones are built without its unsigned operators.
_UINT8 = xnnpack("litert-1.0")


def codes_known(runtime: RuntimeConditions) -> tuple[TensorType, ...]:
    """Return the types of codes that a runtime's XNNPACK is built for."""
    return _EIGHT_BITS if _UINT8.holds(runtime) else _EIGHT_BITS[:1]


def enable(row: Kernel, runtime: RuntimeConditions) -> Kernel | None:
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


def of_one_width(takes: Rule) -> Callable[[Node], bool]:
    """Return the rule for nodes whose filter and bias are both float16 constants behind DEQUANTIZE, or neither is.

    One that another operator reads, too, counts as float32. LiteRT 1.4 to 2.1 ask for it.
    Source: CheckFilterAndBiasTypes, GetTensorType.
    """
    return _with_bias(takes, lambda filter_, bias: bias.is_half == filter_.is_half)


def of_no_narrower_bias(takes: Rule) -> Callable[[Node], bool]:
    """Return the rule for nodes whose bias is no float16 constant behind DEQUANTIZE, unless the filter is one, too.

    LiteRT asks for it since 2.2. Source: CheckFilterAndBiasTypes, GetTensorType.
    """
    return _with_bias(takes, lambda filter_, bias: filter_.is_half or not bias.is_half)


def _with_bias(takes: Rule, fits: Callable[[Operand, Operand], bool]) -> Callable[[Node], bool]:
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


def meeting(*rules: Rule) -> Callable[[Rule], Rule]:
    """Return a decorator: nodes have to meet all of these, asked in order, and then what the function itself asks."""

    def met(own: Rule) -> Rule:
        @wraps(own)
        def holds(node: Node) -> bool:
            return all(rule(node) for rule in rules) and own(node)

        return holds

    return met


def needs(position: int, *conditions: Condition) -> Rule:
    """Return the rule for nodes whose operand at `position` meets the conditions, or is absent."""

    def holds(node: Node) -> bool:
        one = node.optional(position)
        return one is None or all(condition(one) for condition in conditions)

    return holds


def result(*conditions: Condition) -> Rule:
    """Return the rule for nodes whose first output meets the conditions."""
    return lambda node: all(condition(node.outputs[0]) for condition in conditions)


def ranked(lowest: int, highest: int = RANK) -> Condition:
    """Return the condition of `has_shape`."""
    return partial(has_shape, lowest=lowest, highest=highest)


def scaled_along(dimension: int) -> Condition:
    """Return the condition of `has_filter_scales`."""
    return partial(has_filter_scales, dimension=dimension)


def is_in_file(operand: Operand) -> bool:
    """Return whether the operand is a constant of the file."""
    return operand.is_constant


#: An output of rank 4 in the file. Source: CheckTensorShape of the outputs of windows.
RECORDED_IMAGE = result(ranked(4, 4))
#: Biases of codes and of floats.
BIAS_OF_CODES = (has_bias_scales, is_in_file, ranked(1, 1))
BIAS_OF_FLOATS = (is_static, ranked(1, 1))


def ratio_lies(x: Operand, y: Operand, lowest: float, beyond: float) -> bool:
    """Return whether scale(x) / scale(y), in float32, is in [lowest, beyond). Source: CheckTensorsInputOutputScale."""
    with np.errstate(all="ignore"):
        return bool(lowest <= x.scale / y.scale < beyond)


def _takes_max_pool(node: Node) -> bool:
    """Return whether no stride exceeds the window. A window of one pixel is a clamp of its own."""
    sizes = [int(node.options[f"filter_{side}"]) for side in ("height", "width")]
    strides = [int(node.options[f"stride_{side}"]) for side in ("h", "w")]
    fits = all(0 < stride <= size for stride, size in zip(strides, sizes, strict=True))
    return fits and max(sizes) > 1 and has_activation(node)


def _check_clamp(node: Node) -> None:
    """Refuse a pool of one pixel between other scales, which XNNPACK clamps and scales."""
    x, y = node.input(0), node.outputs[0]
    sizes = [int(node.options[f"filter_{side}"]) for side in ("height", "width")]
    alike = x.scale == y.scale and x.zero_point == y.zero_point
    if max(sizes) == 1 and y.type != TensorType.FLOAT32 and not alike:
        node.reject("XNNPACK's pools of one pixel between scales are not modelled", y, expected=_of(x), got=_of(y))


def _takes_pad(node: Node) -> bool:
    """Return whether the paddings are constant int32, and none is negative."""
    x, paddings = node.input(0), node.input(1)
    return (
        paddings.is_constant
        and paddings.type == TensorType.INT32
        and paddings.shape == (len(x.shape), 2)
        and int(np.min(node.constant(1), initial=0)) >= 0
        and has_shape(x, 1)
        and has_shape(node.outputs[0], 1)
    )


def _takes_slice(node: Node) -> bool:
    """Return whether begin and size are constant, and no size is 0 or -1."""
    begin, size = node.input(1), node.input(2)
    return begin.is_constant and size.is_constant and len(begin.shape) == 1 and bool(np.all(node.constant(2) > 0))


def _takes_strided_slice(node: Node) -> bool:
    """Return whether only masks of begin and end are set, and every stride is a constant 1."""
    masks = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    lists = [node.input(position) for position in (1, 2, 3)]
    return (
        not any(int(node.options[mask]) for mask in masks)
        and all(one.is_constant and one.type == TensorType.INT32 for one in lists)
        and all(one.shape == (len(node.input(0).shape),) for one in lists)
        and bool(np.all(node.constant(3) == 1))
    )


def _takes_transpose(node: Node) -> bool:
    """Return whether the permutation is constant."""
    return node.input(1).is_constant and has_shape(node.input(0), 1)


def _takes_blocks(node: Node) -> bool:
    """Return whether blocks are larger than a pixel and, in SPACE_TO_DEPTH, fill the image."""
    size, shape = int(node.options["block_size"]), node.input(0).shape
    fills = node.op == "DEPTH_TO_SPACE" or (len(shape) > 2 and shape[1] % size == 0 == shape[2] % size)
    return size > 1 and fills


def _takes_resize(node: Node) -> bool:
    """Return whether the size is constant and positive."""
    size = node.input(1)
    known = size.is_constant and bool(np.all(node.constant(1) > 0))
    return known and has_shape(node.input(0), 4, 4) and has_shape(node.outputs[0], 4, 4)


def _takes_concatenation(node: Node) -> bool:
    """Return whether two to five operands are joined along a dimension that they have; uint8 has to have one scale."""
    axis, y = int(node.options["axis"]), node.outputs[0]
    operands = [operand for operand in node.inputs if operand is not None]
    known = all(axis < len(operand.shape) for operand in operands)
    alike = all(one.scale == y.scale and one.zero_point == y.zero_point for one in operands)
    return 2 <= len(operands) <= 5 and known and (alike or y.type != TensorType.UINT8)


def _takes_split(node: Node) -> bool:
    """Return whether there are two to four parts along a constant dimension."""
    return 2 <= len(node.outputs) <= 4 and node.input(0).is_constant


@dataclass(frozen=True, slots=True)
class Move:
    """When the delegate takes an operator that moves codes, the position of its first operand of codes, and since when.

    Before, XNNPACK compared no scales, or the delegate left the operator.
    """

    takes: Callable[[Node], bool]
    first: int = 0
    since: str = "litert-1.0"

    def operands(self, node: Node) -> tuple[Operand, ...]:
        """Return the operands whose codes move."""
        if node.op == "CONCATENATION":
            return tuple(operand for operand in node.inputs if operand is not None)
        return (node.input(self.first),)


#: Operators that move codes, and whose scales must be equal where the delegate takes them.
MOVES: Mapping[str, Move] = MappingProxyType(
    {
        "CONCATENATION": Move(_takes_concatenation),
        "DEPTH_TO_SPACE": Move(_takes_blocks),
        "MAX_POOL_2D": Move(_takes_max_pool),
        "PAD": Move(_takes_pad),
        "RESIZE_BILINEAR": Move(_takes_resize),
        "SLICE": Move(_takes_slice),
        "SPACE_TO_DEPTH": Move(_takes_blocks),
        "SPLIT": Move(_takes_split, first=1, since="litert-2.1"),
        "STRIDED_SLICE": Move(_takes_strided_slice, since="litert-1.4"),
        "TRANSPOSE": Move(_takes_transpose, since="litert-1.4"),
    }
)


#: Operators that change a shape alone.
_RESHAPING = ("EXPAND_DIMS", "RESHAPE")


def is_delegated(node: Node, rows: Rows, runtime: RuntimeConditions) -> bool:
    """Return whether XNNPACK takes a node: by its row, as a move of codes, or as another shape of the same elements.

    `rows` are those of a profile with XNNPACK. Operators that have neither a row nor a move there are left.
    """
    stated = is_taken(node, rows)
    if stated is not None:
        return stated
    types = [None if operand is None else operand.type for operand in node.inputs]
    if any(row.left is not None and row.accepts(node.version, types, [o.type for o in node.outputs]) for row in rows):
        return True  # a row without a rule takes all
    move, known = MOVES.get(node.op), codes_known(runtime)
    if move is not None and xnnpack(move.since).holds(runtime):
        return _is_taken(node, move, (*move.operands(node), *node.outputs), known)
    moved = (node.input(0), *node.outputs) if node.op in _RESHAPING else ()
    is_known = all(o.type == TensorType.FLOAT32 or (o.type in known and is_quantized(o)) for o in moved)
    return bool(moved) and is_known and all(o is None or o.is_constant for o in node.inputs[1:])


def refusing(row: Kernel, runtime: RuntimeConditions) -> Kernel:
    """Return the row without the nodes that a runtime's XNNPACK takes and cannot define."""
    move = MOVES.get(row.op)
    if move is None or not xnnpack(move.since).holds(runtime) or not row.signature.makes(*codes_known(runtime)):
        return row
    return replace(row, prepare=_guard(row.prepare, row.op, codes_known(runtime)))


@cache
def _guard(inner: Prepare, op: str, types: tuple[TensorType, ...]) -> Prepare:
    """Return one function for each `inner`, so that tables which share a row still share it."""
    move = MOVES[op]

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        operands = move.operands(node)
        is_taken = _is_taken(node, move, (*operands, *node.outputs), types)
        if is_taken:
            _check_move(node, operands)
        elif op == "MAX_POOL_2D" and is_quantized(operands[0]) and operands[0].type in types:
            _check_clamp(node)
        return inner(_as_taken(node) if is_taken else node, arithmetic)

    return prepare


def _is_taken(node: Node, move: Move, tensors: Sequence[Operand], types: tuple[TensorType, ...]) -> bool:
    """Return whether the delegate takes a move of these tensors."""
    known = all(one.type == TensorType.FLOAT32 or (one.type in types and is_quantized(one)) for one in tensors)
    return known and max(len(one.shape) for one in tensors) <= RANK and move.takes(node)


def _as_taken(node: Node) -> Node:
    """Return the node without what is not looked at: declared shapes of outputs, the activation of CONCATENATION."""
    free = node.with_outputs(lambda y: replace(y, shape=()))
    return without_function(free) if node.op == "CONCATENATION" else free


def _check_move(node: Node, operands: Sequence[Operand]) -> None:
    """Refuse a move that the delegate takes between other scales or zero points."""
    if node.outputs[0].type == TensorType.FLOAT32:
        return
    check_definable(node, (*operands, *node.outputs))
    for x in operands:
        for y in node.outputs:
            if x.scale != y.scale or x.zero_point != y.zero_point:
                node.reject("XNNPACK asks for the input's scale and zero point", y, expected=_of(x), got=_of(y))


def _of(operand: Operand) -> str:
    return f"{operand.scale:.9g} and {int(operand.zero_point)}"
