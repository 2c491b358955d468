"""Scales with which sums of activations are the same in every runtime: powers of two apart.

ADD and SUB bring both operands to 20 further bits, add, and round to the output's scale. If scales are powers of two
apart, only that last step rounds. It has nothing to round where no operand is finer than the output. Where
one is, runtimes differ in ties of negative sums alone, which a RELU makes zero.

Source: LiteRT 2.3 add.cc, PrepareGeneral; XNNPACK qs8-vadd; CMSIS-NN arm_elementwise_add_s8. The prover runs the
finished operator on every combination of codes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.numerics.multiplier import NEAR
from tflq.quantization.params import Params
from tflq.quantization.scheme.scheme import Form, Scheme

#: Operators of which only the last step rounds if scales are powers of two apart.
SUMS = frozenset({"ADD", "SUB"})
#: Fused activations that are never negative: RELU, RELU6.
_NEVER_NEGATIVE = (1, 3)


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum's groups of operands and of the result; `clips` if negative results become zero."""

    operands: tuple[Form, ...]
    result: Form
    clips: bool


def sums(plan: Scheme, inside: Collection[int]) -> tuple[Sum, ...]:
    """Return the sums of activations of a scheme that are operators `inside`, in order."""
    found = []
    for index in sorted(inside):
        op = plan.model.graph.op(index)
        if plan.modes[index] is not None and op.name in SUMS and op.outputs[0] in plan.results:
            operands = [plan.read.get((index, p)) or plan.constants.get((index, p)) for p in (0, 1)]
            known = tuple(form for form in operands if form is not None)
            clips = op.options is not None and op.options.get("fused_activation_function") in _NEVER_NEGATIVE
            found.append(Sum(known, plan.results[op.outputs[0]], clips))
    return tuple(found)


def align(plan: Scheme, of: Sequence[Sum], activations: Mapping[Form, Params]) -> dict[Form, Params]:
    """Return the activations with scales of sums grown to powers of two apart; the least growth is chosen."""
    chosen = dict(activations)
    for joined in kin(of):
        scales = {form: float(activations[form].scale[0]) for form in joined}
        fixed = [form for form in joined if form in plan.fixed]
        bases = {float(activations[form].scale[0]) for form in fixed or joined}
        inside = [one for one in of if one.result in joined]
        best = min((_raise(scales, base, inside) for base in sorted(bases)), key=lambda new: _growth(scales, new))
        for form, scale in best.items():
            if scale > scales[form] and form not in plan.fixed:
                chosen[form] = with_scale(chosen[form], np.float32(scale), is_centred=form in plan.centred)
    return chosen


def kin(of: Sequence[Sum]) -> list[frozenset[Form]]:
    """Return the sets of groups that sums connect."""
    sets: list[frozenset[Form]] = []
    for one in of:
        joined = frozenset({one.result, *one.operands})
        touching = [other for other in sets if other & joined]
        sets = [other for other in sets if not other & joined] + [joined.union(*touching)]
    return sets


def _raise(scales: Mapping[Form, float], base: float, inside: Sequence[Sum]) -> dict[Form, float]:
    """Return the least scales base * 2**n that are not smaller; operands of sums that do not clip are never finer."""
    powers = {form: int(np.ceil(np.log2(scale / base) - NEAR)) for form, scale in scales.items()}
    for one in reversed(inside):
        for form in one.operands if not one.clips else ():
            powers[form] = max(powers[form], powers[one.result])
    return {form: base * 2.0**power for form, power in powers.items()}


def _growth(before: Mapping[Form, float], after: Mapping[Form, float]) -> float:
    return sum((after[form] / scale) ** 2 for form, scale in before.items())


def with_scale(params: Params, scale: np.float32, *, is_centred: bool = False) -> Params:
    """Return parameters of activations with a greater scale: the lowest value keeps the lowest code."""
    low, high = params.limits
    lowest = (low - float(params.zero_point[0])) * float(params.scale[0])
    zero = 0 if is_centred else int(np.clip(np.rint(low - lowest / float(scale)), low, high))
    return replace(params, scale=np.full(1, scale, np.float32), zero_point=np.full(1, zero, np.int64))
