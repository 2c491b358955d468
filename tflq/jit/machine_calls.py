"""Calls of compiled functions that compiled code can make by itself: an address, and the arguments in memory.

What Python calls is a wrapper that reads Python's objects and so needs the interpreter's lock. Behind it lies a
function of plain machine values. `machine_call` writes these values into an array, one in each word, after the address
of a few instructions that load them and jump there: all that `call_at` needs.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from tflq.errors import TflqError
from tflq.jit.compiled import Array


def machine_call(dispatcher: Any, args: tuple[Any, ...]) -> Array:
    """Return the call of numba's dispatcher with these arguments, as int64 words. The owner of the words also keeps the
    arguments alive.

    Arrays in them stay where they are, and are borrowed: compiled code does not count a reference to them.
    """
    signature = tuple(dispatcher.typeof_pyval(arg) for arg in args)
    if signature not in dispatcher.overloads:
        dispatcher.compile(signature)
    result = dispatcher.overloads[signature]
    function = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    kinds = "".join(_kinds(arg) for arg in args)
    values = [word for arg in args for word in _words(arg)]
    return np.array([_loader(result.fndesc.restype, result.fndesc.argtypes, kinds), function, *values], np.int64)


class UnknownConvention(TflqError, RuntimeError):
    """This version of numba passes arguments in another way than the words here assume."""


def _kinds(value: Any) -> str:
    """Return the kinds of a value's words: p for an address, i for an integer, f and d for floats of 32 and 64 bits."""
    if isinstance(value, np.ndarray):
        return "ppiip" + "ii" * value.ndim
    if isinstance(value, tuple):
        return "".join(map(_kinds, value))
    if isinstance(value, (float, np.floating)):
        return "f" if np.asarray(value).itemsize == 4 else "d"
    return "i"


def _kind_of(machine: Any) -> str:
    """Return the kind of word that is loaded for LLVM's type of an argument."""
    from llvmlite import ir

    if isinstance(machine, ir.PointerType):
        return "p"
    if isinstance(machine, ir.FloatType):
        return "f"
    if isinstance(machine, ir.DoubleType):
        return "d"
    return "i" if isinstance(machine, ir.IntType) and machine.width <= 64 else "?"


def _words(value: Any) -> list[int]:
    """Return a value as numba passes it to a function: that of a number, or the parts of an array or a tuple."""
    if isinstance(value, np.ndarray):
        owner = parent = 0
        return [owner, parent, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
    if isinstance(value, tuple):
        return [word for each in value for word in _words(each)]
    if isinstance(value, (float, np.floating)):
        return [int(np.asarray(value).view(f"i{np.asarray(value).itemsize}"))]
    return [0 if value is None else int(value)]


@cache
def _loader(result: Any, arguments: tuple[Any, ...], kinds: str) -> int:
    """Return the address of a function of words that loads such arguments and calls the function in word 1.

    That function returns the status of the call, 0 if nothing was raised.

    Raises:
        UnknownConvention: The function takes other kinds of words than `kinds`.
    """
    from llvmlite import ir
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    called = context.call_conv.get_function_type(result, arguments)
    expected, taken = f"pp{kinds}", "".join(map(_kind_of, called.args))  # places of the result and the exception first
    if taken != expected:
        raise UnknownConvention(f"calls of compiled functions: expected arguments {expected}, got {taken}")
    word = ir.IntType(64)

    def loaded(builder: Any, words: Any, position: int, kind: Any) -> Any:
        value = builder.load(builder.gep(words, [word(position)]))
        if isinstance(kind, ir.PointerType):
            return builder.inttoptr(value, kind)
        if isinstance(kind, (ir.FloatType, ir.DoubleType)):
            bits = ir.IntType(32 if isinstance(kind, ir.FloatType) else 64)
            return builder.bitcast(value if bits == word else builder.trunc(value, bits), kind)
        return value if kind == word else builder.trunc(value, kind)

    with global_compiler_lock:
        name = f"tflq_load_{hashlib.sha256(str(called).encode()).hexdigest()[:16]}"
        library = context.codegen().create_library(name)
        module = library.create_ir_module(name)
        function = ir.Function(module, ir.FunctionType(ir.IntType(32), [word.as_pointer()]), name)
        builder = ir.IRBuilder(function.append_basic_block())
        places = [builder.alloca(kind.pointee) for kind in called.args[:2]]
        rest = [loaded(builder, function.args[0], 2 + i, kind) for i, kind in enumerate(called.args[2:])]
        target = loaded(builder, function.args[0], 1, called.as_pointer())
        builder.ret(builder.call(target, [*places, *rest]))
        library.add_ir_module(module)
        library.finalize()
        _LIBRARIES.append(library)
        return int(library.get_pointer_to_function(name))


#: Machine code that lives as long as the process, as its addresses do.
_LIBRARIES: list[Any] = []
