"""Machine code as bytes, linked to run at any address.

Linking of one ELF object file to an image that runs at any address.

LLVM writes position-independent code: everything within the file is found relative to the instruction that reads it.
What remains are addresses of functions of the C library. Calls of these go through stubs, which jump to the address in
a slot; the loader fills the slots.

Sources: System V ABI, AMD64 supplement, 4.4 (Relocation); ELF for the Arm 64-bit Architecture, 5.7 (Relocation).

Machine code as bytes, and in memory: stored and loaded without numba.

An image is copied to memory of its own, its slots are filled with addresses of the C library's functions, and its code
becomes executable and read-only. It stays as long as the process, as its address does.

Where memory cannot be used so (other systems than Linux), LLVM loads the object file from which an image would be made.

Memory of arrays that are views into a mapped file.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tflq.interrupts import import_whole
from tflq.typing import Array

#: Distance between code and what is written to: pages are at most as large.
PAGE = 1 << 16
#: Sections that only debuggers and unwinding read. No exception passes through compiled code.
_IGNORED = (".eh_frame", ".debug", ".note", ".comment", ".llvm")
_ALLOCATED, _WRITABLE, _EMPTY, _RELOCATED, _SYMBOLS = 2, 1, 8, 4, 2
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_MACHINES: Mapping[int, str] = MappingProxyType({62: "x86_64", 183: "aarch64"})


class NotLinkable(ValueError):
    """The object file has a part that an image cannot hold."""


@dataclass(frozen=True, slots=True)
class Image:
    """Machine code with its data: `code` is executed and read, `data` bytes of zeros with initial values follow it.

    `entry` is the offset of the function that is called, `slots` the offsets in the image of 8-byte addresses of
    functions by name, `moved` those of 8-byte offsets in the image that become addresses. An image never holds
    addresses of this process.
    """

    code: bytes
    data: bytes
    entry: int
    slots: Mapping[str, int]
    moved: tuple[int, ...]

    @property
    def start(self) -> int:
        """The offset of the data in memory: that of the first page behind the code."""
        return -(-len(self.code) // PAGE) * PAGE


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int
    size: int


class _Object:
    """The tables of an object file."""

    def __init__(self, content: bytes) -> None:
        if content[:6] != b"\x7fELF\x02\x01":
            raise NotLinkable("not an ELF file of 64 bits, little endian")
        self.content = content
        (number,) = struct.unpack_from("<H", content, 18)
        self.machine = _MACHINES.get(number, "")
        (start,) = struct.unpack_from("<Q", content, 0x28)
        count, names = struct.unpack_from("<HH", content, 0x3C)
        self.sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", content, start + 64 * i)) for i in range(count)]
        self._names = self.sections[names]
        self.symbols: list[_Symbol] = []
        for table in self.sections:
            if table.kind == _SYMBOLS:
                strings = self.sections[table.link]
                for at in range(table.offset, table.offset + table.size, 24):
                    name, _, section, value, size = struct.unpack_from("<IHHQQ", content, at)
                    self.symbols.append(_Symbol(self._text(strings, name), section, value, size))

    def name(self, section: _Section) -> str:
        return self._text(self._names, section.name)

    def _text(self, strings: _Section, at: int) -> str:
        start = strings.offset + at
        return self.content[start : self.content.index(b"\0", start)].decode()

    def relocations(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield (section, offset, type, symbol, addend)."""
        for table in self.sections:
            if table.kind == _RELOCATED:
                for at in range(table.offset, table.offset + table.size, 24):
                    offset, info, addend = struct.unpack_from("<QQq", self.content, at)
                    yield table.info, offset, info & 0xFFFFFFFF, info >> 32, addend


