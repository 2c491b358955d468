"""Fused multiply-adds that flush subnormal numbers, as LLVM code for x86-64.

Two bits of the control register MXCSR make the processor read and write subnormal numbers as zeros. The code that sets
and restores them is a barrier for memory, so floats that are loaded and stored between the two are computed so.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3: DAZ and FTZ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from tflq.engine.microkernels.vectors import FLOAT, I8, I32, Value

#: DAZ and FTZ.
_FLUSH = 0x8040


def begin(builder: ir.IRBuilder) -> Value:
    """Emit the start of flushing; return the register's value before it, an i32."""
    place = builder.alloca(I32)
    _control(builder, "stmxcsr", place)
    before = builder.load(place)
    builder.store(builder.or_(before, ir.Constant(I32, _FLUSH)), place)
    _control(builder, "ldmxcsr", place)
    return before


def end(builder: ir.IRBuilder, before: Value) -> None:
    """Emit the end of flushing: the register gets the value that `begin` returned."""
    place = builder.alloca(I32)
    builder.store(before, place)
    _control(builder, "ldmxcsr", place)


def _control(builder: ir.IRBuilder, instruction: str, place: Value) -> None:
    llvm.initialize_native_asmparser()  # for which numba has no use of its own
    address = builder.bitcast(place, I8.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [address.type])
    builder.asm(kind, f"{instruction} ($0)", "r,~{memory}", [address], side_effect=True)


def multiply_add(builder: ir.IRBuilder, a: Value, b: Value, c: Value) -> Value:
    """Emit a * b + c with one rounding, of floats or vectors of them."""
    name = "llvm.fma." + ("f32" if a.type == FLOAT else f"v{a.type.count}f32")
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(a.type, [a.type] * 3), name
    )
    return builder.call(function, [a, b, c])


Generate = Callable[..., Any]


def intrinsics() -> tuple[Any, Any, Any]:
    """Return `begin`, `end` and `multiply_add` of scalars as numba intrinsics."""
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def begin_flushing(typing: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return begin(builder)

        return types.int32(), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def end_flushing(typing: Any, before: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            end(builder, context.cast(builder, arguments[0], before, types.int32))
            return context.get_dummy_value()

        return types.void(before), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = signature.args
            floats = [context.cast(builder, x, k, types.float32) for x, k in zip(arguments, kinds, strict=True)]
            return multiply_add(builder, *floats)

        return types.float32(a, b, c), generate

    return begin_flushing, end_flushing, fused
