"""The values that tensors can hold in a model, as far as the operators before them limit these.

A tensor that is not listed can hold every value of its type. What is listed is never too little: it is the union over
all profiles, and of operators only that are exact under every profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import JOINS
from tflq.errors import TflqError
from tflq.model.ir import OperatorView
from tflq.proof import codes
from tflq.proof.operator import Bound, Held
from tflq.proof.products import Sums
from tflq.typing import Array

#: Limit on the values that are listed of one tensor.
_MOST = 1 << 12
#: Operators that also write the zero point, or 0 where a runtime disregards it.
_FILLING = frozenset(("PAD", "SPACE_TO_BATCH_ND"))
#: Operators of which the first operand may be a table.
_LOOKUP = "GATHER"


def given(
    op: OperatorView, kinds: Sequence[Bound], sums: Sequence[Sums | None], held: Mapping[int, Held]
) -> Held | None:
    """Return the values that an operator's outputs can hold; None if they can hold any.

    `kinds` are its bindings, `sums` the same as sums of products, `held` what is known of the model's tensors.
    """
    name = f"{op.name} {op.index}"
    fact = OPERATORS.get(op.name)
    try:
        if all(one is not None for one in sums):
            return _limit(_between(op, [one for one in sums if one is not None]), (name,))
        if op.name == _LOOKUP and _is_inside(op, held):
            return _limit(_unique(op, op.inputs[0]), (name,))
        if fact is not None and fact.quantize is not None and (fact.moves != () or fact.quantize == JOINS):
            return _move(op, held)
        images = [codes.image(kind) for kind in kinds]
    except TflqError:
        return None  # refused inputs: the operator is not decided either
    values = [one for one in images if one is not None]
    return _limit(codes.distinct(np.concatenate(values)), (name,)) if len(values) == len(kinds) else None


def _limit(values: Array | None, makers: tuple[str, ...]) -> Held | None:
    """Return the values unless they are too many, or all of their type."""
    if values is None or len(values) > _MOST or values.dtype.kind not in "iuf":
        return None
    is_every = values.dtype.itemsize == 1 and len(values) == 256
    return None if is_every or not len(values) else Held(values, makers)


def _between(op: OperatorView, sums: Sequence[Sums]) -> Array | None:
    """Return the codes that the clamps of all output stages leave."""
    low = min(int(one.output.pipeline.clamp.low) for one in sums)
    high = max(int(one.output.pipeline.clamp.high) for one in sums)
    dtypes = {np.dtype(one.output.pipeline.dtype) for one in sums}
    return np.arange(low, high + 1).astype(dtypes.pop()) if len(dtypes) == 1 and high - low < _MOST else None


def _unique(op: OperatorView, tensor: int) -> Array | None:
    value = op.graph.constant(tensor)
    return None if value is None or value.dtype.kind not in "iu" else np.unique(value)


def _is_inside(op: OperatorView, held: Mapping[int, Held]) -> bool:
    """Return whether the indices of a lookup in a constant table are all places of it: others read anything."""
    table = op.graph.constant(op.inputs[0])
    if table is None or len(op.inputs) < 2 or op.inputs[1] not in held:
        return False
    places, axis = held[op.inputs[1]].values, int(op.options["axis"]) if op.options is not None else 0
    inside = -table.ndim <= axis < table.ndim and int(op.options["batch_dims"] if op.options is not None else 0) == 0
    return inside and bool(places.min() >= 0 and places.max() < table.shape[axis])


def _move(op: OperatorView, held: Mapping[int, Held]) -> Held | None:
    """Return the values that an operator copies; None if one of its operands can hold any, or is rescaled."""
    positions = OPERATORS[op.name].moves or range(len(op.inputs))
    tensors = [op.inputs[position] for position in positions if position < len(op.inputs)]
    if any(not _is_alike(op, tensor, output) for tensor in tensors for output in op.outputs):
        return None
    values = [_values(op, tensor, held) for tensor in tensors]
    known = [one for one in values if one is not None]
    if not known or len(known) < len(values):
        return None
    filled = list(_fillings(op, known[0].dtype)) if op.name in _FILLING else []
    makers = tuple(dict.fromkeys(maker for tensor in tensors if tensor in held for maker in held[tensor].makers))
    return _limit(codes.distinct(np.concatenate([*known, *filled])), makers) if makers else None


def _values(op: OperatorView, tensor: int, held: Mapping[int, Held]) -> Array | None:
    return held[tensor].values if tensor in held else _unique(op, tensor)


def _fillings(op: OperatorView, dtype: np.dtype[np.generic]) -> Iterator[Array]:
    yield np.array([0, op.graph.zero_point(op.outputs[0])]).astype(dtype)


def _is_alike(op: OperatorView, tensor: int, output: int) -> bool:
    """Return whether a tensor has the type, the scale and the zero point of an output."""
    one, other = op.graph.operand(tensor), op.graph.operand(output)
    if one is None or other is None or one.type != other.type:
        return False
    quantizations = one.quantization, other.quantization
    if quantizations[0] is None or quantizations[1] is None:
        return quantizations[0] is quantizations[1]
    return all(
        np.array_equal(getattr(quantizations[0], field), getattr(quantizations[1], field))
        for field in ("scale", "zero_point")
    )
