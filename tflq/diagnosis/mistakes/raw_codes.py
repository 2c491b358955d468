"""Operators on codes as if they were numbers: scales and zero points ignored. SOFTMAX by a table of exponentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken
from tflq.engine.api.part import Part
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import Profile
from tflq.typing import Array

_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}
_VERBS = {"ADD": "added", "SUB": "subtracted", "MUL": "multiplied"}
#: Steps of a probability in an output of 8 bits.
_STEPS = 256


def mistaken_codes(alone: Part, _profile: Profile) -> Iterator[Mistaken]:
    """Yield sums, differences and products of codes, and exponentials by a table."""
    name = alone.op.builtin
    kinds = {value.dtype.kind for value in (*alone.inputs.values(), *alone.got.values())}
    if not kinds <= {"i", "u"} or len(alone.got) != 1:
        return
    if name in _OPERATORS and len(alone.op.inputs) == 2:
        for wraps, end in ((False, ""), (True, ", and wrap")):
            yield f"scales and zero points ignored: codes are {_VERBS[name]}{end}", _on_codes(_OPERATORS[name], wraps)
    if name == "SOFTMAX" and next(iter(alone.got.values())).dtype.itemsize == 1:
        for one in (32767, 32768):
            for half, rounding in ((0, "rounded down"), (1, "rounded half up")):
                yield f"exponentials by a table of 15 bits (1 is {one}), quotient {rounding}", _by_table(one, half)


def _on_codes(operator: Callable[[Array, Array], Array], wraps: bool) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        a, b = (alone.inputs.get(t, alone.graph.constant(t)) for t in alone.op.inputs)
        if a is None or b is None:
            return {}
        codes = operator(a.astype(np.int64), b.astype(np.int64))
        limited = codes if wraps else np.clip(codes, *type_range(dumped.dtype))
        return {tensor: limited.astype(dumped.dtype)}

    return device


def _by_table(one: int, half: int) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        operand = alone.op.inputs[0]
        q, options = alone.graph.tensors[operand].quantization, alone.op.options
        if q is None or not q.scale.size:
            return {}
        beta = 1.0 if options is None else float(options.get("beta", 1.0) or 1.0)
        x = alone.inputs[operand].astype(np.int64)
        below = x.max(-1, keepdims=True) - x
        raised = np.rint(one * np.exp(-below * float(q.scale[0]) * beta)).astype(np.int64)
        total = raised.sum(-1, keepdims=True)
        low, high = type_range(dumped.dtype)
        codes = (raised * _STEPS + half * (total >> 1)) // total + low
        return {tensor: np.clip(codes, low, high).astype(dumped.dtype)}

    return device
