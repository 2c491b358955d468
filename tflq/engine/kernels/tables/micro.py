"""Operators of TensorFlow Lite Micro: registered, checked, and rounded.

Forms, constants and ranks that TensorFlow Lite Micro's kernels accept, as data.

Source: tflite-micro (August and October 2026), the type switches and Prepare of its kernels; each form was asked of
the package of 23 October 2026.

Checks of TensorFlow Lite Micro's Prepare beyond LiteRT's, and those of LiteRT that it lacks.

Source: tflite-micro (August 2026) kernels/: pooling_common.cc, broadcast_to.cc, strided_slice_common.cc,
transpose_common.cc, softmax_common.cc, lstm_eval.cc ValidateTensors, conv_common.cc; each was asked of the package of
23 October 2026.

Operators of CMSIS-NN built with CMSIS_NN_USE_SINGLE_ROUNDING: 32-bit accumulators are scaled once, half up.

TensorFlow Lite Micro's own kernels keep both roundings: every operator that the library does not have, and ADD and MUL
of operands that are broadcast. Multipliers are TensorFlow Lite Micro's in either case.
Source: CMSIS-NN 99f736a, arm_nn_requantize; tflite-micro (August 2026), kernels/cmsis_nn.

Operators of TensorFlow Lite Micro: those that its Python package registers, in the forms that its kernels take.

Its registrations have no versions, so that every version is taken. An operand with several scales is read as one with
the first of them where a kernel reads one.
Source: tflite-micro (October 2026), python_ops_resolver.cc; the type switches of its kernels; micro_allocator.cc
InitializeTfLiteTensorFromFlatbuffer; micro_interpreter_graph.cc CheckDynamicTensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, update_wrapper
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.families.activation import any_activation, first_scale
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepare, Prepared, Shape, Signature, Slot
from tflq.engine.kernels.table import KernelTable, Rows
from tflq.engine.numerics.arithmetic import Arithmetic, round_once
from tflq.model.ir import Quantization, TensorType

_COMPARED = "float32|int8|int32|int64 any -> bool"
_MOVED_8 = "float32|int8 any* -> any"
_FLOATS = "float32 any* -> any"
_PADDED = "float32|int8|int16|int32 int32 any* -> any"
_ARITHMETIC = "float32|int8|int16|int32 any -> float32|int8|int16|int32"

#: Operator -> the only forms that are taken, where these are fewer than LiteRT's. What a form leaves open has no limit.
FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ABS": ("float32|int8|int16 -> any",),
        "ADD": (_ARITHMETIC,),
        "ADD_N": ("float32|int8* -> any",),
        "ARG_MAX": ("float32|int8 int32 -> int32",),
        "ARG_MIN": ("float32|int8 int32 -> int32",),
        "BATCH_MATMUL": ("float32 float32 -> any", "int8 int8 -> int8", "int16 int16 -> int16"),
        "BATCH_TO_SPACE_ND": (_MOVED_8,),
        "CAST": ("bool|float32|int8|int16|int32|uint32 -> bool|float32|int8|int16|int32|uint32",),
        "CONCATENATION": ("bool|float32|int8|int16|int32|int64* -> any",),
        "CONV_2D": ("float32 float32 float32? -> any", "int8 int8|int4 int32 -> any", "int16 int8 int32|int64 -> any"),
        "COS": (_FLOATS,),
        "CUMSUM": (_MOVED_8,),
        "DEPTHWISE_CONV_2D": (
            "float32 float32 float32? -> any",
            "int8 int8|int4 int32? -> any",
            "int16 int8 int64? -> any",
        ),
        "DEPTH_TO_SPACE": (_MOVED_8,),
        "DEQUANTIZE": ("int8|uint8|int16 -> any",),
        "DIV": ("float32|int8|int32 any -> any",),
        "DYNAMIC_UPDATE_SLICE": ("float32|int8|int16|int32 any any -> any",),
        "EMBEDDING_LOOKUP": ("int32 float32 -> float32", "int32 int8 -> float32|int8"),
        "EQUAL": ("bool|float32|int8|int32|int64 any -> bool",),
        "EXP": (_FLOATS,),
        "EXPAND_DIMS": ("float32|int8|int16 int32 -> any",),
        "FILL": ("int32|int64 float32|int8|int32 -> any",),
        "FLOOR": (_FLOATS,),
        "FLOOR_DIV": (_FLOATS,),
        "FLOOR_MOD": (_FLOATS,),
        "FULLY_CONNECTED": (
            "float32 float32 float32? -> any",
            "int8 int8|int4 int32? -> int8",
            "int16 int8 int32|int64? -> any",
        ),
        "GATHER": ("float32|int8 int32 -> any",),
        "GATHER_ND": ("float32|int8 int32 -> any",),
        "GREATER": ("float32|int8|int16|int32|int64 any -> bool",),
        "GREATER_EQUAL": (_COMPARED,),
        "LESS": (_COMPARED,),
        "LESS_EQUAL": (_COMPARED,),
        "LOG": (_FLOATS,),
        "LOGISTIC": ("float32|int8|int16 -> any",),
        "MAXIMUM": ("float32|int8|int16|int32|int64 any -> any",),
        "MINIMUM": ("float32|int8|int16|int32|int64 any -> any",),
        "MIRROR_PAD": (_MOVED_8,),
        "MUL": (
            "float32 float32 -> any",
            "int8 int8 -> int8",
            "int16 int16 -> int8|uint8|int16",
            "int32 int32 -> int32",
        ),
        "NEG": (_FLOATS,),
        "NOT_EQUAL": ("bool|float32|int8|int32|int64 any -> bool",),
        "PACK": ("float32|int8|int16|int32|int64* -> any",),
        "PAD": (_PADDED,),
        "PADV2": (_PADDED,),
        "REDUCE_MAX": (_MOVED_8,),
        "REDUCE_MIN": (_MOVED_8,),
        "RESIZE_NEAREST_NEIGHBOR": ("float32|int8|int16 any -> any",),
        "REVERSE_V2": ("bool|float32|int8|uint8|int16|int32|int64 any -> any",),
        "ROUND": (_FLOATS,),
        "SELECT_V2": ("bool float32|int8|int16 any -> any",),
        "SHAPE": ("any -> int32",),
        "SIN": (_FLOATS,),
        "SLICE": ("bool|float32|int8|int16|int32 any any -> any",),
        "SOFTMAX": ("float32 -> float32", "int8 -> int8|int16", "int16 -> int16"),
        "SPACE_TO_BATCH_ND": (_MOVED_8,),
        "SPACE_TO_DEPTH": (_MOVED_8,),
        "SPLIT": ("int32 float32|int8|int16|int32 -> any*",),
        "SPLIT_V": ("float32|int8|int16|int32 any any -> any*",),
        "SQRT": (_FLOATS,),
        "STRIDED_SLICE": ("bool|float32|int8|int16|int32 any any any -> any",),
        "SUB": (_ARITHMETIC,),
        "TANH": ("float32|int8|int16 -> any",),
        "TRANSPOSE": ("float32|int8|int16 int32 -> any",),
        "UNPACK": ("float32|int8|int16|int32 -> any*",),
    }
)
#: Operator -> positions of operands that have to be constant.
CONSTANT: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "BROADCAST_TO": (1,),
        "EXPAND_DIMS": (1,),
        "FILL": (0,),
        "PAD": (1,),
        "PADV2": (1,),
        "RESIZE_BILINEAR": (1,),
        "RESIZE_NEAREST_NEIGHBOR": (1,),
        "SPLIT": (0,),
        "SPLIT_V": (2,),
        "STRIDED_SLICE": (1, 2, 3),
        "TRANSPOSE": (1,),
    }
)
#: Operator -> the most dimensions of its first operand.
RANK: Mapping[str, int] = MappingProxyType({"BROADCAST_TO": 5, "STRIDED_SLICE": 4, "TRANSPOSE": 5})
#: Positions of an LSTM's operands: all that it may have, and those that have to be absent.
LSTM_OPERANDS, LSTM_PRESENT, LSTM_ABSENT = 24, (*range(9), *range(12, 16)), (*range(9, 12), 16, 17, *range(20, 24))
#: Operators with a bias of their own -> its position: no zero point is looked at, none of 16-bit data either.
BIASED: Mapping[str, int] = MappingProxyType({"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "TRANSPOSE_CONV": 3})
#: Operators that move codes of the first operand, whose scales and zero points are not compared.
MOVED = frozenset({"BATCH_TO_SPACE_ND", "EXPAND_DIMS", "MIRROR_PAD", "PACK", "UNPACK"})


def check_constants(node: Node) -> None:
    """Refuse computed operands that have to be constant, and too many dimensions."""
    for position in CONSTANT.get(node.op, ()):
        operand = node.optional(position)
        if operand is not None and not operand.is_constant:
            node.reject("tflite-micro asks for a constant", operand, expected="a constant", got="a computed tensor")
    highest = RANK.get(node.op)
    if highest is not None and len(node.input(0).shape) > highest:
        node.reject("dimensions", node.input(0), expected=f"at most {highest}", got=len(node.input(0).shape))


def _broadcast(node: Node) -> None:
    """Refuse more dimensions of the output than the input may have."""
    count = int(np.prod(node.input(1).shape))
    if count > RANK["BROADCAST_TO"]:
        node.reject("dimensions", node.outputs[0], expected=f"at most {RANK['BROADCAST_TO']}", got=count)


def _pool(node: Node) -> None:
    """Refuse codes whose scales or zero points differ."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.FLOAT32:
        return
    if not abs(float(x.scale) - float(y.scale)) <= 1e-6:
        node.reject("scale", y, expected=float(x.scale), got=float(y.scale))
    if x.zero_point != y.zero_point:
        node.reject("zero point", y, expected=int(x.zero_point), got=int(y.zero_point))


