"""LLVM modules as machine code, for the processor at hand or for a level of processors."""

from __future__ import annotations

import threading
from typing import Any

from tflq.engine.jit.images import ENTRY, OUTSIDE, Code, loads_images
from tflq.engine.jit.objects import NotLinkable, link
from tflq.engine.jit.targets import Level

#: LLVM's machines that write object files; they are not safe to use by several threads.
_MACHINES = threading.local()


class NotBuildable(ValueError):
    """The function is nothing that an image can hold: its result is an array, or it needs this process."""


def assemble(module: Any, level: Level | None, result: str) -> Code:
    """Return the machine code of an optimized module, whose entry is ENTRY and has a result of those types.

    Raises:
        NotBuildable: See there.
    """
    outside = {each.name for each in module.functions if each.is_declaration and not each.name.startswith("llvm.")}
    if unknown := outside - OUTSIDE:
        raise NotBuildable(f"it calls {', '.join(sorted(unknown))}")
    content = target_machine(level).emit_object(module)
    if level is None and not loads_images():
        return Code(content, result)
    try:
        image = link(content, ENTRY)
    except NotLinkable as error:
        raise NotBuildable(str(error)) from error
    if unknown := image.slots.keys() - OUTSIDE:
        raise NotBuildable(f"it calls {', '.join(sorted(unknown))}")
    return Code(image, result)


def target_machine(level: Level | None) -> Any:
    """Return LLVM's machine for the processor that numba compiles for, or for a level."""
    import llvmlite.binding as llvm

    made: dict[str, Any] = _MACHINES.__dict__
    name = level.name if level is not None else ""
    if name not in made:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        if level is None:
            from numba.core.codegen import JITCPUCodegen

            options: dict[str, Any] = {}
            JITCPUCodegen("tflq.machine")._customize_tm_options(options)
            options, triple = {key: options[key] for key in ("cpu", "features")}, llvm.get_process_triple()
        else:
            options, triple = {"cpu": level.cpu, "features": level.words}, f"{level.machine}-unknown-linux-gnu"
        target = llvm.Target.from_triple(triple)
        made[name] = target.create_target_machine(opt=3, reloc="pic", codemodel="small", **options)
    return made[name]
