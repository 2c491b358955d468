"""XNNPACK's kernels inside the package of LiteRT, called one by one: also those for other processors than this one.

The package's library keeps the names of its functions. A kernel takes bytes, input, output and parameters.
"""

from __future__ import annotations

import ctypes
import importlib
import struct
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.single_op import Array

#: Elements that kernels may read beyond their input.
_SLACK = 64
#: Subnormals are read and written as zeros: DAZ and FTZ of x86's MXCSR, which lies so far inside glibc's fenv_t.
_FLUSHED, _MXCSR = 0x8040, 28


@cache
def _library() -> tuple[int, dict[str, int]]:
    """Return the address at which the library was loaded, and those of its functions within it."""
    if sys.platform != "linux":
        pytest.skip("kernels are found in ELF libraries only")
    package = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    path = Path(package.__file__).with_name("libpywrap_litert_common.so")
    if not path.is_file():
        pytest.skip("this package of LiteRT has no common library")
    importlib.import_module("ai_edge_litert._pywrap_litert_interpreter_wrapper")
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    base = min(int(line.split("-")[0], 16) for line in lines if line.endswith(path.name))
    return base, _functions(path.read_bytes())


def _functions(content: bytes) -> dict[str, int]:
    """Read the symbol table of a 64-bit ELF file."""
    (offset,), (size, count) = struct.unpack_from("<Q", content, 40), struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, offset + size * i) for i in range(count)]
    found = {}
    for _, kind, _, _, start, length, link, _, _, step in sections:
        if kind == 2:  # SHT_SYMTAB
            names = sections[link][4]
            for at in range(start, start + length, step):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", content, at)
                if value:
                    end = content.index(b"\0", names + name)
                    found[content[names + name : end].decode()] = value
    return found


def call(name: str, x: Array, parameters: tuple[float, ...] = ()) -> Array:
    """Return the output of the kernel of that name for `x`, 1-D; subnormals are zeros, as in a delegate."""
    base, functions = _library()
    if name not in functions:
        pytest.skip(f"this package of LiteRT has no {name}")
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_size_t, *[ctypes.c_void_p] * 3)(base + functions[name])
    padded, out = np.concatenate([x, np.zeros(_SLACK, np.float32)]), np.empty(x.size + _SLACK, np.float32)
    constants = np.array([*parameters, *[0] * 8], np.float32)
    with _Flushed():
        kernel(x.nbytes, padded.ctypes.data, out.ctypes.data, constants.ctypes.data)
    return out[: x.size]


class _Flushed:
    """A floating-point environment without subnormal numbers."""

    def __init__(self) -> None:
        self._libm, self._before = ctypes.CDLL("libm.so.6"), ctypes.create_string_buffer(64)

    def __enter__(self) -> None:
        self._libm.fegetenv(self._before)
        changed = ctypes.create_string_buffer(self._before.raw, 64)
        word = struct.unpack_from("<I", changed, _MXCSR)[0] | _FLUSHED
        struct.pack_into("<I", changed, _MXCSR, word)
        self._libm.fesetenv(changed)

    def __exit__(self, *_: object) -> None:
        self._libm.fesetenv(self._before)
