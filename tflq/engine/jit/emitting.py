"""Machine code from LLVM code that is written, not compiled from Python: milliseconds where numba takes a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflq.engine.jit.images import ENTRY, Code
from tflq.engine.jit.machines import assemble, target_machine
from tflq.engine.jit.targets import Level

#: Writes a function into a module (llvmlite.ir.Module) under a name. The function has no result.
Write = Callable[[Any, str], Any]


def emit(write: Write, level: Level | None = None) -> Code:
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
