"""Machine code from compiled functions: numba makes LLVM's intermediate code, LLVM an object file, `images` an image.

An image has one entry, a function of words: the first is its own address, then the words of the arguments follow
(`arguments`), then those of the result. It returns a status, 0 if nothing was raised. What numba's own runtime does for
compiled code, memory of arrays and reshaping, is part of each image that needs it (`runtime.ll`).

Machine code from LLVM code that is written, not compiled from Python: milliseconds where numba takes a second.

Machine code for a level of processors, collected from the calls of a process.

If this processor has the level, the calls are made by that code. Otherwise they are made by code for any processor,
except those of micro-kernels, which have no such code: their results stay as they are in memory. So a model that runs
here shows what it needs on any processor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tflq.engine.jit.code_store import Collecting, Make
from tflq.engine.jit.images import ENTRY, MachineCode
from tflq.engine.jit.native import DATA, SHAPE, STRIDES, reads_arrays
from tflq.engine.jit.processors import NotBuildable, ProcessorLevel, assemble, assume, target_machine

#: Widths of results by numba's names.
_NUMBERS = {"bool": "b", "float32": "f4", "float64": "f8"} | {
    f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)
}


def build(
    function: Any, args: tuple[Any, ...], level: ProcessorLevel | None = None, reads: Collection[int] = ()
) -> MachineCode:
    """Compile `function`, whose callees numba knows, for arguments of these types; for the processor at hand, or for
    another level. It does not write to arrays at the positions `reads`.

    Raises:
        NotBuildable: See there.
    """
    from numba.core.compiler_lock import global_compiler_lock

    if not reads_arrays():
        raise NotBuildable("arrays are laid out otherwise in this Python")
    with global_compiler_lock:
        overload = _intermediate(function, args, reads)
        result = _result(overload.signature.return_type)
        module = _whole_module(overload, args)
    return assemble(module, level, result)


def _intermediate(function: Any, args: tuple[Any, ...], reads: Collection[int]) -> Any:
    """Return numba's compile result for these arguments, without machine code."""
    import numba

    from tflq.engine.jit.compiled import link

    dispatcher = link(function)
    kinds = map(numba.typeof, args)
    dispatcher.compile(tuple(_read_only(kind) if i in reads else kind for i, kind in enumerate(kinds)))
    (overload,) = dispatcher.overloads.values()
    return overload


def _read_only(kind: Any) -> Any:
    """Return the type of an argument whose arrays are not written to."""
    from numba import types

    if isinstance(kind, types.BaseTuple):
        return types.BaseTuple.from_types([_read_only(part) for part in kind], getattr(kind, "instance_class", None))
    return kind.copy(readonly=True) if isinstance(kind, types.Array) else kind


def _whole_module(overload: Any, args: tuple[Any, ...]) -> Any:
    """Return an optimized module with the entry, the function and everything that it calls."""
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    library = _library()(context.codegen(), ENTRY)
    library.add_ir_module(_entry(context, overload, args))
    library.add_linking_library(overload.library)
    library.finalize()
    if library.is_bound:
        raise NotBuildable("it holds addresses of this process")
    return library.module


@cache
def _library() -> Any:
    """Return the class of libraries that are optimized, and never compiled."""
    import llvmlite.binding as llvm
    from numba.core.codegen import JITCodeLibrary

    class Library(JITCodeLibrary):  # type: ignore[misc]
        def finalize(self) -> None:
            module = self._final_module
            parts = [each._get_module_for_linking() for each in dict.fromkeys(self._linking_libraries)]
            module.link_in(llvm.parse_assembly(_runtime(module.triple, module.data_layout, _messages(parts))))
            for part in parts:
                module.link_in(part, preserve=True)
            for function in module.functions:
                if not function.is_declaration and function.name != ENTRY:
                    function.linkage = "internal"
            self._optimize_final_module()
            self._final_module.verify()
            self._finalized = True

        @property
        def module(self) -> Any:
            return self._final_module

        @property
        def is_bound(self) -> bool:
            return any(each.name.startswith("numba.dynamic.globals") for each in self._final_module.global_variables)

    return Library


def _messages(modules: Sequence[Any]) -> tuple[str, ...]:
    """Return the functions that make the text of an exception, for numba's wrapper alone (numba.core.callconv)."""
    names = {each.name for module in modules for each in module.functions}
    return tuple(sorted(name for name in names if name.startswith("__excinfo_unwrap_args")))


@cache
def _runtime(triple: str, layout: str, messages: tuple[str, ...]) -> str:
    """Return the assembly of the runtime, in which `messages` do nothing."""
    text = Path(__file__).with_name("runtime.ll").read_text(encoding="utf-8")
    silent = "".join(f"define ptr @{name}(ptr %args) {{\n  ret ptr null\n}}\n" for name in messages)
    return f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n{text}{silent}'


def _result(kind: Any) -> str:
    """Return the types of a result's words.

    Raises:
        NotBuildable: It is neither a number nor a tuple of numbers.
    """
    from numba.core import types

    if kind == types.none:
        return "n"
    if isinstance(kind, (types.containers.Tuple, types.containers.UniTuple)):
        return f"({','.join(_number(each) for each in kind)})"
    return _number(kind)


def _number(kind: Any) -> str:
    from numba.core.types.misc import unliteral

    name = str(unliteral(kind))
    if name not in _NUMBERS:
        raise NotBuildable(f"its result is a {kind}")
    return _NUMBERS[name]


