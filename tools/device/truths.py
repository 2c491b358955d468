"""The correct explanations of planted mistakes: patterns over the names of equivalent hypotheses.

A name may be followed by the place in the operator, or by further details of the hypothesis. Reading a filter with
equal sides in another order is the same as storing it in the inverse of that order.
"""

from __future__ import annotations

import re
from functools import partial

_ROUNDINGS = {
    "rounds towards minus infinity": r"rounds towards minus infinity",
    "truncates towards zero": r"rounds towards zero",
    "rounds once, half up": r"rounds once|rounds half up, in fixed point|.*\+single-rounding",
    "rounds once, half to even": r"rounds half to even, in fixed point",
    "rounds once, half away from zero": r"rounds half away from zero, in fixed point",
    "rounds twice": r"rounds twice",
    "rounds half up twice": r"rounds half up twice|rounds twice: the product half up, the shift half up",
    "multiplier of 16 bits, one rounding": r"multiplier of 16 bits.*rounds half up|requantize\S* of",
    "multiplies in float64": r"rounds half away from zero, in float64",
    "multiplies in float32": r"multiplies in float32",
}

#: By the planted mistake's name: a pattern for the start of a hypothesis' name.
_CAUSES = {
    **_ROUNDINGS,
    **{
        f"{planted} {name}": named + rounding
        for planted, named in (
            ("average", r"average of codes rounded "),
            ("mean", r"mean rounded once, "),
            ("mean of codes", r"mean of codes that ignores scales, rounded "),
            ("table", r"computed in float32.*, rounded "),
        )
        for name, rounding in (
            ("rounds towards minus infinity", "towards minus infinity"),
            ("truncates towards zero", "towards zero"),
            ("rounds once, half up", "half up"),
            ("rounds once, half to even", "half to even"),
            ("rounds once, half away from zero", "half away from zero"),
        )
    },
    "multiplier of 16 bits": r".*of 16 bits",
    "multiplier computed in float32": r"multiplier.* float32",
    "shift off by one to the left": r".*shift.* off by one to the left",
    "shift off by one to the right": r".*shift.* off by one to the right",
    **{
        f"scales: the {scales} one": rf"scales of channels: {named}$"
        for scales, named in (
            ("first", "the first for all"),
            ("largest", "the largest for all"),
            ("mean", "the mean for all"),
            ("next", "each the next one's"),
            ("previous", "each the previous one's"),
        )
    },
    "bias missing": r"bias missing",
    "bias doubled": r"bias.* 2\b",
    "bias halved": r"bias.* 1/2, towards minus infinity",
    "no activation clamp": r"no activation|no (lower|upper) limit of the activation",
    "codes wrap": r".*codes wrap",
    "clamp of the other type": r"clamp of the",
    "RELU in place of RELU6": r"RELU in place of RELU6|no upper limit",
    "RELU6 in place of RELU": r"RELU6 in place of RELU",
    "input read as the other type": r"(input codes|codes of (all operands|operand 0)) taken for the other signedness",
    "weights read as the other type": r"weights taken for the other signedness",
    "output's highest bit flipped": r"codes of the results off by 128|zero point of output.* of the other signedness",
    "table index_step +1": r"table index off by one up",
    "table index_step -1": r"table index off by one down",
    "table value_step +1": r"table value off by one up",
    "table value_step -1": r"table value off by one down",
    "input read as NCHW": r"input 0 read as NCHW",
    "output written as NCHW": r"results stored as NCHW",
    "filter order HWIO": r"filter (read as HWIO|read as HWOI|stored as IOHW)",
    "filter order OIHW": r"filter (read as OIHW|stored as OWIH)",
    "filter order OWHI": r"filter (read|stored) as OWHI",
    "filter order rotated": r"filter rotated",
    "depthwise filter order CHW": r"filter (read as 1?O1?HW|stored as 1WOH)",
    "depthwise filter order WHC": r"filter (read|stored) as 1?WHO",
    "depthwise filter order rotated": r"filter rotated",
    "dense filter transposed": r"filter (read|stored) as IO",
    "SAME padding on the other side": r".*SAME padding on the other side",
    "counts padding": r"average of codes less their zero point rounded half away from zero, over the whole",
    "counts padding of code 0": r"average of codes rounded half away from zero, over the whole",
    "padding: code 0": r"padding.* as 0",
    "padding: negated": r"padding.* as the zero point with the wrong sign",
    "fault absent: SUM": r"spec|tflm|tflite-2\.13-|SUM|fault",
    **{
        f"zero point of the {what} {how}": rf"(zero point of {place}|{field}) {how}"
        for what, place, field in (
            ("input", "input 0", r"(input|first)_zero_point|zeros"),
            ("second input", "input 1", r"second_zero_point"),
            ("weights", "input 1", r"weight_zero_point"),
            ("output", "output 0", r"(output_)?zero_point"),
        )
        for how in ("ignored", "with the wrong sign")
    },
    **{
        f"accumulator of {bits} bits {planted}": rf"accumulator of {bits} bits.* {named}"
        for bits in (16, 24)
        for planted, named in (
            ("wraps", "wraps"),
            ("saturates at the end", r"saturates(?!.*tap)"),
            ("saturates at each tap", r"saturates.*tap"),
        )
    },
    "stride ignored": r"stride of 1",
    "offset of +9 in one channel": r"offset of \+9 in channel ",
    "offset of -3 in one channel": r"offset of -3 in channel ",
    "weights of one channel shifted": r"weights of channel \d+ shifted forwards",
    "bias missing in one half": r"bias missing in channels",
    "average sum of 16 bits wraps": r"average of codes rounded half away.*16 bits that wraps",
    "average sum of 16 bits saturates": r"average of codes rounded half away.*16 bits that saturates",
    "mean sum of 16 bits wraps": r"mean rounded.* of 16 bits that wraps",
    "mean sum of 16 bits saturates": r"mean rounded.* of 16 bits that saturates",
    "only the first item of the batch computed": r"only the first item of the batch computed, the others hold 0",
    "accumulator of 16 bits saturates at each tap, bias first": r"accumulator of 16 bits.* saturates.*tap.*bias first",
}


def is_cause(kind: str, mistake: str, hypothesis: str) -> bool:
    """Return whether the hypothesis of that name is the planted mistake."""
    if kind == "profile":
        return hypothesis == mistake
    if kind == "pair":
        planted, named = mistake.split("; and "), hypothesis.split("; and ")
        orders = (named, named[::-1]) if len(named) == 2 else ()
        return any(all(map(partial(is_cause, "listed"), planted, order)) for order in orders)
    return re.match(_CAUSES.get(mistake, re.escape(mistake)), hypothesis) is not None
