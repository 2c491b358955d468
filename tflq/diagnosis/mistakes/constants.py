"""Mistakes in prepared constants, and in otherwise correct results.

Mistakes in an operator's prepared constants: clamps, zero points, windows, tables, separate multipliers.

Mistakes in otherwise correct results: codes of one sign, inside narrower limits, one branch computed wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from tflq.comparison.inspection.prepared import PreparedPart, parts_of, prefix_of
from tflq.diagnosis.mistakes.device import Device, DeviceChange, Mistaken, Turn, Under, Values, row_of, unchecked
from tflq.diagnosis.mistakes.stages import mistaken_stages, stages_made
from tflq.engine.api import many as alone_part
from tflq.engine.api.many import Part
from tflq.engine.kernels.families.activation import LIMITS, code_range
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, Shift, ZeroPoint, ZeroPoints
from tflq.engine.numerics.multiplier import FixedMultiplier, Multiplier, ShortMultiplier
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import Profile
from tflq.errors import OptionError, TflqError, UnsupportedError
from tflq.model.ir import CARRIER, TensorType
from tflq.model.surgery.tap import with_tensor
from tflq.typing import Array

#: The name of a mistake, and a function that builds the operator's prepared data with it.
ConstantsMistaken = tuple[str, Callable[[], Any]]

#: Sizes of tables: by 8-bit code; samples of a 16-bit function that lie 128 codes apart.
_TABLES = (256, 513)
#: Operators that devices compute by a table of 256 codes.
_TABLED = ("LOGISTIC", "TANH")


def changes_of_constants(alone: alone_part.Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield mistakes in the constants that the operator's kernel prepares, and in one of its several stages."""
    step = alone.plan(profile).steps[0]
    if step.prepared is None:
        return
    row, turns = row_of(alone, profile), _turns(alone)
    leads = row is not None and not row.session
    for name, build in mistaken_constants(step.prepared.data, step.node):
        run = _of_data(profile, build)
        if name in turns:
            given, made = turns[name]
            yield DeviceChange(name, profile, given=given, made=made, run=run)
        else:
            yield DeviceChange(name, _with_row(profile, row, name) if leads and row is not None else None, run=run)
    if stages_made(alone, profile) > 1:
        for name, build in mistaken_stages(step.prepared.data):
            yield DeviceChange(name, run=_of_data(profile, build))


def _of_data(profile: Profile, build: Callable[[], Any]) -> Device:
    """Return a device with prepared data from `build`, which is called when the device first runs."""
    data = cache(build)

    def device(alone: alone_part.Part) -> Values:
        plan = alone.plan(profile)
        step = plan.steps[0]
        if step.prepared is None:
            raise TflqError("the operator is bound when it runs")
        return alone.run(replace(plan, steps=(replace(step, prepared=replace(step.prepared, data=data())),)))

    return device