def _entry(context: Any, overload: Any, args: tuple[Any, ...]) -> Any:
    """Return a module with the entry: it reads arguments from words, calls the function, and writes its result."""
    from llvmlite import ir

    described = overload.fndesc
    called = context.call_conv.get_function_type(described.restype, described.argtypes)
    module = context.codegen()._create_empty_module(ENTRY)
    word, status = ir.IntType(64), ir.IntType(32)
    target = ir.Function(module, called, described.llvm_func_name)
    entry = ir.Function(module, ir.FunctionType(status, [word.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    places = [builder.alloca(kind.pointee) for kind in called.args[:2]]  # of the result and the exception
    leaves = list(_leaves(args))
    values = [v for i, leaf in enumerate(leaves) for v in _read(builder, _at(builder, entry.args[0], 1 + i), leaf)]
    if len(values) != len(called.args) - 2:
        raise NotBuildable(f"numba passes {len(called.args) - 2} values, not {len(values)}")
    code = builder.call(target, [*places, *map(partial(_as, builder), values, called.args[2:])])
    with builder.if_then(builder.icmp_unsigned("==", code, status(0))):
        if _result(described.restype) != "n":
            for i, part in enumerate(_parts(builder, builder.load(places[0]))):
                at = builder.gep(entry.args[0], [word(1 + len(leaves) + i)])
                builder.store(_word(builder, part, word), at)
    builder.ret(code)
    return module


def _leaves(args: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the arguments that have a word each."""
    for value in args:
        if isinstance(value, tuple):
            yield from _leaves(value)
        else:
            yield value


def _at(builder: Any, words: Any, position: int) -> Any:
    """Return a word."""
    from llvmlite import ir

    return builder.load(builder.gep(words, [ir.IntType(64)(position)]))


def _read(builder: Any, word: Any, leaf: Any) -> list[Any]:
    """Return the words that numba passes for an argument: its own, or those of an array.

    Compiled code does not count references to an array without an owner.
    """
    if not isinstance(leaf, np.ndarray):
        return [word]
    none, pointer = word.type(0), word.type.as_pointer()

    def field(offset: int) -> Any:
        return builder.load(builder.inttoptr(builder.add(word, word.type(offset)), pointer))

    shape, strides = (
        [_at(builder, builder.inttoptr(field(offset), pointer), axis) for axis in range(leaf.ndim)]
        for offset in (SHAPE, STRIDES)
    )
    size = word.type(1)
    for extent in shape:
        size = builder.mul(size, extent)
    return [none, none, size, word.type(leaf.itemsize), field(DATA), *shape, *strides]


def _as(builder: Any, value: Any, kind: Any) -> Any:
    """Return a word as the LLVM type of an argument.

    Raises:
        NotBuildable: The type has no place in a word.
    """
    from llvmlite import ir

    if isinstance(kind, ir.PointerType):
        return builder.inttoptr(value, kind)
    if isinstance(kind, ir.DoubleType):
        return builder.bitcast(value, kind)
    if isinstance(kind, ir.FloatType):
        return builder.bitcast(builder.trunc(value, ir.IntType(32)), kind)
    if not isinstance(kind, ir.IntType) or kind.width > value.type.width:
        raise NotBuildable(f"numba passes an argument as {kind}")
    return value if kind == value.type else builder.trunc(value, kind)


def _parts(builder: Any, value: Any) -> list[Any]:
    """Return the numbers of a result."""
    from llvmlite import ir

    if isinstance(value.type, (ir.ArrayType, ir.LiteralStructType)):
        return [builder.extract_value(value, i) for i in range(len(value.type))]
    return [value]


def _word(builder: Any, value: Any, word: Any) -> Any:
    """Return a number as a word; integers keep their low bits."""
    from llvmlite import ir

    if isinstance(value.type, ir.FloatType):
        value = builder.bitcast(value, ir.IntType(32))
    elif isinstance(value.type, ir.DoubleType):
        value = builder.bitcast(value, word)
    return builder.sext(value, word) if value.type.width < word.width else value


#: Writes a function into a module (llvmlite.ir.Module) under a name. The function has no result.
Write = Callable[[Any, str], Any]


def emit(write: Write, level: ProcessorLevel | None = None) -> MachineCode:
    """Return the machine code of the function that `write` writes, for the processor at hand or for another level.

    Raises:
        NotBuildable: It calls what an image cannot.
    """
    import llvmlite.binding as llvm
    from llvmlite import ir
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        machine = target_machine(level)
        module = ir.Module(ENTRY)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        write(module, ENTRY)
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        _optimize(parsed, machine)
        return assemble(parsed, level, "n")


def _optimize(module: Any, machine: Any) -> None:
    """Optimize a module as numba does."""
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


class CollectingCollection:
    """Machine code by the names under which `code_store` finds it.

    Args:
        level: The level that the code is for. The process must have NUMBA_CPU_NAME and NUMBA_CPU_FEATURES of it, if it
            is one of this machine's, and can no longer compute.
        own: The levels of this processor.
    """

    def __init__(self, level: ProcessorLevel, own: tuple[ProcessorLevel, ...]) -> None:
        self.entries: dict[str, bytes] = {}
        self._level, self._is_own, self._least = level, level in own, own[-1]
        assume(level)
        Collecting.collector = self._collect

    def _collect(self, name: str, make: Make, is_written: bool) -> MachineCode:
        code = make(self._level)
        self.entries[name] = code.packed()
        if self._is_own:
            return code
        return replace(code, body=b"") if is_written else make(self._least)
