"""Descriptions of micro-kernels, their forms, and calls of them.

Intrinsics of numba whose LLVM code is written here, and the digest of all such code.

Functions of micro-kernels that compiled code calls by address: one call for all kernels of a family.

A family is a function of two bodies: LLVM code, which is written for each kernel, and a definition in plain Python. A
kernel's address is that of its machine code. Where the source runs as Python, it is the number of its definition.

How processors form sums of products of small integers, as data; a processor's features decide which is best.

Descriptions of micro-kernels, as data.

Copies of a few elements at a time, of any type and alignment: LLVM does not turn a loop into these.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tflq.engine.jit.compiled import Compiled, Int, compiled, compiling_is_off
from tflq.engine.jit.native import address_of
from tflq.engine.jit.processors import features, machine
from tflq.engine.numerics.stages import VectorStep
from tflq.typing import Array

#: The value of an argument as LLVM code.
Value = Any


@cache
def sources() -> str:
    """Return a digest of the files that write code: all of this folder."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Arguments:
    """The arguments of an intrinsic as the values that its code takes, by name."""

    def __init__(self, names: list[str], context: Any, builder: Any, kinds: tuple[Any, ...], values: Any) -> None:
        self.builder = builder
        self._context = context
        self._places = {name: place for place, name in enumerate(names)}
        self._kinds, self._values = kinds, values

    def number(self, name: str, kind: str = "int64") -> Value:
        """Convert a number to a type of numba."""
        from numba.core import types

        place = self._places[name]
        return self._context.cast(self.builder, self._values[place], self._kinds[place], getattr(types, kind))

    def code(self, name: str) -> Value:
        """Cut a number to int32."""
        from llvmlite import ir

        return self.builder.trunc(self.number(name), ir.IntType(32))

    def address(self, name: str, *indices: Value) -> Value:
        """Return the address of an array's element, whose first indices are given and whose others are 0."""
        from llvmlite import ir

        place = self.builder.bitcast(self._array(name).data, ir.IntType(8).as_pointer())
        for axis, index in enumerate(indices):
            place = self.builder.gep(place, [self.builder.mul(index, self.step(name, axis))])
        return place

    def step(self, name: str, axis: int) -> Value:
        """Return the distance of neighbours along an axis, in bytes."""
        return self.builder.extract_value(self._array(name).strides, axis)

    def size(self, name: str, axis: int) -> Value:
        """Return the number of elements along an axis."""
        return self.builder.extract_value(self._array(name).shape, axis)

    def _array(self, name: str) -> Any:
        place = self._places[name]
        return self._context.make_array(self._kinds[place])(self._context, self.builder, self._values[place])