def _softmax(node: Node) -> None:
    """Refuse 16-bit results of 8-bit data unless their zero point is the lowest code."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.INT8 and y.type == TensorType.INT16 and y.zero_point != -(2**15):
        node.reject("zero point", y, expected=-(2**15), got=int(y.zero_point))


def _product(node: Node) -> None:
    """Refuse a zero point other than 0 in 16-bit operands or their result, but nothing where the result is uint8."""
    if node.input(0).type != TensorType.INT16 or node.outputs[0].type == TensorType.UINT8:
        return
    for operand in (node.input(0), node.input(1), node.outputs[0]):
        if operand.zero_point:
            node.reject("zero point", operand, expected=0, got=int(operand.zero_point))


def _strided_slice(node: Node) -> None:
    """Refuse fewer entries than dimensions, new axes and an ellipsis."""
    x, begin = node.input(0), node.input(1)
    if begin.shape != (len(x.shape),):
        node.reject("shape", begin, expected=[len(x.shape)], got=list(begin.shape))
    for mask in ("new_axis_mask", "ellipsis_mask"):
        if int(node.options[mask]):
            node.reject(mask, x, expected=0, got=int(node.options[mask]))


def _dense(node: Node) -> None:
    """Refuse 4-bit weights with a scale for each unit."""
    w = node.input(1)
    if w.type == TensorType.INT4 and w.quantization is not None and len(w.quantization.scale) > 1:
        node.reject("number of scales", w, expected=1, got=len(w.quantization.scale))


def _depthwise(node: Node) -> None:
    """Refuse 16-bit results with a zero point, which are not modelled."""
    y = node.outputs[0]
    if y.type == TensorType.INT16 and y.zero_point:
        node.reject("16-bit results with a zero point are not modelled", y, expected=0, got=int(y.zero_point))


def _transpose(node: Node) -> None:
    """Refuse dimensions that are counted from the back."""
    if int(np.min(node.constant(1), initial=0)) < 0:
        node.reject("permutation", node.input(1), expected="no negative entry", got=node.constant(1).tolist())


def _lstm(node: Node) -> None:
    """Refuse other numbers of operands, coupled gates, peepholes, projections and normalized layers."""
    first = node.input(0)
    if len(node.inputs) != LSTM_OPERANDS:
        node.reject("number of inputs", first, expected=LSTM_OPERANDS, got=len(node.inputs))
    for positions, is_there in ((LSTM_PRESENT, True), (LSTM_ABSENT, False)):
        for position in positions:
            if (node.optional(position) is not None) != is_there:
                words = "present", "absent"
                node.reject(f"input {position}", first, expected=words[not is_there], got=words[is_there])


#: Operator -> what else it refuses.
CHECKS: Mapping[str, tuple[Callable[[Node], None], ...]] = {
    "AVERAGE_POOL_2D": (_pool,),
    "BROADCAST_TO": (_broadcast,),
    "DEPTHWISE_CONV_2D": (_depthwise,),
    "FULLY_CONNECTED": (_dense,),
    "MAX_POOL_2D": (_pool,),
    "MUL": (_product,),
    "SOFTMAX": (_softmax,),
    "STRIDED_SLICE": (_strided_slice,),
    "TRANSPOSE": (_transpose,),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (_lstm,),
}


def without_checks(node: Node) -> Node:
    """Return the node with the scales and zero points that LiteRT's kernels ask for and these do not look at."""
    if node.op in MOVED:
        first = node.input(0).quantization
        return node.with_inputs(lambda x: replace(x, quantization=first)).with_outputs(
            lambda y: replace(y, quantization=first)
        )
    if node.op == "L2_NORMALIZATION":
        return node.with_outputs(_as_unit)
    if node.op in BIASED:
        inputs = tuple(
            _without_zero_point(one) if one is not None and (position == BIASED[node.op] or _is_wide(one)) else one
            for position, one in enumerate(node.inputs)
        )
        outputs = tuple(_without_zero_point(y) if _is_wide(y) else y for y in node.outputs)
        return replace(node, inputs=inputs, outputs=outputs)
    return node