class _Layout:
    """Places of sections, stubs and slots in an image."""

    def __init__(self, source: _Object) -> None:
        self.source = source
        self.code, self.data = bytearray(), bytearray()
        self.at: dict[int, tuple[bool, int]] = {}  # by section: is it data, and its offset in code or data
        self.slots: dict[str, int] = {}  # offset in data
        self.moved: list[int] = []  # offsets in the image
        self._stubs: dict[str, int] = {}  # offset in code
        self._common: dict[str, int] = {}  # offset in data
        for number, section in enumerate(source.sections):
            if section.flags & _ALLOCATED and not source.name(section).startswith(_IGNORED):
                block = self.data if section.flags & _WRITABLE else self.code
                offset = _pad(block, section.alignment)
                end = section.offset + section.size
                block += bytes(section.size) if section.kind == _EMPTY else source.content[section.offset : end]
                self.at[number] = section.flags & _WRITABLE != 0, offset

    def add_outside(self) -> None:
        """Give every function of the C library a stub and a slot, and room to common symbols."""
        used = {symbol for section, _, _, symbol, _ in self.source.relocations() if section in self.at}
        for number in sorted(used):
            symbol = self.source.symbols[number]
            if symbol.section == _UNDEFINED:
                self.slots[symbol.name] = _pad(self.data, 8)
                self.data += bytes(8)
                self._stubs[symbol.name] = _pad(self.code, 16)
                self.code += bytes(16)
            elif symbol.section == _COMMON:
                self._common[symbol.name] = _pad(self.data, max(1, symbol.value))
                self.data += bytes(symbol.size)
        self.start = -(-len(self.code) // PAGE) * PAGE
        write = _STUBS[self.source.machine]
        for name, stub in self._stubs.items():
            self.code[stub : stub + 16] = write(stub, self.start + self.slots[name])

    def place(self, symbol: _Symbol) -> int:
        """Return the offset of a symbol in the image; that of its stub if it is outside."""
        if symbol.section == _UNDEFINED:
            return self._stubs[symbol.name]
        if symbol.section == _COMMON:
            return self.start + self._common[symbol.name]
        if symbol.section not in self.at:
            raise NotLinkable(f"symbol {symbol.name!r} is in section {symbol.section}, which is left out")
        is_data, offset = self.at[symbol.section]
        return (self.start if is_data else 0) + offset + symbol.value

    def store_address(self, at: int, here: int, symbol: _Symbol, addend: int) -> None:
        """Store where a symbol is, at an offset in the data."""
        if here < self.start:
            raise NotLinkable(f"the address of {symbol.name!r} is stored among code")
        struct.pack_into("<q", self.data, at, self.place(symbol) + addend)
        self.moved.append(here)

    def address_of(self, symbol: _Symbol) -> int:
        """Return the offset of a word that holds the symbol's address once the image is loaded."""
        if symbol.section != _UNDEFINED:
            raise NotLinkable(f"the address of {symbol.name!r}, which is inside, would have to be stored")
        return self.start + self.slots[symbol.name]


def link(content: bytes, entry: str) -> Image:
    """Return the image of an object file that begins with the function `entry`.

    Raises:
        NotLinkable: See there.
    """
    source = _Object(content)
    if source.machine not in _APPLY:
        raise NotLinkable("machine code of another processor")
    layout = _Layout(source)
    layout.add_outside()
    apply = _APPLY[source.machine]
    for section, offset, kind, number, addend in source.relocations():
        if section not in layout.at:
            continue
        is_data, base = layout.at[section]
        block = layout.data if is_data else layout.code
        here = (layout.start if is_data else 0) + base + offset
        apply(layout, block, base + offset, here, kind, source.symbols[number], addend)
    entries = [layout.place(symbol) for symbol in source.symbols if symbol.name == entry and symbol.section]
    if len(entries) != 1:
        raise NotLinkable(f"{len(entries)} functions are called {entry!r}")
    slots = {name: layout.start + at for name, at in layout.slots.items()}
    return Image(bytes(layout.code), bytes(layout.data), entries[0], slots, tuple(layout.moved))


def _pad(block: bytearray, alignment: int) -> int:
    block += bytes(-len(block) % max(1, alignment))
    return len(block)


def _fitting(distance: int, bits: int) -> int:
    """Return a distance that fits a signed field of that many bits; raise NotLinkable if it does not."""
    if not -(1 << bits - 1) <= distance < 1 << bits - 1:
        raise NotLinkable(f"a distance of {distance} bytes or pages does not fit {bits} bits")
    return distance


def _stub_x86(here: int, slot: int) -> bytes:
    """Return jmp [rip + distance]."""
    return (b"\xff\x25" + struct.pack("<i", _fitting(slot - here - 6, 32))).ljust(16, b"\xcc")


def _stub_arm(here: int, slot: int) -> bytes:
    """Return adrp x16, page; ldr x16, [x16, offset]; br x16."""
    pages = (slot >> 12) - (here >> 12)
    load = 0xF9400210 | (slot & 0xFFF) >> 3 << 10
    return struct.pack("<IIII", _adrp(0x90000010, pages), load, 0xD61F0200, 0xD503201F)


_STUBS: Mapping[str, Callable[[int, int], bytes]] = MappingProxyType({"x86_64": _stub_x86, "aarch64": _stub_arm})

_ABS64_X86, _PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX, _PC64 = 1, 2, 4, 9, 41, 42, 24


def _apply_x86(layout: _Layout, block: bytearray, at: int, here: int, kind: int, symbol: _Symbol, addend: int) -> None:
    if kind in (_PC32, _PLT32):
        value = layout.place(symbol) + addend - here
    elif kind in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
        if symbol.section == _UNDEFINED:
            value = layout.address_of(symbol) + addend - here
        else:  # the instruction loads an address: mov r, [rip + x] becomes lea r, [rip + x]
            if kind == _GOTPCREL or block[at - 2] != 0x8B:
                raise NotLinkable(f"the address of {symbol.name!r} is read in a way that cannot be replaced")
            block[at - 2] = 0x8D
            value = layout.place(symbol) + addend - here
    elif kind == _ABS64_X86:
        layout.store_address(at, here, symbol, addend)
        return
    elif kind == _PC64:
        struct.pack_into("<q", block, at, layout.place(symbol) + addend - here)
        return
    else:
        raise NotLinkable(f"relocation {kind} of x86-64")
    struct.pack_into("<i", block, at, _fitting(value, 32))


_ABS64_ARM, _PREL64, _PREL32, _ADR_PAGE, _ADD, _JUMP26, _CALL26, _GOT_PAGE, _GOT_LOAD = (
    257,
    260,
    261,
    275,
    277,
    282,
    283,
    311,
    312,
)
#: Loads and stores by an offset in a page, and the size of what they move as a power of two.
_LOADS: Mapping[int, int] = MappingProxyType({278: 0, 284: 1, 285: 2, 286: 3, 299: 4})


def _apply_arm(layout: _Layout, block: bytearray, at: int, here: int, kind: int, symbol: _Symbol, addend: int) -> None:
    if kind == _ABS64_ARM:
        layout.store_address(at, here, symbol, addend)
        return
    if kind == _PREL64:
        struct.pack_into("<q", block, at, layout.place(symbol) + addend - here)
        return
    if kind == _PREL32:
        struct.pack_into("<i", block, at, _fitting(layout.place(symbol) + addend - here, 32))
        return
    (word,) = struct.unpack_from("<I", block, at)
    if kind in (_JUMP26, _CALL26):
        word |= _fitting(layout.place(symbol) + addend - here, 28) >> 2 & 0x3FFFFFF
    elif kind in (_GOT_PAGE, _GOT_LOAD):
        is_outside = symbol.section == _UNDEFINED
        place = layout.address_of(symbol) if is_outside else layout.place(symbol)
        if kind == _GOT_PAGE:
            word = _adrp(word, (place >> 12) - (here >> 12))
        elif is_outside:
            word |= (place & 0xFFF) >> 3 << 10
        else:  # ldr x, [x', offset] becomes add x, x', offset
            word = 0x91000000 | word & 0x3FF | (place & 0xFFF) << 10
    else:
        place = layout.place(symbol) + addend
        if kind == _ADR_PAGE:
            word = _adrp(word, (place >> 12) - (here >> 12))
        elif kind == _ADD:
            word |= (place & 0xFFF) << 10
        elif kind in _LOADS:
            word |= (place & 0xFFF) >> _LOADS[kind] << 10
        else:
            raise NotLinkable(f"relocation {kind} of AArch64")
    struct.pack_into("<I", block, at, word)


def _adrp(word: int, pages: int) -> int:
    pages = _fitting(pages, 21)
    return word & 0x9F00001F | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


_APPLY: Mapping[str, Callable[[_Layout, bytearray, int, int, int, _Symbol, int], None]] = MappingProxyType(
    {"x86_64": _apply_x86, "aarch64": _apply_arm}
)


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
class MachineCode:
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


def unpacked(content: bytes) -> MachineCode:
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
            return MachineCode(body, facts["result"])
        if len(body) != facts["size"]:
            raise ValueError("machine code that is cut")
        image = Image(
            body[: facts["code"]], body[facts["code"] :], facts["entry"], facts["slots"], tuple(facts["moved"])
        )
        return MachineCode(image, facts["result"])
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


#: Bytes from which giving memory back is worth a system call.
_LEAST = 1 << 20


def release(array: Array) -> None:
    """Give the pages of a mapped array back to the system, which reads them from the file again if they are needed.

    Does nothing for other arrays, and where the system has no such call.
    """
    if array.nbytes < _LEAST or not hasattr(mmap, "MADV_DONTNEED"):
        return
    file = _mapping(array)
    if file is None or array.flags.writeable:
        return
    low, high = np.lib.array_utils.byte_bounds(array)
    start = low - np.frombuffer(file, np.uint8).ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + high - low) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:
        with suppress(OSError, ValueError):
            file.madvise(mmap.MADV_DONTNEED, first, last - first)


def _mapping(array: Array) -> mmap.mmap | None:
    """Return the map that an array is a view of; None if there is none."""
    base: object = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None