def _with_row(profile: Profile, row: Kernel, mistake: str) -> Profile:
    """Return the profile with a row whose prepared constants have the named mistake, for inputs of any shape."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        right = row.prepare(node, arithmetic)
        build = next((build for name, build in mistaken_constants(right.data, node) if name == mistake), None)
        if build is None:
            raise UnsupportedError(node.op, index=node.index, reason=f"has no constant for: {mistake}")
        return replace(right, data=build())

    return profile.derive(f"{profile.name}, {mistake}", kernels={row.op: (replace(row, prepare=prepared),)})


def _turns(alone: alone_part.Part) -> dict[str, tuple[dict[int, Turn], Turn | None]]:
    """Return codes that are off by one at the input or output: the effect of a table that is off by one.

    Other mistakes in the table can come after these.
    """
    found: dict[str, tuple[dict[int, Turn], Turn | None]] = {}
    codes = [*alone.inputs.values(), *alone.got.values()]
    if alone.op.builtin not in _TABLED or any(x.dtype.kind not in "iu" or x.dtype.itemsize > 1 for x in codes):
        return found
    for step, way in ((1, "up"), (-1, "down")):
        turn = Turn(partial(_step, step), partial(_step, -step))
        found[f"table index off by one {way}"] = dict.fromkeys(alone.inputs, turn), None
        found[f"table value off by one {way}"] = {}, turn
    return found


def _step(step: int, codes: Array) -> Array:
    """Return codes moved by a step, saturated at the ends of their type."""
    limits = np.iinfo(codes.dtype)
    return np.clip(codes.astype(np.int64) + step, limits.min, limits.max).astype(codes.dtype)


def mistaken_constants(data: Any, node: Node) -> Iterator[ConstantsMistaken]:
    """Yield every mistake in the prepared data of an operator."""
    type_ = node.outputs[0].type
    if isinstance(type_, TensorType) and CARRIER[type_].kind in "iu":
        yield from _clamps(data, node, CARRIER[type_])
    yield from _zero_points(data)
    yield from _paddings(data)
    yield from _tables(data)
    yield from _multipliers(data)


def _within(part: PreparedPart[Any]) -> str:
    """Return the ending of a mistake's name: the place of the part's owner."""
    return f" ({part.owner})" if part.owner else ""


def _clamps(data: Any, node: Node, dtype: np.dtype[Any]) -> Iterator[ConstantsMistaken]:
    low, high = type_range(dtype)
    span = high - low
    for part in parts_of(data, Clamp):
        right = part.value
        clamps = {
            "no activation clamp": Clamp(low, high),
            "no lower limit of the activation": Clamp(low, right.high),
            "no upper limit of the activation": Clamp(right.low, high),
            "no clamp: codes wrap": Clamp(-(2**31), 2**31 - 1),
            "clamp of the signed type": Clamp(-(span // 2) - 1, span // 2),
            "clamp of the unsigned type": Clamp(0, span),
            "symmetric clamp": Clamp(max(right.low, -(span // 2)), right.high),
        }
        if int(node.options.get("fused_activation_function", 0)) in LIMITS:
            inside = code_range(node, node.outputs[0], _other_sign(dtype))
            clamps["clamp of the other type inside the activation"] = inside
        for name, wrong in clamps.items():
            yield name + _within(part), partial(part.rebuild, wrong)


def _other_sign(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"{'u' if dtype.kind == 'i' else 'i'}{dtype.itemsize}")


def _zero_points(data: Any) -> Iterator[ConstantsMistaken]:
    """Yield mistakes in one zero point after another; limits do not move."""
    for part in parts_of(data, ZeroPoint):
        for name, changed in (("ignored", 0), ("with the wrong sign", -part.value)) if part.value else ():
            yield f"{part.name or 'zero point'} {name}{_within(part)}", partial(part.rebuild, ZeroPoint(changed))
    for several in parts_of(data, ZeroPoints):
        codes = several.value.codes
        if codes.any():
            yield (
                f"{several.name} ignored{_within(several)}",
                partial(several.rebuild, ZeroPoints(np.zeros_like(codes))),
            )
            yield f"{several.name} with the wrong sign{_within(several)}", partial(several.rebuild, ZeroPoints(-codes))


def _paddings(data: Any) -> Iterator[ConstantsMistaken]:
    """Yield windows with their padding in another place: on the other side if it is odd, or all on one side."""
    for part in parts_of(data, Window):
        window, at = part.value, f" ({part.place})" if part.place else ""
        down = _whole(window.height, window.kernel_h, window.stride_h, window.dilation_h, window.out_h)
        across = _whole(window.width, window.kernel_w, window.stride_w, window.dilation_w, window.out_w)
        paddings = {
            "SAME padding on the other side": (down - down // 2, across - across // 2),
            "SAME padding on the other side, vertically": (down - down // 2, window.pad_left),
            "SAME padding on the other side, horizontally": (window.pad_top, across - across // 2),
            **_missing(window),
            "all padding at the start": (down, across),
            "half the kernel as padding": (window.kernel_h // 2, window.kernel_w // 2),
        }
        for name, (top, left) in paddings.items():
            inside = top <= down and left <= across
            if (top, left) != (window.pad_top, window.pad_left) and inside:
                yield name + at, partial(part.rebuild, window._replace(pad_top=top, pad_left=left))


def _missing(window: Window) -> dict[str, tuple[int, int]]:
    """Return the paddings at the top and at the left if one or both are missing."""
    top, left = window.pad_top, window.pad_left
    if not (top and left):
        return {f"padding at the {'top' if top else 'left'} is missing": (0, 0)}
    one = {"padding at the top is missing": (0, left), "padding at the left is missing": (top, 0)}
    return {**one, "all padding at the end": (0, 0)}


def _whole(size: int, kernel: int, stride: int, dilation: int, out: int) -> int:
    """Return the padding at both ends together, in pixels."""
    return max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size)


def _tables(data: Any) -> Iterator[ConstantsMistaken]:
    for part in parts_of(data, np.ndarray):
        table, at = part.value, f" ({part.place})" if part.place else ""
        if table.ndim == 1 and table.size in _TABLES and table.dtype.kind in "iu" and table.dtype.itemsize <= 2:
            for name, changed in _wrong_tables(table):
                yield name + at, partial(part.rebuild, changed)


def _wrong_tables(table: Array) -> Iterator[tuple[str, Array]]:
    order = np.arange(table.size)  # entries in ascending order of their codes
    if table.size == 256:
        shared = order < 128  # codes that both types have; the others lie beyond one end of the other type's table
        end = 127 if table.dtype.kind == "i" else 0
        yield "table read by the other signedness, held at its end", table[np.where(shared, order, end)]
        yield "table in the order of the other signedness", np.roll(table, 128)
        order = np.roll(order, 128) if table.dtype.kind == "i" else order
    lowest, highest = type_range(table.dtype)
    for step, way in ((1, "up"), (-1, "down")):
        neighbours = order[np.clip(np.arange(table.size) + step, 0, table.size - 1)]
        yield f"table index off by one {way}", _move(table, order, neighbours)
        yield f"table index off by one {way}, around the ends", np.roll(table, -step)
        moved = np.clip(table.astype(np.int64) + step, lowest, highest)
        yield f"table value off by one {way}", moved.astype(table.dtype)


def _move(table: Array, places: Array, sources: Array) -> Array:
    moved = np.empty_like(table)
    moved[places] = table[sources]
    return moved


def _multipliers(data: Any) -> Iterator[ConstantsMistaken]:
    """Yield mistakes in fixed-point multipliers outside stages, and in separate shifts."""
    for part in parts_of(data, Multiplier):
        (mantissa, shift), prefix = part.value, prefix_of(part.name)
        if abs(mantissa) >= 1 << 16:
            name, rounded = f"{prefix}mantissa of 16 bits", min(mantissa + (1 << 15) >> 16 << 16, 2**31 - 2**16)
            yield name + _within(part), partial(part.rebuild, Multiplier(rounded, shift))
            yield f"{name}, cut off{_within(part)}", partial(part.rebuild, Multiplier(mantissa >> 16 << 16, shift))
        for name, wrong in _shift(shift):
            yield f"{prefix}shift {name}{_within(part)}", partial(part.rebuild, Multiplier(mantissa, wrong))
    for short in parts_of(data, ShortMultiplier):
        for name, wrong in _shift(short.value.shift):
            changed = short.value._replace(shift=wrong)
            yield f"{prefix_of(short.name)}shift {name}{_within(short)}", partial(short.rebuild, changed)
    for alone in parts_of(data, Shift):
        for name, wrong in _shift(alone.value):
            yield f"{alone.name} {name}{_within(alone)}", partial(alone.rebuild, Shift(wrong))
    for fixed in parts_of(data, FixedMultiplier):
        for name, wrong in (
            ("off by one bit to the left", fixed.value * 2),
            ("off by one bit to the right", fixed.value >> 1),
        ):
            yield f"{fixed.name} {name}{_within(fixed)}", partial(fixed.rebuild, FixedMultiplier(wrong))


def _shift(shift: int) -> Iterator[tuple[str, int]]:
    yield "off by one to the left", shift + 1
    yield "off by one to the right", shift - 1


#: By name: a limit for signed results, codes or floats.
_LIMITS: dict[str, Callable[[Array], Array]] = {
    "results of one sign only: the smaller of the result and -1": lambda y: np.minimum(y, y.dtype.type(-1)),
    "results of one sign only: the smaller of the result and 0": lambda y: np.minimum(y, y.dtype.type(0)),
    "results of one sign only: the larger of the result and 0": lambda y: np.maximum(y, y.dtype.type(0)),
}


def mistaken_results(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield limits of the results at 0 and -1, and at the lowest and highest codes of the dump."""
    for name, limit in _LIMITS.items():
        yield name, Under(profile, made=partial(_limit, limit))
    if len(alone.op.outputs) == 1:
        yield "saturates to the type before the zero point is added", partial(_saturate_first, profile)
    yield from _branches(alone, profile)
    codes = [v for v in alone.got.values() if v.dtype.kind in "iu" and v.size]
    if len(codes) == 1:
        low, high = codes[0].min(), codes[0].max()
        yield (
            f"clamp at another code: no result below {low}",
            Under(profile, made=partial(_limit, lambda y: np.maximum(y, low))),
        )
        yield (
            f"clamp at another code: no result above {high}",
            Under(profile, made=partial(_limit, lambda y: np.minimum(y, high))),
        )


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


def _limit(limit: Callable[[Array], Array], values: Array) -> Array:
    return limit(values) if values.dtype.kind in "if" else values
