"""Synthetic devices that know ranges instead of scales: drawn from the grammar or beside it, with code of their own.

They compute QUANTIZE, RELU6, LEAKY_RELU, MUL, ADD and SUB on int8. Nothing here uses the grammar's code. Arithmetic is
float32 of NumPy; a fused product and sum is exact in long double, whose 64 bits hold every product of two float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.model.ir import view

Array = np.ndarray[Any, Any]
F = np.float32
LEVELS = 256

#: Faults that the grammar has no value for.
FAULTS = (
    "one level less",
    "rounds up at a quarter",
    "ends in bfloat16",
    "multiplies by the step's reciprocal in float64",
    "one more for codes above 100",
    "lowest code is never given",
)


@dataclass
class Ranged:
    """The fields of a device: how products are added to shifts on each side, and how it rounds."""

    fuses_codes: bool = False
    fuses_reals: bool = True
    taken: str = "ends"  # or "zero", or "made again": how steps become reals
    folds_first: bool = False
    shift_of_ends: bool = False
    cuts_bounds: bool = True
    rounding: str = "half to even"
    sums: str = "counted"
    fault: str = ""

    def run(self, model: Any, inputs: list[Array]) -> Array:
        """Return the output of a model of one operator."""
        graph = view(model)
        op = graph.op(0)
        specs: list[Any] = [graph.tensors[t] for t in op.inputs]
        y: Any = graph.tensors[op.outputs[0]]
        options: dict[str, Any] = {} if op.options is None else dict(op.options.fields)
        constant = any(graph.constant(t) is not None for t in op.inputs)
        if options.get("fused_activation_function", 0) or constant or {s.type.label for s in (*specs, y)} != {"int8"}:
            raise NotImplementedError("activations, constants, other types")
        ends = [self.ends(s.quantization) for s in (*specs, y)]
        steps = [x.astype(F) + F(128) for x in inputs]
        with np.errstate(all="ignore"):
            if op.builtin == "QUANTIZE":
                return self.codes(steps[0], *(self.counted(end, ends[0]) for end in ends[1]))
            if op.builtin == "RELU6":
                bounds = [self.counted(F(real), ends[0]) for real in (0, 6)]
                low, high = (np.floor(b) if self.cuts_bounds else b for b in bounds)
                kept = np.minimum(np.maximum(steps[0], low), high)
                return self.codes(kept, *(self.counted(end, ends[0]) for end in ends[1]))
            if op.builtin in ("ADD", "SUB"):
                return self.added(steps, ends, 1 if op.builtin == "ADD" else -1)
            reals = [self.reals(u, *end) for u, end in zip(steps, ends, strict=False)]
            if op.builtin == "MUL":
                return self.codes(reals[0] * reals[1], *ends[-1])
            if op.builtin == "LEAKY_RELU":
                slope = F(options["alpha"])
                return self.codes(np.where(reals[0] < 0, reals[0] * slope, reals[0]), *ends[-1])
        raise NotImplementedError(op.builtin)

    def ends(self, q: Any) -> tuple[Any, Any]:
        """Return the reals of the lowest and the highest code."""
        scale, zero = F(q.scale[0]), int(q.zero_point[0])
        low, high = scale * F(-128 - zero), scale * F(127 - zero)
        return (bfloat16(low), bfloat16(high)) if self.fault == "ends in bfloat16" else (low, high)

    @property
    def intervals(self) -> Any:
        return F(LEVELS - 2 if self.fault == "one level less" else LEVELS - 1)

    def step(self, low: Any, high: Any) -> Any:
        return (high - low) / self.intervals

    def zero(self, low: Any, high: Any) -> Any:
        return (F(0) - self.intervals * low) / (high - low)

    def counted(self, real: Any, of: tuple[Any, Any]) -> Any:
        return real / self.step(*of) + self.zero(*of)

    def reals(self, steps: Array, low: Any, high: Any) -> Array:
        if self.taken == "zero":
            return np.asarray((steps - self.zero(low, high)) * self.step(low, high))
        if self.taken == "made again":
            zero, step = self.zero(low, high), self.step(low, high)
            low, high = (F(0) - zero) * step, (self.intervals - zero) * step
            return added(steps, self.step(low, high), low, True)
        return added(steps, self.step(low, high), low, self.fuses_reals)

    def codes(self, x: Array, low: Any, high: Any) -> Array:
        """Return the codes of reals."""
        up = self.intervals / (high - low)
        if self.fault.startswith("multiplies"):
            up = F(1 / (float(high - low) / 255 + 1e-9))
        if self.folds_first:
            t = added(x, up, self.intervals * -low / (high - low) + F(-128), True)
        else:
            shift = self.intervals * -low / (high - low) if self.shift_of_ends else -(low * up)
            t = added(np.minimum(np.maximum(x, low), high), up, shift, self.fuses_codes or self.shift_of_ends)
        if self.fault.startswith("rounds up"):
            t = np.floor(t + F(0.75))
        elif self.rounding == "half to even":
            t = np.rint(t)
        else:
            t = np.where(t < 0, -np.floor(F(0.5) - t), np.floor(t + F(0.5)))
        code = np.clip(np.nan_to_num(t) + (0 if self.folds_first else -128), -128, 127)
        if self.fault.startswith("one more"):
            code = np.where(code > 100, np.minimum(code + 1, 127), code)
        return np.asarray(np.maximum(code, -127) if self.fault.startswith("lowest") else code).astype(np.int8)

    def added(self, steps: list[Array], ends: list[Any], sign: int) -> Array:
        a, b, y = ends
        ratio = self.step(*a) / self.step(*b)
        shift = self.zero(*a) + F(sign) * (self.zero(*b) * self.step(*b) / self.step(*a))
        first = (F(0) - shift) * ratio, (self.intervals - shift) * ratio
        left = added(steps[0], self.step(*first), first[0], self.fuses_reals)
        total = left + steps[1] if sign > 0 else left - steps[1]
        if self.sums == "counted":
            return self.codes(total, y[0] / self.step(*b), y[1] / self.step(*b))
        return self.codes(total * self.step(*b), *y)


def added(x: Array, factor: Any, shift: Any, fuses: bool) -> Array:
    if not fuses:
        return np.asarray(x * F(factor) + F(shift))
    wide = np.longdouble
    return np.asarray(x.astype(wide) * wide(factor) + wide(shift)).astype(F)


def bfloat16(x: Any) -> Any:
    bits = np.asarray(x, F).view(np.uint32)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)).view(F)[()]


def ranged(seed: int) -> Ranged:
    """Return the device of a seed; one in three has a fault."""
    rng = np.random.default_rng([seed, 28])
    fuses, fuses_reals, folds, of_ends, cuts = (bool(rng.integers(2)) for _ in range(5))
    taken = ("ends", "zero", "made again")[int(rng.integers(3))]
    rounding = ("half to even", "half away from zero")[int(rng.integers(2))]
    fault = FAULTS[seed // 3 % len(FAULTS)] if seed % 3 == 2 else ""
    sums = ("counted", "back")[int(rng.integers(2))]
    return Ranged(fuses, fuses_reals, taken, folds, of_ends, cuts, rounding, sums, fault)
