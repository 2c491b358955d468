"""Single operations of float32 that flush subnormal numbers to zero: by the processor, or in float64.

Compiled code calls `before = begin_flushing()`, computes floats that it loads from arrays and stores to arrays, and
calls `end_flushing(before)`. In between, subnormals are read as zeros of their sign, and a result that would be
subnormal becomes one. Each operation rounds once, half to even. Where the processor cannot flush, its definition here
does, in float64. Two bits of x86-64's control register MXCSR flush; the code that sets and restores them is a barrier
for memory.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3: DAZ and FTZ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, compiling_is_off, digest_of_file
from tflq.engine.jit.processors import features, machine

if TYPE_CHECKING:
    from llvmlite import ir

#: The smallest normal number, 2**-126.
TINY = float(np.finfo(np.float32).tiny)
#: The smallest value that 24 bits without a lowest exponent round up to it: 2**-126 - 2**-151.
ROUNDS_TO_TINY = TINY - 2.0**-151
#: DAZ and FTZ.
_FLUSH = 0x8040


@cache
def is_native() -> bool:
    """Return whether this processor has the operations: x86-64 with FMA."""
    return not compiling_is_off() and machine() == "x86_64" and "fma" in features()


def begin(builder: ir.IRBuilder) -> Any:
    """Emit the start of flushing; return the register's value before it, an i32."""
    from llvmlite import ir

    place = builder.alloca(ir.IntType(32))
    _control(builder, "stmxcsr", place)
    before = builder.load(place)
    builder.store(builder.or_(before, ir.Constant(ir.IntType(32), _FLUSH)), place)
    _control(builder, "ldmxcsr", place)
    return before


def end(builder: ir.IRBuilder, before: Any) -> None:
    """Emit the end of flushing: the register gets the value that `begin` returned."""
    from llvmlite import ir

    place = builder.alloca(ir.IntType(32))
    builder.store(before, place)
    _control(builder, "ldmxcsr", place)


def _control(builder: ir.IRBuilder, instruction: str, place: Any) -> None:
    import llvmlite.binding as llvm
    from llvmlite import ir

    llvm.initialize_native_asmparser()  # for which numba has no use of its own
    address = builder.bitcast(place, ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [address.type])
    builder.asm(kind, f"{instruction} ($0)", "r,~{memory}", [address], side_effect=True)


def fuse(builder: ir.IRBuilder, a: Any, b: Any, c: Any) -> Any:
    """Emit a * b + c with one rounding, of floats or vectors of them."""
    from llvmlite import ir

    name = "llvm.fma." + (f"v{a.type.count}f32" if isinstance(a.type, ir.VectorType) else "f32")
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(a.type, [a.type] * 3), name
    )
    return builder.call(function, [a, b, c])


