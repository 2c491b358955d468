"""Facts of the processor that decide which bits runtimes give: vector extension and first-level cache.

On x86-64 the answers come from the CPUID instruction, as in the runtimes, so they are valid under emulation, too.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from importlib import import_module, metadata
from typing import Any, Callable, Dict, Tuple  # noqa: UP035

#: void (uint32_t r[4]): CPUID of r[0] and r[2]; eax, ebx, ecx and edx go to r. System V's calling convention.
_CPUID = bytes.fromhex("53 4989f8 418b00 418b4808 0fa2 418900 41895804 41894808 4189500c 5b c3".replace(" ", ""))
#: Vector extensions, widest first: the bits that must be set in ebx and ecx of leaf 7 and in ecx of leaf 1.
_EXTENSIONS = (
    ("AVX-512 VNNI", 0xD0030020, 0x800, 0x10001000),  # VL, BW, CD, DQ, F, AVX2; VNNI; AVX, FMA
    ("AVX-512", 0xD0030020, 0, 0x10001000),
    ("AVX2", 0x20, 0, 0x10001000),
    ("AVX", 0, 0, 0x10000000),
    ("SSE4.1", 0, 0, 0x80000),
    ("SSE2", 0, 0, 0),
)

Registers = Tuple[int, int, int, int]  # noqa: UP006
Leaf = Callable[[int, int], Registers]


def describe() -> Dict[str, Any]:  # noqa: UP006
    """Return `vectors`, the widest vector extension, and `first_level_cache`, in bytes; "" and 0 where unknown."""
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        return {"vectors": "NEON", "first_level_cache": 0}
    if machine not in ("x86_64", "amd64"):
        return {"vectors": "", "first_level_cache": 0}
    try:
        return of_x86(_leaf())
    except (OSError, ValueError, AttributeError):  # no memory for code: a hardened system, or Windows
        return {"vectors": "", "first_level_cache": 0}


def of_x86(leaf: Leaf) -> Dict[str, Any]:  # noqa: UP006
    """Return the facts from `leaf(number, sub)`: eax, ebx, ecx and edx of a CPUID leaf."""
    most = leaf(0, 0)[0]
    found = *(leaf(7, 0)[1:3] if most >= 7 else (0, 0)), leaf(1, 0)[2]
    vectors = next(name for name, *bits in _EXTENSIONS if all(f & b == b for f, b in zip(found, bits)))  # noqa: B905
    return {"vectors": vectors, "first_level_cache": _first_level_cache(leaf, most)}


def _first_level_cache(leaf: Leaf, most: int) -> int:
    """Return the bytes of the first-level data cache. Source: Eigen 5, Core/util/Memory.h, queryCacheSizes."""
    _, b, c, d = leaf(0, 0)
    vendor = b"".join(word.to_bytes(4, "little") for word in (b, d, c))
    if vendor in (b"AuthenticAMD", b"AMDisbetter!"):
        return (leaf(0x80000005, 0)[2] >> 24) * 1024 if leaf(0x80000000, 0)[0] >= 0x80000006 else 0
    if most < 4:
        return 0
    for number in range(16):
        a, b, c, _ = leaf(4, number)
        kind, level = a & 0xF, a >> 5 & 7
        if kind == 0:
            return 0
        if kind in (1, 3) and level == 1:
            ways, partitions, line = (b >> 22) + 1, (b >> 12 & 0x3FF) + 1, (b & 0xFFF) + 1
            return ways * partitions * line * (c + 1)
    return 0


def _leaf() -> Leaf:
    """Return a caller of the CPUID instruction. Raise OSError if memory cannot hold code."""
    if sys.platform == "win32":
        raise OSError("another calling convention")
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_CPUID)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def leaf(number: int, sub: int) -> Registers:
        registers = (ctypes.c_uint32 * 4)(number, 0, sub, 0)
        call(ctypes.addressof(registers))
        return registers[0], registers[1], registers[2], registers[3]

    leaf.code = code  # type: ignore[attr-defined]  # mapped as long as it may be called
    return leaf


def described(distributions: Any) -> Dict[str, Any]:  # noqa: UP006
    """Return the facts of the runtime, of this Python and of the processor."""
    package, version = distribution_of(distributions)
    return {
        "package": package,
        "version": version,
        "python": platform.python_version(),
        "numpy": import_module("numpy").__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        **describe(),
    }


def cpu_model() -> str:
    """Return the processor's name in the system; empty if there is none. Runtimes choose kernels by it."""
    facts = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()  # the same line for each processor
                facts[key.strip()] = value.strip()
    except OSError:
        return platform.processor()
    return " ".join(facts[key] for key in ("CPU implementer", "CPU part") if key in facts)  # all facts on Arm


def distribution_of(names: Any) -> Tuple[str, str]:  # noqa: UP006
    """Return the first of the distributions that is installed, and its version."""
    for name in names:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return names[0], "unknown"
