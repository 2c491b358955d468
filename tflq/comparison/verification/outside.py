"""Real values beyond what a quantized input can represent: usually, mean and standard deviation were forgotten."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tflq.comparison.verification.preparation import spread_text, takes_codes
from tflq.engine.kernels.code_limits import code_limits
from tflq.errors import InputWarning
from tflq.model.ir import GraphView, TensorSpec, TensorType
from tflq.statements import Statement
from tflq.typing import Array

S = TypeVar("S", bound=Mapping[int, Array])

#: The share of values outside that is reported; clamping of fewer outliers is usual.
_SHARE = 0.01
#: Values count as outside if they exceed the range by more than this share of it: its ends are rounded.
_MARGIN = 0.05
#: Images reach at least this number of 0 to 255.
_BRIGHT = 128


@dataclass(slots=True)
class Outside:
    """The values of an input that lie outside of [low, high], counted over samples.

    Attributes:
        spec: The quantized tensor that the values are for.
        low: The real value of the lowest code.
        high: The real value of the highest code.
        values: The number of values.
        outside: How many of them lie outside, by more than the margin.
        whole: True as long as all values are whole numbers, as stored ones are.
        pixels: True as long as they are also from 0 to 255.
        top: The largest value; at least 0.
    """

    spec: TensorSpec
    low: float
    high: float
    values: int = 0
    outside: int = 0
    whole: bool = True
    pixels: bool = True
    top: float = 0.0

    @staticmethod
    def of(spec: TensorSpec) -> Outside | None:
        """Return the counter of a tensor; None if it has no codes of one scale."""
        q = spec.quantization
        if not takes_codes(spec) or q is None or len(q.scale) != 1 or not q.scale[0] > 0:
            return None
        zero = int(q.zero_point[0]) if len(q.zero_point) else 0
        low, high = ((code - zero) * float(q.scale[0]) for code in code_limits(TensorType(spec.type)))
        return Outside(spec, low, high)

    def add(self, real: Array) -> None:
        """Count the values of a sample."""
        margin = (self.high - self.low) * _MARGIN
        self.values += real.size
        self.outside += int(np.count_nonzero((real < self.low - margin) | (real > self.high + margin)))
        self.whole = self.whole and bool(np.all(real == np.rint(real)))
        self.pixels = self.pixels and self.whole and bool(np.all((real >= 0) & (real <= 255)))
        self.top = max(self.top, float(real.max(initial=0.0)))

    def warn(self, *, has_scaling: bool) -> None:
        """Warn if more than a few values are outside."""
        if self.outside <= _SHARE * self.values:
            return
        name, share = self.spec.name or "input", 100 * self.outside / self.values
        limits = f"[{self.low:.4g}, {self.high:.4g}]"
        question = "were mean and std forgotten (--mean, --std)?"
        if has_scaling:
            question = "are mean and std right?"
        elif not self.whole:
            question = "they saturate: the model was calibrated on other samples, or these need --mean and --std"
        hint = spread_text(self.spec) if self.pixels and self.top >= _BRIGHT and not has_scaling else ""
        text = f"{name}: {share:.0f} % of its values are far outside {limits}, the range of the quantized input: "
        facts = {"outside": self.outside, "elements": self.values, "low": self.low, "high": self.high}
        warnings.warn(
            InputWarning(Statement(text + question + hint, "outside-range", name=name, **facts)), stacklevel=3
        )


def watch(samples: Iterable[S], codes: Mapping[int, TensorSpec], *, has_scaling: bool) -> Iterator[S]:
    """Yield the samples; after the last, warn of inputs that exceed what their codes can represent.

    Args:
        samples: Arrays by tensor index.
        codes: The quantized tensors that the values of float inputs are for, by tensor index.
        has_scaling: Whether the values were scaled by a mean and a standard deviation.
    """
    counters = {tensor: counter for tensor, spec in codes.items() if (counter := Outside.of(spec)) is not None}
    for sample in samples:
        for tensor, counter in counters.items():
            counter.add(sample[tensor])
        yield sample
    for counter in counters.values():
        counter.warn(has_scaling=has_scaling)


def codes_of_inputs(given: GraphView, quantized: GraphView) -> dict[int, TensorSpec]:
    """Return what holds the codes of each float input in a quantized model with the same inputs.

    That is its own input, or the result of QUANTIZE where no other operator reads the input.
    """
    found = {}
    for ours, theirs in zip(given.inputs, quantized.inputs, strict=False):
        if given.tensors[ours].type == TensorType.FLOAT32:
            readers = quantized.readers(theirs)
            is_converted = [o.builtin for o in readers] == ["QUANTIZE"]
            found[ours] = readers[0].output() if is_converted else quantized.tensors[theirs]
    return found
