"""Instructions by which several threads agree on words of one int64 array, for compiled code.

Each takes (words, at, a, b) and returns an int64; all threads see the values of `words[at]` in the same order
(sequentially consistent). The definitions in Python are valid for one thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tflq.engine.jit.compiled import Compiled, Int, compiled
from tflq.typing import Array

_ORDER = "seq_cst"
#: LLVM's name of the instruction that marks a waiting loop, and its arguments, by architecture.
_PAUSES: dict[str, tuple[str, list[int]]] = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", [1]),
}


class Instruction(Compiled[..., Int]):
    """An instruction: `python` defines it, compiled code contains the output of `emit(builder, address, a, b)`."""

    writes_code = True

    def __init__(self, definition: Callable[..., Int], emit: Callable[..., Any]) -> None:
        super().__init__(definition)
        self._emit = emit

    def digest(self) -> str:
        """Return a digest of its name and of this file."""
        content = Path(__file__).read_bytes() + self.python.__name__.encode()
        return hashlib.sha256(content).hexdigest()[:16]

    def _link(self) -> Any:
        from numba.core import types
        from numba.extending import intrinsic

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = context.make_array(signature.args[0])(context, builder, arguments[0])
            at, a, b = (
                context.cast(builder, value, kind, types.int64)
                for value, kind in zip(arguments[1:], signature.args[1:], strict=True)
            )
            return self._emit(builder, builder.gep(words.data, [at]), a, b)

        @intrinsic  # type: ignore[untyped-decorator]
        def instruction(typing: Any, words: Any, at: Any, a: Any, b: Any) -> Any:
            return types.int64(words, at, a, b), write

        return instruction


def _instruction(emit: Callable[..., Any]) -> Callable[[Compiled[..., Int]], Instruction]:
    """Return a decorator that goes above `@compiled`, whose function is the definition."""
    return lambda function: Instruction(function.python, emit)


def _emit_look(builder: Any, address: Any, a: Any, b: Any) -> Any:
    from llvmlite import ir
    from numba.core import cgutils

    name, arguments = _PAUSES.get(builder.module.triple.split("-")[0], ("", []))
    if name:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(32)] * len(arguments))
        pause = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(pause, [ir.IntType(32)(each) for each in arguments])
    return builder.load_atomic(address, _ORDER, 8)


@_instruction(_emit_look)
@compiled
def look(words: Array, at: Int, a: Int, b: Int) -> Int:
    """Return the word, read after a short pause: for loops that wait.

    The caller guarantees: `words` has an element `at`.
    """
    return words[at]


@_instruction(lambda builder, address, a, b: builder.atomic_rmw("add", address, a, _ORDER))
@compiled
def add(words: Array, at: Int, a: Int, b: Int) -> Int:
    """Add `a` to the word; return its previous value.

    The caller guarantees: `words` has an element `at`.
    """
    words[at] += a
    return words[at] - a


@_instruction(lambda builder, address, a, b: builder.atomic_rmw("xchg", address, a, _ORDER))
@compiled
def put(words: Array, at: Int, a: Int, b: Int) -> Int:
    """Set the word to `a`; return its previous value.

    The caller guarantees: `words` has an element `at`.
    """
    before, words[at] = words[at], a
    return before


def _emit_swap(builder: Any, address: Any, a: Any, b: Any) -> Any:
    swapped = builder.extract_value(builder.cmpxchg(address, a, b, _ORDER, _ORDER), 1)
    return builder.zext(swapped, a.type)


@_instruction(_emit_swap)
@compiled
def swap(words: Array, at: Int, a: Int, b: Int) -> Int:
    """Set the word to `b` if it is `a`; return whether it was.

    The caller guarantees: `words` has an element `at`.
    """
    if words[at] != a:
        return 0
    words[at] = b
    return 1


def _emit_call(builder: Any, address: Any, a: Any, b: Any) -> Any:
    from llvmlite import ir

    call = builder.inttoptr(builder.load(address), address.type)
    function = ir.FunctionType(ir.IntType(32), [address.type]).as_pointer()
    return builder.zext(builder.call(builder.inttoptr(builder.load(call), function), [call]), a.type)


@_instruction(_emit_call)
@compiled
def make(words: Array, at: Int, a: Int, b: Int) -> Int:
    """Make the call whose address is in the word (`machine_calls`); return its status, 0 if nothing is raised.

    The caller guarantees: `words` has an element `at`, and the call's words and arrays are still there.
    """
    raise NotImplementedError("a call at an address is only made by compiled code")
