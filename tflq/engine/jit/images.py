"""Machine code as bytes, and in memory: stored and loaded without numba.

An image is copied to memory of its own, its slots are filled with addresses of the C library's functions, and its code
becomes executable and read-only. It stays as long as the process, as its address does.

Where memory cannot be used so (other systems than Linux), LLVM loads the object file from which an image would be made.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import struct
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from tflq.engine.jit.objects import Image
from tflq.interrupts import import_whole

#: The name of the function that is called.
ENTRY = "tflq_entry"
_OF_C = """
__divti3 __modti3 __multi3 __udivti3 __umodti3 acos acosf acosh acoshf asin asinf asinh asinhf atan atan2 atan2f
atanf atanh atanhf cbrt ceil ceilf copysign cos cosf cosh coshf erf erfc erfcf erff exp exp2 exp2f expf expm1 expm1f
fabs floor floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf free frexp frexpf hypot hypotf ldexp ldexpf lgamma
lgammaf log log10 log10f log1p log1pf log2 log2f logf lrint lrintf malloc memcmp memcpy memmove memset modf modff
nearbyint nearbyintf pow powf remainder rint rintf round roundeven roundevenf roundf sin sinf sinh sinhf sqrt sqrtf
tan tanf tanh tanhf tgamma tgammaf trunc truncf
"""
#: Functions that machine code may call: of the C library and of the compiler's.
OUTSIDE = frozenset(_OF_C.split())
_HEADER = struct.Struct("<4sI")
_MAGIC = b"tfq2"
#: Memory of loaded code, which is never given back.
_LOADED: list[Any] = []


@dataclass(frozen=True, slots=True)
class Code:
    """A function's machine code for arguments of certain types: an image, or an object file where images cannot be
    loaded; and the types of its result."""

    body: Image | bytes
    result: str

    def packed(self) -> bytes:
        """Return it as bytes, which `unpacked` reads."""
        facts: dict[str, Any] = {"result": self.result}
        body = self.body
        if isinstance(body, Image):
            facts |= {
                "code": len(body.code),
                "size": len(body.code) + len(body.data),
                "entry": body.entry,
                "slots": dict(body.slots),
                "moved": body.moved,
            }
            body = body.code + body.data
        head = json.dumps(facts).encode()
        return _HEADER.pack(_MAGIC, len(head)) + head + body


def unpacked(content: bytes) -> Code:
    """Return the code of which `packed` made these bytes.

    Raises:
        ValueError: It made others.
    """
    try:
        magic, size = _HEADER.unpack_from(content)
        if magic != _MAGIC:
            raise ValueError("machine code of another version")
        start = _HEADER.size + size
        facts, body = json.loads(content[_HEADER.size : start]), content[start:]
        if "entry" not in facts:
            return Code(body, facts["result"])
        if len(body) != facts["size"]:
            raise ValueError("machine code that is cut")
        image = Image(
            body[: facts["code"]], body[facts["code"] :], facts["entry"], facts["slots"], tuple(facts["moved"])
        )
        return Code(image, facts["result"])
    except (struct.error, KeyError, TypeError) as error:
        raise ValueError(f"not machine code: {error}") from error


def loads_images() -> bool:
    """Return whether images can be loaded here."""
    return sys.platform == "linux" and sys.byteorder == "little" and _mprotect() is not None


def load(body: Image | bytes) -> int:
    """Load machine code and return the address of its entry.

    Raises:
        OSError: The system has no memory that may be executed, or no function of a name in the code.
    """
    return _load_image(body) if isinstance(body, Image) else _load_object(body)


def _load_image(image: Image) -> int:
    size = image.start + len(image.data)
    memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[: len(image.code)] = image.code
    memory[image.start : size] = image.data
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for place in image.moved:
        (offset,) = struct.unpack_from("<q", memory, place)
        struct.pack_into("<Q", memory, place, base + offset)
    for name, slot in image.slots.items():
        memory[slot : slot + 8] = struct.pack("<Q", _address_of(name))
    protect = _mprotect()
    pages = -(-len(image.code) // mmap.PAGESIZE) * mmap.PAGESIZE
    if protect is None or protect(base, pages, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")
    _LOADED.append(memory)
    return base + image.entry


def _load_object(content: bytes) -> int:
    """Load an object file by LLVM."""
    llvm = import_whole("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    _LOADED.append(engine)
    address = int(engine.get_function_address(ENTRY))
    if not address:
        raise OSError(f"no function {ENTRY!r} in an object file")
    return address


@cache
def _mprotect() -> Any:
    """Return mprotect(address, size, protection), or None where there is none."""
    try:
        function = ctypes.CDLL(None, use_errno=True).mprotect
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


@cache
def _address_of(name: str) -> int:
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
    raise OSError(f"the C library has no function {name!r}")


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """Return what holds the functions of C: the process, its mathematical library, and the compiler's."""
    libraries = [ctypes.CDLL(None)]
    for name in ("libm.so.6", "libgcc_s.so.1"):
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:
            continue
    return tuple(libraries)
