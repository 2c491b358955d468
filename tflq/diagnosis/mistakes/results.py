"""Mistakes in otherwise correct results: codes of one sign, inside narrower limits, one branch computed wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken, Values
from tflq.diagnosis.mistakes.unchecked import unchecked
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
from tflq.errors import OptionError
from tflq.model.surgery.edit import with_tensor
from tflq.typing import Array

#: By name: a limit for signed results, codes or floats.
_LIMITS: dict[str, Callable[[Array], Array]] = {
    "results of one sign only: the smaller of the result and -1": lambda y: np.minimum(y, y.dtype.type(-1)),
    "results of one sign only: the smaller of the result and 0": lambda y: np.minimum(y, y.dtype.type(0)),
    "results of one sign only: the larger of the result and 0": lambda y: np.maximum(y, y.dtype.type(0)),
}


def mistaken_results(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield limits of the results at 0 and -1, and at the lowest and highest codes of the dump."""
    for name, limit in _LIMITS.items():
        yield name, _limit(profile, limit)
    if len(alone.op.outputs) == 1:
        yield "saturates to the type before the zero point is added", partial(_saturate_first, profile)
    yield from _branches(alone, profile)
    codes = [v for v in alone.got.values() if v.dtype.kind in "iu" and v.size]
    if len(codes) == 1:
        low, high = codes[0].min(), codes[0].max()
        yield f"clamp at another code: no result below {low}", _limit(profile, lambda y: np.maximum(y, low))
        yield f"clamp at another code: no result above {high}", _limit(profile, lambda y: np.minimum(y, high))


def _branches(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield results of PRELU and LEAKY_RELU with one branch computed wrongly: of positive or negative inputs."""
    if alone.op.builtin not in ("PRELU", "LEAKY_RELU") or not alone.inputs or len(alone.got) != 1:
        return
    tensor, output = alone.op.inputs[0], alone.op.outputs[0]
    source, made = (alone.graph.tensors[t].quantization for t in (tensor, output))
    wrong: dict[str, Callable[[Array], Array]] = {}
    if source is not None and made is not None and source.zero_point.size == made.zero_point.size == 1:
        before, after = int(source.zero_point[0]), int(made.zero_point[0])
        own = float(source.scale[0]), float(made.scale[0])
        wrong = {
            "copied, not rescaled to the output": lambda x: x,
            "moved to the output's zero point, not rescaled": lambda x: x - before + after,
            "rescaled without the slope": lambda x: np.rint((x - before) * own[0] / own[1]) + after,
            "rescaled, without the output's zero point": lambda x: np.rint((x - before) * own[0] / own[1]),
            "0": lambda x: np.full_like(x, after),
        }
    elif source is None:
        before, wrong = 0, {"copied without the slope": lambda x: x, "0": np.zeros_like}
    for branch in ("positive", "negative"):
        for name, form in wrong.items():
            yield f"{branch} values {name}", _branch(profile, tensor, branch == "positive", before, form)


def _branch(profile: Profile, tensor: int, is_positive: bool, zero: int, form: Callable[[Array], Array]) -> Device:
    def device(alone: Part) -> Values:
        values = alone.run(alone.plan(profile))
        ((result, dumped),) = alone.got.items()
        right, x = values[result], alone.inputs[tensor]
        wide = x if dumped.dtype.kind == "f" else x.astype(np.int64)
        other = form(wide)
        if dumped.dtype.kind != "f":
            limits = np.iinfo(dumped.dtype)
            other = np.clip(other, limits.min, limits.max)
        here = wide > zero if is_positive else wide < zero
        return {**values, result: np.where(here, other.astype(dumped.dtype), right)}

    return device


def _saturate_first(profile: Profile, alone: Part) -> Values:
    """Compute with a zero point of 0, within the type, and add the zero point of the result then."""
    (tensor,) = alone.op.outputs
    spec = alone.graph.tensors[tensor]
    if spec.quantization is None or not spec.quantization.zero_point.any():
        raise OptionError("the result has no zero point to add")
    point = int(spec.quantization.zero_point[0])
    plain = replace(spec.quantization, zero_point=np.zeros_like(spec.quantization.zero_point))
    model = with_tensor(alone.model, tensor, replace(spec, quantization=plain))
    values = dict(alone.run(alone.plan(unchecked(profile), model)))
    for index in alone.got:
        code = values[index]
        ends = np.iinfo(code.dtype)
        values[index] = np.clip(code.astype(np.int64) + point, ends.min, ends.max).astype(code.dtype)
    return values


def _limit(profile: Profile, limit: Callable[[Array], Array]) -> Device:
    def device(alone: Part) -> Values:
        values = alone.run(alone.plan(profile))
        return {t: limit(v) if t in alone.got and v.dtype.kind in "if" else v for t, v in values.items()}

    return device
