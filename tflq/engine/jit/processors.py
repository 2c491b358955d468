"""Processors that machine code is made for, and LLVM's modules for them.

Processors that machine code is made for: the one at hand, or a level that many processors have.

Names of features are LLVM's. NUMBA_CPU_FEATURES and NUMBA_ENABLE_AVX, by which numba compiles, precede what the
processor has.

LLVM modules as machine code, for the processor at hand or for a level of processors.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tflq.engine.jit.images import ENTRY, OUTSIDE, MachineCode, NotLinkable, link, loads_images
from tflq.interrupts import import_whole


@dataclass(frozen=True, slots=True)
class ProcessorLevel:
    """Features that a class of processors has; machine code for it runs on each of them."""

    name: str
    machine: str
    cpu: str  # LLVM's name of a processor to optimize for
    features: frozenset[str]

    @property
    def words(self) -> str:
        """The features as LLVM and NUMBA_CPU_FEATURES take them."""
        return ",".join(f"+{name}" for name in sorted(self.features))


_V2 = frozenset(
    [
        "64bit",
        "cmov",
        "cx8",
        "cx16",
        "fxsr",
        "mmx",
        "popcnt",
        "sahf",
        "sse",
        "sse2",
        "sse3",
        "sse4.1",
        "sse4.2",
        "ssse3",
    ]
)
_V3 = _V2 | frozenset(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"])
_V4 = _V3 | frozenset(["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"])
_ARM = frozenset({"neon"})

#: The most capable first, for each machine.
LEVELS = (
    ProcessorLevel("x86-64-v4-vnni", "x86_64", "icelake-server", _V4 | {"avx512vnni"}),
    ProcessorLevel("x86-64-v3", "x86_64", "x86-64-v3", _V3),
    ProcessorLevel("x86-64-v2", "x86_64", "x86-64-v2", _V2),
    ProcessorLevel("aarch64-dotprod", "aarch64", "neoverse-n1", _ARM | {"dotprod"}),
    ProcessorLevel("aarch64", "aarch64", "generic", _ARM),
)

#: Names of features that /proc/cpuinfo calls otherwise.
_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "abm": "lzcnt",
        "asimd": "neon",
        "asimddp": "dotprod",
        "avx512_vnni": "avx512vnni",
        "avx_vnni": "avxvnni",
        "bmi1": "bmi",
        "lahf_lm": "sahf",
        "lm": "64bit",
        "pni": "sse3",
        "sse4_1": "sse4.1",
        "sse4_2": "sse4.2",
    }
)
#: Names of numba's settings.
_CPU_NAME, _CPU_FEATURES, _ENABLE_AVX = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX"


#: The level that code is made for in place of the processor at hand, if any.
_ASSUMED: list[ProcessorLevel] = []


def assume(level: ProcessorLevel) -> None:
    """Let `machine` and `features` be those of a level, for the rest of the process."""
    _ASSUMED[:] = [level]


def machine() -> str:
    """Return the processor's family: "x86_64", "aarch64" or else platform.machine in lower case."""
    if _ASSUMED:
        return _ASSUMED[0].machine
    said = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(said, said)


def features() -> frozenset[str]:
    """Return the features that code is made for, as numba reads its settings: "generic" has none unless they are named.

    Features that only a processor's name implies are not counted: LLVM aborts if it cannot select an instruction.
    """
    if _ASSUMED:
        return _ASSUMED[0].features
    said = os.environ.get(_CPU_FEATURES, "" if os.environ.get(_CPU_NAME, "").lower() == "generic" else None)
    own = _own() if said is None else _split(said)
    if os.environ.get(_ENABLE_AVX, "1") != "0":
        return own
    return frozenset(name for name in own if not name.startswith(("avx", "fma", "f16c", "xop")))


def levels() -> tuple[ProcessorLevel, ...]:
    """Return the levels whose code runs here, the most capable first."""
    own = features()
    return tuple(level for level in LEVELS if level.machine == machine() and level.features <= own)


@cache
def stamp() -> str:
    """Return a text that differs if code that is made here may not run elsewhere, or may be made otherwise."""
    from importlib import metadata  # its import takes as long as loading a model's code

    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
    made_by = [metadata.version(name) for name in ("numba", "llvmlite")]
    return repr((machine(), _describe(), made_by, [each for each in settings if each[0] != "NUMBA_CACHE_DIR"]))


@cache
def _own() -> frozenset[str]:
    """Return the features of the processor at hand."""
    if names := _list("flags", "Features"):
        return frozenset(_ELSEWHERE.get(name, name) for name in names.split())
    codegen = import_whole("numba.core.codegen")
    return _split(codegen.get_host_cpu_features())


def _describe() -> str:
    """Return a description of the processor that differs if a compiler may treat it differently."""
    said = [_list(*names) for names in (("flags", "Features"), ("model name", "CPU part"), ("cpu family",))]
    return repr(said) if any(said) else repr((platform.processor(), sorted(_own())))


@cache
def _list(*names: str) -> str:
    """Return a line of Linux's description of the first processor, or ""."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() in names:
                return value.strip()
    return ""


def _split(said: str) -> frozenset[str]:
    return frozenset(word[1:] for word in said.split(",") if word.startswith("+"))


#: LLVM's machines that write object files; they are not safe to use by several threads.
_MACHINES = threading.local()


class NotBuildable(ValueError):
    """The function is nothing that an image can hold: its result is an array, or it needs this process."""


def assemble(module: Any, level: ProcessorLevel | None, result: str) -> MachineCode:
    """Return the machine code of an optimized module, whose entry is ENTRY and has a result of those types.

    Raises:
        NotBuildable: See there.
    """
    outside = {each.name for each in module.functions if each.is_declaration and not each.name.startswith("llvm.")}
    if unknown := outside - OUTSIDE:
        raise NotBuildable(f"it calls {', '.join(sorted(unknown))}")
    content = target_machine(level).emit_object(module)
    if level is None and not loads_images():
        return MachineCode(content, result)
    try:
        image = link(content, ENTRY)
    except NotLinkable as error:
        raise NotBuildable(str(error)) from error
    if unknown := image.slots.keys() - OUTSIDE:
        raise NotBuildable(f"it calls {', '.join(sorted(unknown))}")
    return MachineCode(image, result)


def target_machine(level: ProcessorLevel | None) -> Any:
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
