"""Vectors of int32 lanes as LLVM code: the few operations that products and their roundings need.

Values are llvmlite's, of type <lanes x i32> unless stated otherwise. int32 wraps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

Value = Any
I8, I16, I32, I64 = (ir.IntType(width) for width in (8, 16, 32, 64))
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
ADDRESS, ZERO = I8.as_pointer(), ir.Constant(I64, 0)

#: Added to a float32 below 2**22 in magnitude, it leaves the integer nearest to it, half to even, in the low bits.
_TO_INTEGER = 12582912.0
_TO_INTEGER_BITS = 0x4B400000
#: The largest float64 below one half.
_BELOW_HALF = 0.49999999999999994


class Vectors:
    """A writer of code for vectors of `lanes` int32 through an llvmlite builder."""

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes
        self.int32 = ir.VectorType(I32, lanes)
        self._halves = ir.VectorType(I64, lanes // 2)

    def constant(self, number: int) -> Value:
        """Emit `number` in every lane."""
        return self._splat(self.int32, number)

    def spread(self, scalar: Value) -> Value:
        """Emit a scalar in every lane."""
        empty = ir.Constant(ir.VectorType(scalar.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(empty, scalar, ir.Constant(I32, 0))
        return self.builder.shuffle_vector(first, empty, self.constant(0))

    def load(self, address: Value, offset: int, kind: ir.Type) -> Value:
        """Load a value of type `kind` at `address` (of bytes), `offset` bytes on; any alignment."""
        return self.builder.load(self._at(address, offset, kind), align=1)

    def store(self, value: Value, address: Value, offset: int = 0) -> None:
        """Write `value` at `address`, `offset` bytes on; any alignment."""
        self.builder.store(value, self._at(address, offset, value.type), align=1)

    def _at(self, address: Value, offset: int, kind: ir.Type) -> Value:
        place = self.builder.gep(address, [ir.Constant(I64, offset)]) if offset else address
        return self.builder.bitcast(place, kind.as_pointer())

    def shift_left(self, x: Value, amount: Value) -> Value:
        """Emit x * 2**amount, 0 <= amount < 32."""
        return self.builder.shl(x, amount)

    def high_half_up(self, x: Value, mantissa: Value) -> Value:
        """Emit (x * mantissa + 2**30) >> 31 for |x| < 2**30: the doubling high multiplication without its saturation.

        Lanes of even and of odd numbers are multiplied apart, which is what x86 has an instruction for. The result is
        the high word of (2 * x * mantissa + 2**31).
        """
        even, odd = (
            self.builder.add(self.builder.mul(a, b), self._splat(self._halves, 1 << 31))
            for a, b in zip(self._widen(self.builder.add(x, x)), self._widen(mantissa), strict=True)
        )
        return self._interleave(self.builder.lshr(even, self._splat(self._halves, 32)), odd)

    def divide_half_away(self, x: Value, half: Value, below: Value, exponent: Value) -> Value:
        """Emit (x + half + (x < 0 ? below : 0)) >> exponent."""
        sign = self.builder.ashr(x, self.constant(31))
        nudged = self.builder.add(self.builder.add(x, half), self.builder.and_(sign, below))
        return self.builder.ashr(nudged, exponent)

    def divide_all_half_away(self, x: Value, half: Value, exponent: Value) -> Value:
        """Emit (x + half - (x < 0)) >> exponent."""
        nudged = self.builder.add(self.builder.add(x, half), self.builder.ashr(x, self.constant(31)))
        return self.builder.ashr(nudged, exponent)

    def once_half_up(self, x: Value, mantissa: Value, amount: Value) -> Value:
        """Emit (x * mantissa + 2**(amount - 1)) >> amount, cut to 32 bits; 0 <= amount < 63, nothing added for 0."""
        parts = []
        for a, b, by in zip(self._widen(x), self._widen(mantissa), self._widen(amount), strict=True):
            half = self.builder.lshr(self.builder.shl(self._splat(self._halves, 1), by), self._splat(self._halves, 1))
            parts.append(self.builder.ashr(self.builder.add(self.builder.mul(a, b), half), by))
        even, odd = parts
        return self._interleave(even, self.builder.shl(odd, self._splat(self._halves, 32)))

    def short_half_up(self, x: Value, half: Value, exponent: Value, mantissa: Value) -> Value:
        """Emit (s * mantissa + 2**14) >> 15 for s = (x + half) >> exponent, saturated to int16; 15-bit mantissas."""
        short = self.builder.ashr(self.builder.add(x, half), exponent)
        short = self.clamp(short, self.constant(-(2**15)), self.constant(2**15 - 1))
        rounded = self.builder.add(self.builder.mul(short, mantissa), self.constant(1 << 14))
        return self.builder.ashr(rounded, self.constant(15))

    def float64_half_away(self, x: Value, real: Value) -> Value:
        """Emit x * real (<lanes x double>), one float64 product, rounded half away from zero; the result fits int32."""
        kind = ir.VectorType(DOUBLE, self.lanes)
        product = self.builder.fmul(self.builder.sitofp(x, kind), real)
        # The conversion truncates; no float64 lies between the largest below one half, and one half.
        bits = ir.VectorType(I64, self.lanes)
        sign = self.builder.and_(self.builder.bitcast(product, bits), self._splat(bits, -(1 << 63)))
        half = self.builder.bitcast(self._splat(kind, _BELOW_HALF), bits)
        nudge = self.builder.bitcast(self.builder.or_(half, sign), kind)
        return self.builder.fptosi(self.builder.fadd(product, nudge), self.int32)

    def float32_half_even(self, x: Value, real: Value) -> Value:
        """Emit x as float32, times `real` (<lanes x float>), held within 2**21, rounded half to even."""
        kind = ir.VectorType(FLOAT, self.lanes)
        product = self.builder.fmul(self.builder.sitofp(x, kind), real)
        for limit, order in ((2.0**21, "<"), (-(2.0**21), ">")):
            end = self._splat(kind, limit)
            product = self.builder.select(self.builder.fcmp_ordered(order, product, end), product, end)
        shifted = self.builder.fadd(product, self._splat(kind, _TO_INTEGER))
        return self.builder.sub(self.builder.bitcast(shifted, self.int32), self.constant(_TO_INTEGER_BITS))

    def clamp(self, x: Value, low: Value, high: Value) -> Value:
        """Emit min(max(x, low), high), signed."""
        x = self.builder.select(self.builder.icmp_signed(">", x, low), x, low)
        return self.builder.select(self.builder.icmp_signed("<", x, high), x, high)

    def narrowed(self, parts: list[Value], code: str) -> Value:
        """Emit the lanes of `parts`, one behind the other, saturated to "int8" or "uint8", as x86 narrows registers.

        Two registers become one, 128 bits at a time: four parts interleave by groups of four lanes.
        """
        width, four = 4 * self.lanes, [parts[min(i, len(parts) - 1)] for i in range(4)]
        pairs = [self.narrowed_pair(*two) for two in (four[:2], four[2:])]
        codes = self._pack("packsswb" if code == "int8" else "packuswb", pairs[0], pairs[1], I8)
        order = [16 * (lane // 4) + 4 * part + lane % 4 for part in range(len(parts)) for lane in range(self.lanes)]
        if len(order) == width == 16:  # one group of each
            return codes
        mask = ir.Constant(ir.VectorType(I32, len(order)), order)
        return self.builder.shuffle_vector(codes, ir.Constant(codes.type, ir.Undefined), mask)

    def narrowed_pair(self, first: Value, second: Value) -> Value:
        """Emit the lanes of two registers saturated to int16, in turns of four lanes of `first`, four of `second`."""
        return self._pack("packssdw", first, second, I16)

    def _pack(self, name: str, first: Value, second: Value, element: ir.Type) -> Value:
        """Emit an instruction that narrows two registers to `element` and saturates."""
        full = {4: f"llvm.x86.sse2.{name}.128", 8: f"llvm.x86.avx2.{name}", 16: f"llvm.x86.avx512.{name}.512"}
        kind = ir.VectorType(element, 2 * first.type.count)
        function = ir.FunctionType(kind, [first.type, second.type])
        return self.builder.call(self.builder.module.declare_intrinsic(full[self.lanes], (), function), [first, second])

    def joined(self, parts: list[Value]) -> Value:
        """Join vectors side by side."""
        whole = parts[0]
        for part in parts[1:]:
            whole = self._append(whole, part)
        return whole

    def _append(self, first: Value, second: Value) -> Value:
        """Append `second` to `first`, which is one or more times as long."""
        length, more = first.type.count, second.type.count
        if more < length:
            unused = ir.Constant(ir.VectorType(I32, length), [min(i, more) for i in range(length)])
            second = self.builder.shuffle_vector(second, ir.Constant(second.type, ir.Undefined), unused)
        order = ir.Constant(ir.VectorType(I32, length + more), list(range(length + more)))
        return self.builder.shuffle_vector(first, second, order)

    def _widen(self, x: Value) -> tuple[Value, Value]:
        """Split into even lanes and odd lanes, each as <lanes / 2 x i64>."""
        by = self._splat(self._halves, 32)
        wide = self.builder.bitcast(x, self._halves)
        return self.builder.ashr(self.builder.shl(wide, by), by), self.builder.ashr(wide, by)

    def _interleave(self, even: Value, odd: Value) -> Value:
        """Interleave the low words of `even` and the high words of `odd` (both <lanes / 2 x i64>)."""
        order = [i + self.lanes * (i % 2) for i in range(self.lanes)]
        first, second = self.builder.bitcast(even, self.int32), self.builder.bitcast(odd, self.int32)
        return self.builder.shuffle_vector(first, second, ir.Constant(self.int32, order))

    @staticmethod
    def _splat(kind: ir.VectorType, number: float) -> ir.Constant:
        return ir.Constant(kind, [number] * kind.count)


class Loop:
    """A loop that runs once at least. Between its making and `end`, code is written into its body.

    Args:
        builder: Writes the code.
        name: The name of the body's block.
        begin: What the loop carries from pass to pass, before the first one.
        number: The number of the first pass, int64.
    """

    def __init__(self, builder: ir.IRBuilder, name: str, begin: Sequence[Value] = (), number: Value = ZERO) -> None:
        before, self._builder, self._body = builder.block, builder, builder.append_basic_block(name)
        builder.branch(self._body)
        builder.position_at_end(self._body)
        self._phis = [builder.phi(value.type) for value in (number, *begin)]
        self._join(before, (number, *begin))
        self.number, *self.carried = self._phis

    def end(self, limit: Value, carried: Sequence[Value] = (), number: Value | None = None) -> None:
        """End the body: what is carried on, and the number of the next pass, which takes place if it is below `limit`.

        By default, it is that of this pass and 1.
        """
        builder = self._builder
        following = builder.add(self.number, ir.Constant(I64, 1)) if number is None else number
        self._join(builder.block, (following, *carried))
        after = builder.append_basic_block("after")
        builder.cbranch(builder.icmp_signed("<", following, limit), self._body, after)
        builder.position_at_end(after)

    def _join(self, block: Value, values: Sequence[Value]) -> None:
        for phi, value in zip(self._phis, values, strict=True):
            phi.add_incoming(value, block)
