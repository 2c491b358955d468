"""Copies of a few elements at a time, of any type and alignment: LLVM does not turn a loop into these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflq.engine.jit.compiled import Compiled, Int, compiled
from tflq.engine.microkernels.emitted import sources
from tflq.typing import Array

#: Elements of a run.
RUN = 16


class EmittedRun(Compiled[..., None]):
    """The copy: `python` defines it, compiled code contains one load, one conversion and one store of vectors."""

    writes_code = True

    def digest(self) -> str:
        """Return a digest of the code that writes it."""
        return sources()[:16]

    def _link(self) -> Any:
        emitted: Callable[..., None] = _intrinsic()
        return emitted


def _intrinsic() -> Any:
    """Return the copy as a numba intrinsic with the arguments of its definition."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    def is_integer(kind: Any) -> bool:
        return isinstance(kind, types.Integer)

    def converted(builder: Any, values: Any, source: Any, kind: Any, target: Any) -> Any:
        """Emit integers cut, extended or rounded to the type of `target`; floats have it already."""
        if not is_integer(target):
            turned = builder.sitofp if is_integer(source) and source.signed else builder.uitofp
            return turned(values, kind) if is_integer(source) else values
        if source.bitwidth == target.bitwidth:
            return values
        if source.bitwidth > target.bitwidth:
            return builder.trunc(values, kind)
        return (builder.sext if source.signed else builder.zext)(values, kind)

    @intrinsic  # type: ignore[untyped-decorator]
    def run_into(typing: Any, source: Any, begin: Any, less: Any, out: Any, at: Any) -> Any:
        if source.dtype != out.dtype and not is_integer(source.dtype):
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            places, kinds = [], []
            for array, element in ((0, 1), (3, 4)):
                data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
                kind = ir.VectorType(context.get_data_type(signature.args[array].dtype), RUN)
                first = context.cast(builder, arguments[element], signature.args[element], types.int64)
                places.append(builder.bitcast(builder.gep(data, [first]), kind.as_pointer()))
                kinds.append(kind)
            values = converted(builder, builder.load(places[0], align=1), source.dtype, kinds[1], out.dtype)
            subtracted = context.cast(builder, arguments[2], signature.args[2], out.dtype)
            empty = ir.Constant(kinds[1], ir.Undefined)
            one = builder.insert_element(empty, subtracted, ir.Constant(ir.IntType(32), 0))
            every = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), RUN), [0] * RUN))
            subtract = builder.sub if is_integer(out.dtype) else builder.fsub
            builder.store(subtract(values, every), places[1], align=1)
            return context.get_dummy_value()

        return types.void(source, begin, less, out, at), generate

    return run_into


def _emit(function: Compiled[..., None]) -> EmittedRun:
    """Go above `@compiled`, whose function is the definition."""
    return EmittedRun(function.python)


@_emit
@compiled
def run_into(source: Array, begin: Int, less: Int, out: Array, at: Int) -> None:
    """Write RUN elements of `source` from `begin` on, less `less` in the type of `out`, from out[at] on.

    The caller guarantees: `source` and `out` are flat and contiguous, and the elements lie inside of both.
    """
    out[at : at + RUN] = source[begin : begin + RUN].astype(out.dtype) - less