def _as_unit(operand: Operand) -> Operand:
    """Return a result of L2_NORMALIZATION as its kernel scales it."""
    unit = Quantization(np.array([1 / 128], np.float32), np.zeros(1, np.int64))
    return replace(operand, quantization=unit) if operand.type == TensorType.INT8 else operand


def _is_wide(operand: Operand) -> bool:
    return operand.type == TensorType.INT16


def _without_zero_point(operand: Operand) -> Operand:
    q = operand.quantization
    return operand if q is None else replace(operand, quantization=replace(q, zero_point=np.zeros_like(q.zero_point)))


@cache
def once(prepare: Prepare) -> Prepare:
    """Return `prepare` with every rounding done once."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(node, round_once(arithmetic))

    return prepared


@cache
def once_unless_broadcast(prepare: Prepare) -> Prepare:
    """Return `prepare` with every rounding done once if both operands have one shape, except for leading ones."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        same = _extent(node.input(0).shape) == _extent(node.input(1).shape)
        return prepare(node, round_once(arithmetic) if same else arithmetic)

    return prepared


def _extent(shape: Shape) -> Shape:
    """Return a shape without leading dimensions of 1."""
    leading = next((at for at, size in enumerate(shape) if size != 1), len(shape))
    return shape[leading:]


_INT8, _INT16 = (TensorType.INT8,), (TensorType.INT16,)

