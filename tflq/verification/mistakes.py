"""What devices get wrong, each expressed once: on an operator's tensors, or on its prepared output stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.ir import Model
from tflq.numerics.float32_stages import FloatRoundingEven
from tflq.numerics.stages import (
    DoubleRounding,
    FloatRounding,
    HalfUpTwice,
    OutputPipeline,
    Reals,
    SingleRounding,
    type_range,
)

Array = NDArray[Any]
Round = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class RealRounding:
    """float64 product of accumulator and multiplier, brought to an integer by `round`."""

    real: Reals
    round: Round

    def __call__(self, accumulator: Array) -> Array:
        """Scaled accumulators, int32."""
        return self._scaled(accumulator).astype(np.int32)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """As OutputStage.narrow."""
        channels = accumulator.shape[1]
        added = bias[:channels] if len(bias) >= channels else np.full(channels, bias[0])
        scaled = self._scaled(accumulator.astype(np.int64) + added.astype(np.int64))
        out[...] = np.clip(scaled + zero_point, low, high).astype(out.dtype)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """As OutputStage.narrow_flat."""
        out[...] = np.clip(self._scaled(accumulator) + zero_point, low, high).astype(out.dtype)

    def _scaled(self, total: Array) -> NDArray[np.int64]:
        real = self.real if len(self.real) == 1 else self.real[: total.shape[-1]]
        return self.round(total.astype(np.float64) * real).astype(np.int64)


def _half_up(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.floor(x + 0.5)


def _q15(real: Reals) -> Reals:
    """The multipliers with mantissas of 15 bits and a sign, rounded to nearest."""
    fraction, exponent = np.frexp(real)
    rounded: Reals = np.ldexp(np.rint(fraction * 2**15), exponent - 15)
    return rounded


#: By name, the stage a device has in place of one: made of the stage's real multipliers.
_STAGES: dict[str, Callable[[Any], Any]] = {
    "rounds towards minus infinity": lambda s: RealRounding(s.real, np.floor),
    "truncates towards zero": lambda s: RealRounding(s.real, np.trunc),
    "rounds half up, in float64": lambda s: RealRounding(s.real, _half_up),
    "rounds half to even, in float64": lambda s: RealRounding(s.real, np.rint),
    "rounds half away from zero, in float64": lambda s: FloatRounding.of(s.real),
    "multiplies in float32": lambda s: FloatRoundingEven.of(s.real),
    "rounds once": lambda s: SingleRounding.of(s.real),
    "rounds twice": lambda s: DoubleRounding.of(s.real),
    "rounds half up twice": lambda s: HalfUpTwice.of(s.real),
    "multiplier of 16 bits": lambda s: type(s).of(_q15(s.real)),
    "multiplier rounded to float32": lambda s: type(s).of(s.real.astype(np.float32).astype(np.float64)),
    "shift off by one to the left": lambda s: type(s).of(s.real * 2),
    "shift off by one to the right": lambda s: type(s).of(s.real / 2),
    "the first channel's multiplier for all": lambda s: type(s).of(np.full_like(s.real, s.real[0])),
    "the next channel's multiplier": lambda s: type(s).of(np.roll(s.real, -1)),
    "the previous channel's multiplier": lambda s: type(s).of(np.roll(s.real, 1)),
}


def stage_mistakes(data: Any) -> Iterator[tuple[str, Any]]:
    """An operator's prepared data with one of its pipelines changed; the name says what was done, and where."""
    for where, pipeline, rebuild in _pipelines("", data, lambda changed: changed):
        for name, make in _STAGES.items():
            try:
                stage = make(pipeline.stage)
            except (AttributeError, TypeError, ValueError):  # not every stage is made of real multipliers
                continue
            yield f"{name} ({where})", rebuild(replace(pipeline, stage=stage))
        low, high = type_range(pipeline.dtype)
        yield f"no activation clamp ({where})", rebuild(replace(pipeline, low=low, high=high))


def _pipelines(
    name: str, value: Any, rebuild: Callable[[Any], Any]
) -> Iterator[tuple[str, OutputPipeline, Callable[[Any], Any]]]:
    """Every pipeline below `value`, where it is, and what makes the whole of a changed one."""
    if isinstance(value, OutputPipeline):
        yield name, value, rebuild
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if not field.init:
                continue

            def inside(changed: Any, name: str = field.name) -> Any:
                return rebuild(replace(value, **{name: changed}))

            yield from _pipelines(f"{name}.{field.name}" if name else field.name, getattr(value, field.name), inside)


def model_mistakes(alone: Model) -> Iterator[tuple[str, Model]]:
    """A single operator's model with one of its tensors misread."""
    graph = alone.subgraphs[0]
    operator = graph.operators[0]
    places = [(f"input {i}", t) for i, t in enumerate(operator.inputs)]
    places += [(f"output {i}", t) for i, t in enumerate(operator.outputs)]
    for place, tensor in places:
        spec = graph.tensors[tensor] if tensor >= 0 else None
        if spec is None:
            continue
        q = spec.quantization
        if q is not None and np.any(q.zero_point):
            for name, points in (("ignored", np.zeros_like(q.zero_point)), ("with the wrong sign", -q.zero_point)):
                changed = replace(spec, quantization=replace(q, zero_point=points))
                tensors = (*graph.tensors[:tensor], changed, *graph.tensors[tensor + 1 :])
                yield (
                    f"zero point of {place} {name}",
                    replace(alone, subgraphs=(replace(graph, tensors=tensors), *alone.subgraphs[1:])),
                )
    bias = operator.inputs[2] if len(operator.inputs) == 3 else -1
    if bias >= 0 and 0 < (at := graph.tensors[bias].buffer) < len(alone.buffers):
        buffer = alone.buffers[at]
        if buffer.data is not None:
            empty = replace(buffer, data=np.zeros_like(buffer.data))
            yield "bias missing", replace(alone, buffers=(*alone.buffers[:at], empty, *alone.buffers[at + 1 :]))
