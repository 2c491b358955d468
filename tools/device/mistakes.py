"""The known mistakes of devices, as changes of a device, with the operators where each applies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from device.description import RIGHT, Device
from device.site import Site

CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
CONTRACTIONS = (*CONVOLUTIONS, "FULLY_CONNECTED")
SUMS = ("ADD", "SUB")
BY_MULTIPLIER = (*CONTRACTIONS, *SUMS, "MUL", "LEAKY_RELU", "QUANTIZE", "SUM")
TABLES = ("LOGISTIC", "TANH")
IMAGES = (*CONVOLUTIONS, "AVERAGE_POOL_2D")


@dataclass(frozen=True)
class Mistake:
    """One mistake: its name, the changed fields of the device, and the operators where it applies."""

    name: str
    changes: dict[str, Any]
    can_be_made: Callable[[Site], bool]
    parts: tuple[Mistake, ...] = ()  # of two mistakes at once

    def made_by(self, device: Device) -> Device:
        """Return the device with the mistake."""
        return replace(device, **self.changes)


def _of(ops: tuple[str, ...], *conditions: Callable[[Site], bool]) -> Callable[[Site], bool]:
    return lambda site: site.op in ops and all(condition(site) for condition in conditions)


def _narrow(site: Site) -> bool:
    """Return whether activations have 8 bits: products of 32-bit sums and Q31 multipliers then fit 64 bits."""
    return site.type != "int16" or site.op not in CONTRACTIONS


def _zero(position: int) -> Callable[[Site], bool]:
    return lambda site: site.input(position).zero != 0


def _output_zero(site: Site) -> bool:
    return site.output.zero != 0


def _eight_bits(site: Site) -> bool:
    return site.input(0).dtype.itemsize == 1 and site.output.dtype.itemsize == 1


def _several_scales(site: Site) -> bool:
    return len(set(site.input(1).scales.tolist())) > 1


def _has_bias(site: Site) -> bool:
    return len(site.inputs) > 2 and site.inputs[2] is not None


def _pads(site: Site) -> bool:
    kernel = (
        (site.options["filter_height"], site.options["filter_width"])
        if site.op == "AVERAGE_POOL_2D"
        else site.input(1).shape[1:3]
    )
    return int(site.options["padding"]) == 0 and max(kernel) > 1


def _clamps(site: Site) -> bool:
    return site.activation in ("RELU", "RELU6", "RELU_N1_TO_1")


def _is(activation: str) -> Callable[[Site], bool]:
    return lambda site: site.activation == activation


def _spatial_filter(site: Site) -> bool:
    return max(site.input(1).shape[1:3]) > 1


def _several_pixels(site: Site) -> bool:
    shape = site.input(0).shape
    return shape[1] * shape[2] > 1 and shape[3] > 1


def _signed(site: Site) -> bool:
    return site.type == "int8"


_ROUNDINGS = {
    "rounds towards minus infinity": "floor",
    "truncates towards zero": "towards zero",
    "rounds once, half up": "half up",
    "rounds once, half to even": "half even",
    "rounds once, half away from zero": "half away",
    "rounds twice": "twice",
    "rounds half up twice": "up twice",
    "multiplier of 16 bits, one rounding": "sixteen bits",
    "multiplies in float64": "float64 half away",
    "multiplies in float32": "float32 half even",
}
_DIVISIONS = ("floor", "towards zero", "half up", "half even")


def _roundings() -> Iterator[Mistake]:
    for name, rounding in _ROUNDINGS.items():
        made = BY_MULTIPLIER if "float" not in rounding else (*CONTRACTIONS, "MUL", "QUANTIZE")

        def differs(site: Site, rounding: str = rounding) -> bool:
            natural = "float64 half away" if site.op == "FULLY_CONNECTED" else "twice"
            return rounding != natural

        yield Mistake(name, {"rounding": rounding}, _of(made, _narrow, differs))
        if rounding in _DIVISIONS:
            yield Mistake(f"average {name}", {"rounding": rounding}, _of(("AVERAGE_POOL_2D",)))
        if rounding in (*_DIVISIONS, "half away"):
            yield Mistake(f"mean {name}", {"rounding": rounding}, _of(("MEAN",)))
        if rounding in ("floor", "towards zero"):
            yield Mistake(f"table {name}", {"rounding": rounding}, _of(TABLES))


def _multipliers() -> Iterator[Mistake]:
    yield Mistake("multiplier of 16 bits", {"mantissa": 15}, _of(BY_MULTIPLIER, _fixed_point))
    yield Mistake("multiplier computed in float32", {"arithmetic": "float32"}, _of((*CONTRACTIONS, *SUMS, "QUANTIZE")))
    for step, way in ((1, "left"), (-1, "right")):
        yield Mistake(f"shift off by one to the {way}", {"shift": step}, _of((*BY_MULTIPLIER, "MEAN")))
    for scales in ("first", "largest", "mean", "next", "previous"):
        yield Mistake(f"scales: the {scales} one", {"scales": scales}, _of(CONTRACTIONS, _several_scales))


def _fixed_point(site: Site) -> bool:
    return site.op != "FULLY_CONNECTED" and _narrow(site)


def _zero_points() -> Iterator[Mistake]:
    readers = (*BY_MULTIPLIER, *TABLES, "MEAN")
    for point, how in (("ignored", "ignored"), ("negated", "with the wrong sign")):
        yield Mistake(f"zero point of the input {how}", {"x_zero": point}, _of(readers, _zero(0)))
        yield Mistake(f"zero point of the weights {how}", {"w_zero": point}, _of(CONTRACTIONS, _zero(1)))
        yield Mistake(f"zero point of the second input {how}", {"second_zero": point}, _of((*SUMS, "MUL"), _zero(1)))
        yield Mistake(f"zero point of the output {how}", {"y_zero": point}, _of(readers, _output_zero))
    for padding in ("code 0", "negated"):
        yield Mistake(f"padding: {padding}", {"padding": padding}, _of(CONVOLUTIONS, _pads, _zero(0)))


def _sums() -> Iterator[Mistake]:
    for bias in ("missing", "doubled", "halved"):
        yield Mistake(f"bias {bias}", {"bias": bias}, _of(CONTRACTIONS, _has_bias))
    for bits in (16, 24):
        yield Mistake(f"accumulator of {bits} bits wraps", {"bits": bits}, _of(CONTRACTIONS))
        for when in ("at the end", "at each tap"):
            yield Mistake(
                f"accumulator of {bits} bits saturates {when}", {"bits": bits, "saturates": when}, _of(CONTRACTIONS)
            )
    first = {"bits": 16, "saturates": "at each tap", "bias_first": True}
    yield Mistake("accumulator of 16 bits saturates at each tap, bias first", first, _of(CONTRACTIONS, _has_bias))


def _codes() -> Iterator[Mistake]:
    whole = (*BY_MULTIPLIER, *TABLES, "MEAN", "AVERAGE_POOL_2D")
    clamped = tuple(op for op in whole if op not in (*TABLES, "AVERAGE_POOL_2D"))
    yield Mistake("no activation clamp", {"clamp": "type"}, _of((*clamped, "AVERAGE_POOL_2D"), _clamps))
    yield Mistake("codes wrap", {"clamp": "wraps"}, _of(clamped))
    yield Mistake("clamp of the other type", {"clamp": "other type"}, _of(clamped, _eight_bits))
    yield Mistake("RELU in place of RELU6", {"clamp": "RELU"}, _of(clamped, _is("RELU6")))
    yield Mistake("RELU6 in place of RELU", {"clamp": "RELU6"}, _of(clamped, _is("RELU")))
    yield Mistake("input read as the other type", {"x_type": "other"}, _of(whole, _eight_bits))
    yield Mistake("weights read as the other type", {"w_type": "other"}, _of(CONTRACTIONS))
    yield Mistake("output's highest bit flipped", {"y_type": "other"}, _of(clamped, _eight_bits))
    for field in ("index_step", "value_step"):
        for step in (1, -1):
            yield Mistake(f"table {field} {step:+d}", {field: step}, _of(TABLES))


def _dilated(site: Site) -> bool:
    return max(int(site.options.get(f"dilation_{letter}_factor", 1)) for letter in "hw") > 1


def _strided(site: Site) -> bool:
    return max(int(site.options[f"stride_{letter}"]) for letter in "hw") > 1


def _has_channels(site: Site) -> bool:
    return site.output.shape[-1] > 3


def _several_items(site: Site) -> bool:
    return len(site.output.shape) > 1 and site.output.shape[0] > 1


def _one_scale(site: Site) -> bool:
    return site.input(0).scale == site.output.scale and site.input(0).zero == site.output.zero


def _places() -> Iterator[Mistake]:
    """Yield mistakes in one channel, one half, or the windows' places."""
    yield Mistake("dilation ignored", {"ignores_dilation": True}, _of(CONVOLUTIONS, _dilated))
    yield Mistake("stride ignored", {"stride": 1}, _of(CONVOLUTIONS, _strided))
    for channel, offset in ((1, 9), (2, -3)):
        changes = {"channel": channel, "offset": offset}
        yield Mistake(f"offset of {offset:+d} in one channel", changes, _of(CONTRACTIONS, _has_channels))
    shifted = {"channel": 1, "shifts_weights": True}
    yield Mistake("weights of one channel shifted", shifted, _of(CONTRACTIONS, _has_channels))
    half = {"bias": "missing in the second half"}
    yield Mistake("bias missing in one half", half, _of(CONTRACTIONS, _has_bias, _has_channels))
    for saturates, how in (("never", "wraps"), ("at the end", "saturates")):
        sums = {"bits": 16, "saturates": saturates}
        yield Mistake(f"average sum of 16 bits {how}", sums, _of(("AVERAGE_POOL_2D",)))
        yield Mistake(f"mean sum of 16 bits {how}", sums, _of(("MEAN",)))
    yield Mistake("only the first item of the batch computed", {"only_first_item": True}, _several_items)
    for name in ("truncates towards zero", "rounds once, half to even"):
        of_codes = {"averages_codes": True, "rounding": _ROUNDINGS[name]}
        yield Mistake(f"mean of codes {name}", of_codes, _of(("MEAN",), _one_scale))