@cache
def _intrinsics() -> dict[str, Any]:
    """Return what takes the place of the functions below, as numba intrinsics by name."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def begin_flushing(typing: Any) -> Any:
        return types.int32(), lambda context, builder, signature, arguments: begin(builder)

    @intrinsic  # type: ignore[untyped-decorator]
    def end_flushing(typing: Any, before: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            end(builder, context.cast(builder, arguments[0], before, types.int32))
            return context.get_dummy_value()

        return types.void(before), generate

    def floats(emit: Callable[..., Any]) -> Callable[..., Any]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = zip(arguments, signature.args, strict=True)
            return emit(builder, *(context.cast(builder, value, kind, types.float32) for value, kind in kinds))

        return generate

    @intrinsic  # type: ignore[untyped-decorator]
    def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
        return types.float32(a, b, c), floats(fuse)

    def of_two(emit: Callable[..., Any]) -> Any:
        def operation(typing: Any, a: Any, b: Any) -> Any:
            return types.float32(a, b), floats(emit)

        return intrinsic(operation)

    operations = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
    return {
        "begin_flushing": begin_flushing,
        "end_flushing": end_flushing,
        "multiply_add": multiply_add,
        "multiply_add_once": multiply_add,
        **{name: of_two(getattr(ir.IRBuilder, method)) for name, method in operations.items()},
    }


class Flushed(Compiled[..., Any]):
    """A function that compiled code takes from the processor, if `is_native`; `python` defines it elsewhere."""

    @property
    def writes_code(self) -> bool:  # type: ignore[override]
        """True where the processor has the instructions."""
        return is_native()

    def digest(self) -> str:
        """Return a digest of the code that counts: the definition, or what writes the instructions."""
        return digest_of_file(__file__)[:16] + self.python.__name__ if is_native() else super().digest()

    def _link(self) -> Any:
        return _intrinsics()[self.python.__name__] if is_native() else super()._link()


def _flushed(definition: Compiled[..., Any]) -> Flushed:
    """Take a function from the intrinsic of its name. Put it above `@compiled`."""
    return Flushed(definition.python)


@compiled
def read(x: Real) -> Real:
    """Return `x`, a subnormal as a zero of its sign."""
    return np.copysign(np.float32(0), x) if abs(x) < np.float32(TINY) else x


@compiled
def round(x: Real) -> Real:
    """Round a float64 that has at least one bit more than the result needs."""
    return np.float32(np.copysign(0.0, x)) if abs(x) < ROUNDS_TO_TINY else np.float32(x)


@compiled
def power_of_two(exponent: Int) -> Real:
    """Return 2**exponent as a float64, for exponents from -1022 to 1023."""
    return np.int64(np.int64(exponent + 1023) << 52).view(np.float64)


@compiled
def product_and_sum_to_odd(a: Real, b: Real, c: Real) -> Real:
    """Return a * b + c of three float32 in float64; if that is not exact, the neighbour with an odd mantissa.

    Source: Knuth's TwoSum; Boldo and Melquiond, Emulation of FMA.
    """
    product = np.float64(a) * np.float64(b)
    total = product + np.float64(c)
    second = total - product
    lost = (product - (total - second)) + (np.float64(c) - second)
    if lost != 0 and np.isfinite(total):
        bits = np.float64(total).view(np.int64)
        if bits & 1 == 0:
            bits += 1 if (lost > 0) == (total > 0) else -1
            total = np.int64(bits).view(np.float64)
    return total


@compiled
def fma(a: Real, b: Real, c: Real) -> Real:
    """Return a * b + c, rounded once, by float64 on every processor."""
    return round(product_and_sum_to_odd(read(a), read(b), read(c)))


@_flushed
@compiled
def begin_flushing() -> Int:
    """Begin to flush; return what `end_flushing` takes."""
    return 0


@_flushed
@compiled
def end_flushing(before: Int) -> None:
    """End what `begin_flushing` began."""


@_flushed
@compiled
def add(a: Real, b: Real) -> Real:
    """Return a + b."""
    return round(np.float64(read(a)) + np.float64(read(b)))


@_flushed
@compiled
def subtract(a: Real, b: Real) -> Real:
    """Return a - b."""
    return round(np.float64(read(a)) - np.float64(read(b)))


@_flushed
@compiled
def multiply(a: Real, b: Real) -> Real:
    """Return a * b."""
    return round(np.float64(read(a)) * np.float64(read(b)))


@_flushed
@compiled
def divide(a: Real, b: Real) -> Real:
    """Return a / b."""
    return round(np.float64(read(a)) / np.float64(read(b)))


@_flushed
@compiled
def multiply_add(a: Real, b: Real, c: Real) -> Real:
    """Return a * b + c, rounded once."""
    return fma(a, b, c)


@_flushed
@compiled
def multiply_add_once(a: Real, b: Real, c: Real) -> Real:
    """Return a * b + c, rounded once; subnormals are kept, except between `begin_flushing` and `end_flushing`."""
    return np.float32(product_and_sum_to_odd(a, b, c))


@compiled
def smaller(a: Real, b: Real) -> Real:
    """Return the minimum, or `b` if one is NaN or both are equal, as x86 does."""
    return a if a < b else b


@compiled
def larger(a: Real, b: Real) -> Real:
    """Return the maximum, or `b` if one is NaN or both are equal, as x86 does."""
    return a if a > b else b