#: How each operator of the library is prepared, and the first types of its rows that the library computes.
_REPLACED: Mapping[str, tuple[Callable[[Prepare], Prepare], tuple[tuple[TensorType, ...], ...]]] = {
    "ADD": (once_unless_broadcast, (_INT8, _INT16)),
    "BATCH_MATMUL": (once, (_INT8,)),
    "CONV_2D": (once, (_INT8,)),
    "DEPTHWISE_CONV_2D": (once, (_INT8,)),
    "FULLY_CONNECTED": (once, (_INT8,)),
    "MUL": (once_unless_broadcast, (_INT8, _INT16)),
    "SOFTMAX": (once, (_INT16,)),
    "SVDF": (once, (_INT8,)),
    "TRANSPOSE_CONV": (once, ((TensorType.INT32, TensorType.INT8, TensorType.INT8),)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (once, (_INT8, _INT16)),
}


def round_by_the_library_once(table: KernelTable) -> KernelTable:
    """Return `table` with one rounding in the rows that the library computes."""
    return table.each(_round_once)


def _round_once(row: Kernel) -> Kernel:
    if row.op not in _REPLACED:
        return row
    wrap, starts = _REPLACED[row.op]
    ours = any(row.signature.starts_with(*types) for types in starts)
    return replace(row, prepare=wrap(row.prepare)) if ours else row


#: The operators that it registers.
REGISTERED = frozenset(op for op, fact in OPERATORS.items() if fact.micro)
_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Versions of an operator: all.
_VERSIONS = (0, 2**31 - 1)


def accept(row: Kernel) -> Kernel | None:
    """Return the row without uint8 where that is refused; None if nothing of it is left."""
    if row.op == "QUANTIZE":  # of other types, all of them among its own
        return None
    signature = row.signature
    words = OPERATORS[row.op].micro.split()
    if "-hybrid" in words and signature.is_float and signature.reads(*_CODES):
        return None
    first = signature.inputs[0].without(_refuse(words)) if signature.inputs else None
    if signature.inputs and first is None:
        return None
    left: Signature | None = signature if first is None else replace(signature, inputs=(first, *signature.inputs[1:]))
    if left is not None and "uint8" not in words:
        left = left.without(TensorType.UINT8)
    return None if left is None else row.taking(left)


def _refuse(words: list[str]) -> list[TensorType]:
    """Return the types of the first operand that the operator refuses when it runs."""
    return [TensorType[word[1:].upper()] for word in words if word.startswith("-") and word != "-hybrid"]


def of_forms(rows: Rows) -> Rows:
    """Return the rows in the forms that are taken, for every version, as its interpreter prepares them."""
    return tuple(prepared(replace(row, versions=_VERSIONS)) for row in _narrow(rows))


def _narrow(rows: Rows) -> Iterator[Kernel]:
    """Yield the rows with the types of every form of their operator; whole if all of its forms are taken."""
    for row in rows:
        forms = FORMS.get(row.op)
        if forms is None:
            yield row
            continue
        for form in map(Signature.parse, forms):
            left = narrow(row.signature, form)
            if left is not None:
                yield row.taking(left)


def narrow(signature: Signature, form: Signature) -> Signature | None:
    """Return the types of a signature that a form has, too; None if none are left. What is open in one is the other's.

    A repeated operand of the form covers all that follow.
    """
    inputs = _all(signature.inputs, form.inputs)
    outputs = _all(signature.outputs, form.outputs)
    return None if inputs is None or outputs is None else Signature(inputs, outputs)


def _all(slots: tuple[Slot, ...], limits: tuple[Slot, ...]) -> tuple[Slot, ...] | None:
    made = []
    for place, slot in enumerate(slots):
        if place >= len(limits) and not (limits and limits[-1].repeated):
            if not slot.optional:
                return None
            continue
        left = _both(slot, limits[min(place, len(limits) - 1)])
        if left is None:
            return None
        made.append(left)
    return tuple(made)


def _both(slot: Slot, limit: Slot) -> Slot | None:
    if limit.types is None:
        return slot
    if slot.types is None:
        return replace(slot, types=limit.types)
    types = tuple(type_ for type_ in slot.types if type_ in limit.types)
    return replace(slot, types=types) if types else None


def prepared(row: Kernel) -> Kernel:
    """Return the row, prepared as the interpreter presents its operands, without what it refuses.

    It waits for no value of an operand that must be constant: a computed one is refused when the model is prepared.
    """
    awaited = tuple(position for position in row.shape_operands if position not in CONSTANT.get(row.op, ()))
    return replace(row, prepare=_present(row.prepare, row.op == "FULLY_CONNECTED"), shape_operands=awaited)


@cache
def _present(inner: Prepare, is_dense: bool) -> Prepare:
    """Return one function for each `inner`, so that tables which share a row still share it."""
    bound = any_activation(inner) if is_dense else inner

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        _check(node)
        made = bound(without_checks(with_first_scales(node)), arithmetic)
        for shape, y in zip(made.shapes, node.outputs, strict=False):
            if shape is not None and 0 in shape and len(shape) > 1:
                node.reject("an output without elements counts as dynamic", y, expected="elements", got=list(shape))
        return made

    return update_wrapper(prepare, inner, assigned=())


def _check(node: Node) -> None:
    check_constants(node)
    for check in CHECKS.get(node.op, ()):
        check(node)


def with_first_scales(node: Node) -> Node:
    """Return the node with the first scale and zero point alone, except in weights that have one a channel."""
    weights = _weights(node.op)
    inputs = tuple(
        operand if operand is None or position in weights else first_scale(operand)
        for position, operand in enumerate(node.inputs)
    )
    return replace(node, inputs=inputs).with_outputs(first_scale)


def _weights(op: str) -> tuple[int, ...]:
    """Return the positions of weights and bias that have scales for channels."""
    fact = OPERATORS[op]
    weights = None if fact.quantize is None else fact.quantize.weights
    if weights is None or not fact.by_channel:
        return ()
    return (weights.weights,) if weights.bias is None else (weights.weights, weights.bias)