def _layouts() -> Iterator[Mistake]:
    yield Mistake("input read as NCHW", {"x_order": "NCHW"}, _of(IMAGES, _several_pixels))
    yield Mistake("output written as NCHW", {"y_order": "NCHW"}, _of(CONVOLUTIONS, _several_pixels))
    for order in ("HWIO", "OIHW", "OWHI", "rotated"):
        spatial = (_spatial_filter,) if order != "HWIO" else ()
        yield Mistake(f"filter order {order}", {"filter_order": order}, _of(("CONV_2D",), *spatial))
    for order in ("CHW", "WHC", "rotated"):
        made = _of(("DEPTHWISE_CONV_2D",), _spatial_filter)
        yield Mistake(f"depthwise filter order {order}", {"filter_order": order}, made)
    yield Mistake("dense filter transposed", {"filter_order": "transposed"}, _of(("FULLY_CONNECTED",)))
    yield Mistake("SAME padding on the other side", {"larger_padding": "before"}, _of(IMAGES, _pads))
    yield Mistake("counts padding", {"counts_padding": True}, _of(("AVERAGE_POOL_2D",), _pads))
    yield Mistake(
        "counts padding of code 0", {"counts_padding": True, "padding": "code 0"}, _of(("AVERAGE_POOL_2D",), _pads)
    )
    yield Mistake("fault absent: SUM", {"reads_bytes": False}, _of(("SUM",), _signed))


#: All mistakes.
MISTAKES: tuple[Mistake, ...] = (
    *_roundings(),
    *_multipliers(),
    *_zero_points(),
    *_sums(),
    *_codes(),
    *_layouts(),
    *_places(),
)


def both(first: Mistake, second: Mistake) -> Mistake:
    """Return two mistakes at once, of different fields."""
    return Mistake(
        f"{first.name}; and {second.name}",
        {**first.changes, **second.changes},
        lambda site: first.can_be_made(site) and second.can_be_made(site),
        (first, second),
    )


assert {f for m in MISTAKES for f in m.changes} <= {f.name for f in fields(RIGHT)}
