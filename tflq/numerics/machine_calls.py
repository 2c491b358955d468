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

from tflq.numerics.compiled import Array


def machine_call(dispatcher: Any, args: tuple[Any, ...]) -> Array:
    """The call of numba's dispatcher with these arguments, as int64 words; whoever keeps them keeps the arguments, too.

    Arrays in them stay where they are, and are borrowed: compiled code does not count a reference to them.
    """
    signature = tuple(dispatcher.typeof_pyval(arg) for arg in args)
    if signature not in dispatcher.overloads:
        dispatcher.compile(signature)
    result = dispatcher.overloads[signature]
    function = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    values = [word for arg in args for word in _words(arg)]
    return np.array([_loader(result.fndesc.restype, result.fndesc.argtypes, len(values)), function, *values], np.int64)


def _words(value: Any) -> list[int]:
    """A value as numba hands it to a function: that of a number, or the parts of an array or a tuple."""
    if isinstance(value, np.ndarray):
        owner = parent = 0
        return [owner, parent, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
    if isinstance(value, tuple):
        return [word for each in value for word in _words(each)]
    if isinstance(value, (float, np.floating)):
        return [int(np.asarray(value).view(f"i{np.asarray(value).itemsize}"))]
    return [0 if value is None else int(value)]


@cache
def _loader(result: Any, arguments: tuple[Any, ...], words: int) -> int:
    """The address of a function of words that loads arguments of these types and calls the function in word 1.

    It returns that function's status, 0 where nothing was raised.
    """
    from llvmlite import ir
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    called = context.call_conv.get_function_type(result, arguments)
    assert len(called.args) == words + 2  # before them come places for the result and for what is raised
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