def intrinsic_of(definition: Callable[..., None], write: Callable[[Arguments], None]) -> Any:
    """Return the numba intrinsic with the parameters of `definition` whose code `write` writes."""
    from numba.core import types
    from numba.extending import intrinsic

    parameters = inspect.signature(definition).parameters

    def typed(typing: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            write(Arguments(list(parameters), context, builder, kinds, values))
            return context.get_dummy_value()

        return types.void(*kinds), generate

    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = inspect.Signature([first, *parameters.values()])  # type: ignore[attr-defined]
    typed.__name__ = definition.__name__
    return intrinsic(typed)


#: Definitions by number, where the source runs as Python.
_DEFINITIONS: list[Callable[..., None]] = []


class TileFunction(Compiled[..., None]):
    """The call of a family's function, whose first parameter `at` is the address.

    Args:
        function: Calls the definition; its parameters are those of the call.
        operands: Returns what that function takes, as a tuple of LLVM values, from the arguments of the call.
        definition: Returns the definition of a kernel, with the parameters of the call except `at`.
    """

    writes_code = True

    def __init__(
        self,
        function: Callable[..., None],
        operands: Callable[[Arguments], tuple[Any, ...]],
        definition: Callable[[Any], Callable[..., None]],
    ) -> None:
        super().__init__(function)
        self._operands, self._definition = operands, definition
        self._addresses: dict[object, int] = {}

    def address(self, kernel: object) -> int:
        """Return the address of a kernel's function. Equal kernels have equal code, so the representation of `kernel`
        states all of it.

        Raises:
            Unavailable: The system has no memory that may be executed.
        """
        if kernel not in self._addresses:
            self._addresses[kernel] = self._address(kernel)
        return self._addresses[kernel]

    def _address(self, kernel: object) -> int:
        if compiling_is_off():
            _DEFINITIONS.append(self._definition(kernel))
            return len(_DEFINITIONS) - 1

        def write(module: Any, name: str) -> Any:
            from tflq.engine.microkernels.emission import emit

            return emit(module, kernel, name)

        return address_of(self._name, self.digest_of(kernel), write)

    def digest_of(self, kernel: object) -> str:
        """Return a digest of a kernel's code: of the kernel, and of what writes it."""
        return hashlib.sha256(f"{kernel} {sources()}".encode()).hexdigest()[:16]

    def digest(self) -> str:
        """Return a digest of the code that writes the call."""
        return hashlib.sha256(f"{self._name} {sources()}".encode()).hexdigest()[:16]

    @property
    def _name(self) -> str:
        return f"{self.python.__module__}.{self.python.__qualname__}"

    def _link(self) -> Any:
        from llvmlite import ir

        def write(at: Arguments) -> None:
            values = list(self._operands(at))
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
            at.builder.call(at.builder.inttoptr(at.number("at"), kind.as_pointer()), values)

        return intrinsic_of(self.python, write)


def by_address(
    operands: Callable[[Arguments], tuple[Any, ...]], definition: Callable[[Any], Callable[..., None]]
) -> Callable[[Compiled[..., None]], TileFunction]:
    """Make a function the call of a family; see TileFunction. Put it above `@compiled`."""
    return lambda function: TileFunction(function.python, operands, definition)


def definition_at(number: int) -> Callable[..., None]:
    """Return the definition of a kernel by what `TileFunction.address` returned for it."""
    return _DEFINITIONS[number]


def through(steps: Sequence[VectorStep], value: Any, constants: Iterable[Any]) -> Any:
    """Return `value` after the definitions of steps, which take their constants in order."""
    given = iter(constants)
    for step in steps:
        value = step.define(value, *islice(given, len(step.types)))
    return value


@dataclass(frozen=True, slots=True)
class VectorForm:
    """One way to add products to registers of int32 sums.

    Each lane of `dot` takes `group` consecutive values of a row and of a column, multiplies them pairwise and adds all
    products to its sum, modulo 2**32. A tile is `rows` rows of sums by `vectors` registers of `lanes` columns. Machine
    code on disk is found by the repr of a form. The repr leaves out the features, because their order changes.
    """

    name: str
    machine: str  # as platform.machine reports it
    features: frozenset[str] = field(repr=False)  # LLVM's names; the processor must have them all
    dot: str  # see emission.DOTS
    left: str  # type of a row's values: "int16", "int8" or "uint8"
    right: str  # type of the weights: "int16" or "int8"
    group: int
    lanes: int
    tiles: tuple[tuple[int, int], ...]  # (rows, vectors) of the tiles that fill the registers, best first

    @property
    def is_wide(self) -> bool:
        """True if rows hold 16-bit values: these are centred, and 16-bit codes fit."""
        return self.left == "int16"

    @property
    def saturates(self) -> bool:
        """True if instructions of the processor narrow two registers to one, with saturation."""
        return self.machine == "x86_64" and not self.dot.startswith("plain")

    def tile(self, columns: int) -> Tile:
        """Return the tile that wastes the fewest columns of a matrix with `columns` columns.

        Ties go to the first that is not wider than the matrix, if any.
        """

        def waste(tile: tuple[int, int]) -> tuple[int, bool]:
            width = tile[1] * self.lanes
            return -(-columns // width) * width, width > columns

        return Tile(self, *min(self.tiles, key=waste))


@dataclass(frozen=True, slots=True)
class Tile:
    """The sums that one pass over k computes: `rows` rows by `vectors` registers."""

    form: VectorForm
    rows: int
    vectors: int

    @property
    def columns(self) -> int:
        """The number of columns of a tile; a panel of weights has as many."""
        return self.vectors * self.form.lanes


def _x86(
    name: str, features: str, dot: str, kind: tuple[str, str, int], lanes: int, *tiles: tuple[int, int]
) -> VectorForm:
    left, right, group = kind
    return VectorForm(name, "x86_64", frozenset(features.split()), dot, left, right, group, lanes, tiles)


def _arm(
    name: str, features: str, dot: str, kind: tuple[str, str, int], lanes: int, *tiles: tuple[int, int]
) -> VectorForm:
    left, right, group = kind
    return VectorForm(name, "aarch64", frozenset(features.split()), dot, left, right, group, lanes, tiles)


_BYTES_X86 = ("uint8", "int8", 4)
_BYTES_ARM = ("int8", "int8", 4)
_PAIRS = ("int16", "int16", 2)
_SINGLE = ("int16", "int16", 1)
#: More rows take longer: 12 addresses do not stay in registers.
_TILES_512 = ((6, 4), (8, 3), (8, 2), (8, 1))

#: Best first for each machine. Every x86-64 processor has one of these: SSE2 is part of it, as NEON is of AArch64.
FORMS = (
    _x86("avx512-vnni", "avx512vnni avx512bw", "vpdpbusd-512", _BYTES_X86, 16, *_TILES_512),
    _x86("avx-vnni", "avxvnni avx2", "vpdpbusd-256", _BYTES_X86, 8, (6, 2), (12, 1)),
    _x86("avx512-vnni-pairs", "avx512vnni avx512bw", "vpdpwssd-512", _PAIRS, 16, *_TILES_512),
    _x86("avx-vnni-pairs", "avxvnni avx2", "vpdpwssd-256", _PAIRS, 8, (6, 2)),
    _x86("avx512-bw", "avx512bw", "pmaddwd-512", _PAIRS, 16, *_TILES_512),
    _x86("avx2", "avx2", "pmaddwd-256", _PAIRS, 8, (6, 2)),
    _x86("sse2", "sse2", "pmaddwd-128", _PAIRS, 4, (3, 4)),
    _arm("neon-dotprod", "neon dotprod", "sdot", _BYTES_ARM, 4, (6, 4)),
    _arm("neon", "neon", "plain-int16", _SINGLE, 4, (6, 4)),
)


@cache
def available(is_wide: bool) -> tuple[VectorForm, ...]:
    """Return this machine's forms for 8-bit codes, or for 16-bit ones if `is_wide`, best first."""
    if compiling_is_off() or sys.byteorder != "little":
        return ()
    return ranked(machine(), features(), is_wide)


def choose(is_wide: bool) -> VectorForm | None:
    """Return the best of `available`, or None if there is none."""
    return next(iter(available(is_wide)), None)


def ranked(machine: str, features: Collection[str], is_wide: bool) -> tuple[VectorForm, ...]:
    """Return the forms of `machine` whose features are all among `features`, best first."""
    own = frozenset(features)
    return tuple(
        form for form in FORMS if form.machine == machine and form.features <= own and (form.is_wide or not is_wide)
    )


#: Bytes of an element.
SIZES: Mapping[str, int] = MappingProxyType({"int8": 1, "uint8": 1, "int16": 2, "int32": 4, "float32": 4, "float64": 8})


@dataclass(frozen=True, slots=True)
class TileKernel:
    """A micro-kernel: the sums of a tile, the steps that scale them, and the type of the codes."""

    tile: Tile
    steps: tuple[VectorStep, ...]
    code: str  # type of the codes: "int8", "uint8", "int16" or "int32"

    @property
    def constants(self) -> tuple[str, ...]:
        """Types of the constants that a panel has for each column: the bias, then each step's constants."""
        return ("int32", *(kind for step in self.steps for kind in step.types))


@dataclass(frozen=True, slots=True)
class FloatTile:
    """Sums of `rows` rows by `vectors` registers of `lanes` columns.

    If `fused`, a sum begins with the bias, takes each product by one fused multiply-add, and flushes subnormal numbers.
    """

    rows: int
    vectors: int
    lanes: int
    fused: bool = False

    @property
    def columns(self) -> int:
        """The number of columns of a tile; a panel of weights has as many."""
        return self.vectors * self.lanes


#: Number of int16 values in 128 bits, the unit in which interleaving instructions work.
_PART = 8


@dataclass(frozen=True, slots=True)
class TapKernel:
    """A kernel for `width` elements of a line at a time: sums over taps, and the steps that scale them."""

    form: VectorForm  # of int16 pairs
    left: str  # type of the codes that taps see: "int8", "uint8" or "int16"
    steps: tuple[VectorStep, ...]
    code: str  # type of the codes that are written

    @property
    def width(self) -> int:
        """The number of elements computed at a time: two registers of sums."""
        return 2 * self.form.lanes

    @property
    def order(self) -> tuple[int, ...]:
        """The element that each lane of two registers holds: interleaving takes lower and upper halves of 128 bits."""
        parts = range(0, self.width, _PART)
        halves = [[part + half + i for part in parts for i in range(_PART // 2)] for half in (0, _PART // 2)]
        return (*halves[0], *halves[1])

    @property
    def constants(self) -> tuple[str, ...]:
        """Types of the constants of each lane: the bias, then each step's constants."""
        return ("int32", *(kind for step in self.steps for kind in step.types))


@dataclass(frozen=True, slots=True)
class SumKernel:
    """A kernel for sums of two codes: the steps that scale each of them, the sign of the second, those of the sum."""

    lanes: int
    left: str  # type of both operands' codes: "int8", "uint8" or "int16"
    first: tuple[VectorStep, ...]
    second: tuple[VectorStep, ...]
    sign: int  # 1 or -1
    steps: tuple[VectorStep, ...]
    code: str  # type of the codes that are written


#: Elements of a run.
RUN = 16


class EmittedRun(Compiled[..., None]):
    """The copy: `python` defines it, compiled code contains one load, one conversion and one store of vectors."""

    writes_code = True

    def digest(self) -> str:
        """Return a digest of the code that writes it."""
        return sources()[:16]

    def _link(self) -> Any:
        emitted: Callable[..., None] = _intrinsic()
        return emitted


def _intrinsic() -> Any:
    """Return the copy as a numba intrinsic with the arguments of its definition."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    def is_integer(kind: Any) -> bool:
        return isinstance(kind, types.Integer)

    def converted(builder: Any, values: Any, source: Any, kind: Any, target: Any) -> Any:
        """Emit integers cut, extended or rounded to the type of `target`; floats have it already."""
        if not is_integer(target):
            turned = builder.sitofp if is_integer(source) and source.signed else builder.uitofp
            return turned(values, kind) if is_integer(source) else values
        if source.bitwidth == target.bitwidth:
            return values
        if source.bitwidth > target.bitwidth:
            return builder.trunc(values, kind)
        return (builder.sext if source.signed else builder.zext)(values, kind)

    @intrinsic  # type: ignore[untyped-decorator]
    def run_into(typing: Any, source: Any, begin: Any, less: Any, out: Any, at: Any) -> Any:
        if source.dtype != out.dtype and not is_integer(source.dtype):
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            places, kinds = [], []
            for array, element in ((0, 1), (3, 4)):
                data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
                kind = ir.VectorType(context.get_data_type(signature.args[array].dtype), RUN)
                first = context.cast(builder, arguments[element], signature.args[element], types.int64)
                places.append(builder.bitcast(builder.gep(data, [first]), kind.as_pointer()))
                kinds.append(kind)
            values = converted(builder, builder.load(places[0], align=1), source.dtype, kinds[1], out.dtype)
            subtracted = context.cast(builder, arguments[2], signature.args[2], out.dtype)
            empty = ir.Constant(kinds[1], ir.Undefined)
            one = builder.insert_element(empty, subtracted, ir.Constant(ir.IntType(32), 0))
            every = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), RUN), [0] * RUN))
            subtract = builder.sub if is_integer(out.dtype) else builder.fsub
            builder.store(subtract(values, every), places[1], align=1)
            return context.get_dummy_value()

        return types.void(source, begin, less, out, at), generate

    return run_into


def _emit(function: Compiled[..., None]) -> EmittedRun:
    """Go above `@compiled`, whose function is the definition."""
    return EmittedRun(function.python)


@_emit
@compiled
def run_into(source: Array, begin: Int, less: Int, out: Array, at: Int) -> None:
    """Write RUN elements of `source` from `begin` on, less `less` in the type of `out`, from out[at] on.

    The caller guarantees: `source` and `out` are flat and contiguous, and the elements lie inside of both.
    """
    out[at : at + RUN] = source[begin : begin + RUN].astype(out.dtype) - less
