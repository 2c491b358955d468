"""Micro-kernels as LLVM code: tiles, taps, sums, fused multiply-adds.

One tile of sums of products as LLVM code: a loop over k with all sums in registers, then the steps of a stage.

Nothing here depends on numba: the same code is written into a function of its own for other machines.

One tile of float32 sums as LLVM code: a loop over blocks of k, in it one over k, with all sums in registers.

A fused tile has one block, whose sums begin with the bias.

Sums over taps of a line as LLVM code: a loop over passes, in it one over pairs of taps, then the steps of a stage.

Nothing here depends on numba, as in `emission`.

Sums of two codes, each scaled by steps of its own, as LLVM code: a loop over registers of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from llvmlite import ir

from tflq.engine.jit import flushing
from tflq.engine.microkernels.kernel import SIZES, FloatTile, SumKernel, TapKernel, Tile, TileKernel
from tflq.engine.microkernels.vectors import ADDRESS, DOUBLE, FLOAT, I8, I16, I32, I64, Loop, Value, Vectors
from tflq.engine.numerics.stages import VectorStep

#: LLVM types by name.
ELEMENTS = MappingProxyType({"int8": I8, "uint8": I8, "int16": I16, "int32": I32, "float32": FLOAT, "float64": DOUBLE})

#: (vectors, sums, word of a row in every lane, weights) -> sums
Dot = Callable[[Vectors, Value, Value, Value], Value]


def _by_intrinsic(name: str, *, adds: bool) -> Dot:
    """Return an instruction that takes vectors of int32 words; if it only multiplies, its result is added."""

    def dot(v: Vectors, sums: Value, row: Value, weights: Value) -> Value:
        if adds:
            kind = ir.FunctionType(v.int32, [v.int32] * 3)
            operands = [v.builder.bitcast(operand, v.int32) for operand in (row, weights)]
            return v.builder.call(v.builder.module.declare_intrinsic(name, (), kind), [sums, *operands])
        pairs = ir.VectorType(I16, 2 * v.lanes)
        operands = [v.builder.bitcast(operand, pairs) for operand in (row, weights)]
        function = v.builder.module.declare_intrinsic(name, (), ir.FunctionType(v.int32, [pairs, pairs]))
        return v.builder.add(sums, v.builder.call(function, operands))

    return dot


def _sdot(v: Vectors, sums: Value, row: Value, weights: Value) -> Value:
    """Emit AArch64's dot product of four signed bytes."""
    quads = ir.VectorType(I8, 4 * v.lanes)
    function = v.builder.module.declare_intrinsic(
        "llvm.aarch64.neon.sdot.v4i32.v16i8", (), ir.FunctionType(v.int32, [v.int32, quads, quads])
    )
    return v.builder.call(function, [sums, v.builder.bitcast(row, quads), v.builder.bitcast(weights, quads)])


def _plain(left_is_signed: bool, width: int) -> Dot:
    """Return the definition of all dot products, in vector code for any processor, for operands of `width` bits."""

    def dot(v: Vectors, sums: Value, row: Value, weights: Value) -> Value:
        group = weights.type.count * int(weights.type.element.width) // (v.lanes * width)
        narrow = ir.VectorType(ir.IntType(width), v.lanes * group)
        left, right = v.builder.bitcast(row, narrow), v.builder.bitcast(weights, narrow)
        empty = ir.Constant(narrow, ir.Undefined)
        for k in range(group):
            picked = ir.Constant(v.int32, [lane * group + k for lane in range(v.lanes)])
            a, b = (v.builder.shuffle_vector(x, empty, picked) for x in (left, right))
            a = v.builder.sext(a, v.int32) if left_is_signed else v.builder.zext(a, v.int32)
            sums = v.builder.add(sums, v.builder.mul(a, v.builder.sext(b, v.int32)))
        return sums

    return dot


DOTS: Mapping[str, Dot] = MappingProxyType(
    {
        "vpdpbusd-512": _by_intrinsic("llvm.x86.avx512.vpdpbusd.512", adds=True),
        "vpdpbusd-256": _by_intrinsic("llvm.x86.avx512.vpdpbusd.256", adds=True),
        "vpdpwssd-512": _by_intrinsic("llvm.x86.avx512.vpdpwssd.512", adds=True),
        "vpdpwssd-256": _by_intrinsic("llvm.x86.avx512.vpdpwssd.256", adds=True),
        "pmaddwd-512": _by_intrinsic("llvm.x86.avx512.pmaddw.d.512", adds=False),
        "pmaddwd-256": _by_intrinsic("llvm.x86.avx2.pmadd.wd", adds=False),
        "pmaddwd-128": _by_intrinsic("llvm.x86.sse2.pmadd.wd", adds=False),
        "sdot": _sdot,
        "plain-int16": _plain(True, 16),
        "plain-int8": _plain(True, 8),
        "plain-uint8": _plain(False, 8),
    }
)


class Operands(NamedTuple):
    """The arguments of a tile's function, as LLVM values: addresses of bytes, distances of rows in bytes, scalars.

    By default, each is its type, as in the operands of the other families.
    """

    rows: Value = ADDRESS  # of the first row's first value
    row_step: Value = I64
    weights: Value = ADDRESS  # of the panel
    steps: Value = I64  # groups of k, 1 at least
    constants: Value = ADDRESS  # of the panel's
    terms: Value = ADDRESS  # of the first row's, int32: added to all of its sums
    zero_point: Value = I32
    low: Value = I32
    high: Value = I32
    codes: Value = ADDRESS  # of the first row's first code
    code_step: Value = I64


def _emit_tile(builder: ir.IRBuilder, kernel: TileKernel, at: Operands) -> None:
    """Emit codes = clamp(scale(bias + term + row . column) + zero point)."""
    tile = kernel.tile
    v = Vectors(builder, tile.form.lanes)
    totals = _products(v, tile, at)
    constants = [_constants(v, kernel.steps, at.constants, tile.columns, vector) for vector in range(tile.vectors)]
    zero_point = v.spread(at.zero_point)
    for r, sums in enumerate(totals):
        scaled = [
            builder.add(_scale(v, total, kernel.steps, own), zero_point)
            for total, own in zip(sums, constants, strict=True)
        ]
        whole = clamp(v, scaled, kernel.code, (at.low, at.high), tile.form.saturates)
        v.store(whole, builder.gep(at.codes, [builder.mul(at.code_step, ir.Constant(I64, r))]))


def clamp(v: Vectors, values: list[Value], code: str, limits: tuple[Value, Value], saturates: bool) -> Value:
    """Emit registers of int32, one behind the other, clamped to `limits` (int32, within the code's range), as codes.

    If a processor `saturates`, bytes are clamped after they have been narrowed, four times as many at a time.
    """
    builder = v.builder
    if saturates and len(values) > 1 and code in ("int8", "uint8"):
        codes = v.narrowed(values, code)
        low, high = (Vectors(builder, codes.type.count).spread(builder.trunc(limit, I8)) for limit in limits)
        compare = builder.icmp_signed if code == "int8" else builder.icmp_unsigned
        codes = builder.select(compare(">", codes, low), codes, low)
        return builder.select(compare("<", codes, high), codes, high)
    low, high = (v.spread(limit) for limit in limits)
    whole = v.joined([v.clamp(value, low, high) for value in values])
    return whole if code == "int32" else builder.trunc(whole, ir.VectorType(ELEMENTS[code], whole.type.count))


def _products(v: Vectors, tile: Tile, at: Operands) -> list[list[Value]]:
    """Emit the sums of all rows and vectors after the loop over k, which begins with the biases."""
    builder, form, dot = v.builder, tile.form, DOTS[tile.form.dot]
    sums = [_begin(v, tile, at, r) for r in range(tile.rows)]
    starts = [builder.gep(at.rows, [builder.mul(at.row_step, ir.Constant(I64, r))]) for r in range(tile.rows)]
    word = form.group * SIZES[form.left]
    weight = ir.VectorType(ELEMENTS[form.right], form.lanes * form.group)
    vector_bytes = weight.count * SIZES[form.right]
    loop = Loop(builder, "over_k", [total for row in sums for total in row])
    panel = builder.gep(at.weights, [builder.mul(loop.number, ir.Constant(I64, vector_bytes * tile.vectors))])
    loaded = [v.load(panel, i * vector_bytes, weight) for i in range(tile.vectors)]
    following: list[Value] = []
    for r, start in enumerate(starts):
        place = builder.gep(start, [builder.mul(loop.number, ir.Constant(I64, word))])
        row, totals = v.spread(v.load(place, 0, ir.IntType(8 * word))), loop.carried[r * tile.vectors :]
        following += [dot(v, total, row, w) for total, w in zip(totals, loaded)]  # noqa: B905 (one row's totals)
    loop.end(at.steps, following)
    return [following[r * tile.vectors : (r + 1) * tile.vectors] for r in range(tile.rows)]


def _begin(v: Vectors, tile: Tile, at: Operands, row: int) -> list[Value]:
    """Emit a row's sums before the first product: the biases, and the row's own term if the form has such terms."""
    biases = [v.load(at.constants, 4 * tile.form.lanes * i, v.int32) for i in range(tile.vectors)]
    if tile.form.is_wide:
        return biases
    term = v.spread(v.load(at.terms, 4 * row, I32))
    return [v.builder.add(bias, term) for bias in biases]


def _constants(v: Vectors, steps: Iterable[VectorStep], address: Value, columns: int, vector: int) -> list[list[Value]]:
    """Load the constants of each step for one vector of columns; those of all `columns` lie behind their biases."""
    offset, constants = 4 * columns, []
    for step in steps:
        values = []
        for kind in step.types:
            own = ir.VectorType(ELEMENTS[kind], v.lanes)
            values.append(v.load(address, offset + vector * v.lanes * SIZES[kind], own))
            offset += columns * SIZES[kind]
        constants.append(values)
    return constants


def _scale(v: Vectors, value: Value, steps: Iterable[VectorStep], constants: list[list[Value]]) -> Value:
    for step, own in zip(steps, constants, strict=True):
        value = getattr(v, step.name)(value, *own)
    return value


class FloatOperands(NamedTuple):
    """The arguments of a tile's function, as LLVM values: addresses of bytes, distances of rows in bytes, scalars."""

    rows: Value = ADDRESS  # of the first row's first value
    row_step: Value = I64
    weights: Value = ADDRESS  # of the panel
    length: Value = I64  # K
    block: Value = I64
    biases: Value = ADDRESS  # of the first column's
    low: Value = FLOAT
    high: Value = FLOAT
    out: Value = ADDRESS  # of the first row's first sum
    out_step: Value = I64
    count: Value = I64  # number of rows; those beyond repeat the last one


def _numbers(builder: ir.IRBuilder, tile: FloatTile, at: FloatOperands) -> list[Value]:
    """Emit the number of each row of the tile, at most the last row's."""
    last = builder.sub(at.count, ir.Constant(I64, 1))
    return [_smaller(builder, ir.Constant(I64, r), last) for r in range(tile.rows)]


def _emit_floats(builder: ir.IRBuilder, tile: FloatTile, at: FloatOperands) -> None:
    """Emit the tile: fused, from the biases on; else block by block, from 0 on, and the biases last."""
    before = flushing.begin(builder) if tile.fused else None
    v, kind = Vectors(builder, tile.lanes), ir.VectorType(FLOAT, tile.lanes)
    numbers = _numbers(builder, tile, at)
    starts = [builder.gep(at.rows, [builder.mul(at.row_step, number)]) for number in numbers]
    if tile.fused:
        totals = _over_k(v, tile, at, starts, Loop(builder, "over_k", _biases(v, tile, at)), at.length)
    else:
        zeros = [ir.Constant(kind, [0.0] * tile.lanes)] * (tile.rows * tile.vectors)
        blocks = Loop(builder, "over_blocks", zeros)
        last = _smaller(builder, builder.add(blocks.number, at.block), at.length)
        sums = _over_k(v, tile, at, starts, Loop(builder, "over_k", zeros, blocks.number), last)
        added = [builder.fadd(total, part) for total, part in zip(blocks.carried, sums, strict=True)]
        blocks.end(at.length, added, last)
        totals = [builder.fadd(total, bias) for total, bias in zip(added, _biases(v, tile, at), strict=True)]
    _write(v, tile, at, numbers, totals)
    if before is not None:
        flushing.end(builder, before)


def _biases(v: Vectors, tile: FloatTile, at: FloatOperands) -> list[Value]:
    """Load the bias of each sum."""
    kind = ir.VectorType(FLOAT, tile.lanes)
    return [v.load(at.biases, 4 * tile.lanes * i, kind) for i in range(tile.vectors)] * tile.rows


def _write(v: Vectors, tile: FloatTile, at: FloatOperands, numbers: list[Value], totals: list[Value]) -> None:
    """Emit the clamp of all sums, and write them."""
    builder, size = v.builder, 4 * tile.lanes
    low, high = v.spread(at.low), v.spread(at.high)
    for r, number in enumerate(numbers):
        target = builder.gep(at.out, [builder.mul(at.out_step, number)])
        for i, value in enumerate(totals[r * tile.vectors : (r + 1) * tile.vectors]):
            floored = builder.select(builder.fcmp_ordered("<", value, low), low, value)
            v.store(builder.select(builder.fcmp_ordered("<", high, floored), high, floored), target, size * i)


def _over_k(
    v: Vectors, tile: FloatTile, at: FloatOperands, starts: list[Value], loop: Loop, limit: Value
) -> list[Value]:
    """Emit the loop over k below `limit`; return its sums. Products are rounded, then added, or fused."""
    builder, kind = v.builder, ir.VectorType(FLOAT, tile.lanes)
    panel = builder.gep(at.weights, [builder.mul(loop.number, ir.Constant(I64, 4 * tile.columns))])
    weights = [v.load(panel, 4 * tile.lanes * i, kind) for i in range(tile.vectors)]
    place = builder.mul(loop.number, ir.Constant(I64, 4))
    following: list[Value] = []
    for r, start in enumerate(starts):
        value = v.spread(v.load(builder.gep(start, [place]), 0, FLOAT))
        for i, weight in enumerate(weights):
            total = loop.carried[r * tile.vectors + i]
            fused = tile.fused and flushing.fuse(builder, value, weight, total)
            following.append(fused or builder.fadd(total, builder.fmul(value, weight)))
    loop.end(limit, following)
    return following


def _smaller(builder: ir.IRBuilder, a: Value, b: Value) -> Value:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


class LineOperands(NamedTuple):
    """The arguments of a line's function, as LLVM values: addresses of bytes, counts, scalars."""

    codes: Value = ADDRESS  # of the code that a tap without offset reads for the line's first element
    offsets: Value = ADDRESS  # of the taps' offsets, int64 elements
    pairs: Value = I64  # of taps, 1 at least
    weights: Value = ADDRESS
    constants: Value = ADDRESS
    period: Value = I64  # after this many passes weights and constants repeat
    first: Value = I64  # number of the first pass within the period
    passes: Value = I64  # 1 at least
    zero_point: Value = I32
    low: Value = I32
    high: Value = I32
    out: Value = ADDRESS  # of the line's first element


def _number(value: int) -> Value:
    return ir.Constant(I64, value)


def _emit_line(builder: ir.IRBuilder, kernel: TapKernel, at: LineOperands) -> None:
    """Emit the loop over passes: sums over taps, then the steps, then codes in their order."""
    v = Vectors(builder, kernel.form.lanes)
    zero_point = v.spread(at.zero_point)
    words = sum(SIZES[kind] for kind in kernel.constants) * kernel.width
    loop = Loop(builder, "over_passes", [at.first])
    (phase,) = loop.carried
    constants = builder.gep(at.constants, [builder.mul(phase, _number(words))])
    sums = _sums(v, kernel, at, loop.number, phase, constants)
    codes = _line_codes(v, kernel, sums, constants, zero_point, (at.low, at.high))
    v.store(codes, builder.gep(at.out, [builder.mul(loop.number, _number(kernel.width * SIZES[kernel.code]))]))
    following = builder.add(phase, _number(1))
    is_over = builder.icmp_signed("==", following, at.period)
    loop.end(at.passes, [builder.select(is_over, _number(0), following)])


def _sums(v: Vectors, kernel: TapKernel, at: LineOperands, step: Value, phase: Value, constants: Value) -> list[Value]:
    """Emit both registers of sums after the loop over pairs of taps, which begins with the biases."""
    builder, width, dot = v.builder, kernel.width, DOTS[kernel.form.dot]
    half = 2 * width  # bytes of a register of int16
    pairs = ir.VectorType(I16, width)
    codes = builder.gep(at.codes, [builder.mul(step, _number(width * SIZES[kernel.left]))])
    own = builder.gep(at.weights, [builder.mul(builder.mul(phase, at.pairs), _number(2 * half))])
    biases = [v.load(constants, 4 * v.lanes * register, v.int32) for register in range(2)]
    loop = Loop(builder, "over_taps", biases)
    taps = [_seen(v, kernel, codes, at.offsets, loop.number, tap) for tap in range(2)]
    weights = builder.gep(own, [builder.mul(loop.number, _number(2 * half))])
    following = []
    for register, total in enumerate(loop.carried):
        lanes = kernel.order[register * v.lanes : (register + 1) * v.lanes]
        mask = ir.Constant(ir.VectorType(I32, width), [i + tap * width for i in lanes for tap in range(2)])
        both = builder.shuffle_vector(taps[0], taps[1], mask)
        following.append(dot(v, total, both, v.load(weights, half * register, pairs)))
    loop.end(at.pairs, following)
    return following


def _seen(v: Vectors, kernel: TapKernel, codes: Value, offsets: Value, pair: Value, tap: int) -> Value:
    """Load the codes that a tap reads, as int16."""
    builder, width = v.builder, kernel.width
    place = builder.gep(offsets, [builder.mul(pair, _number(16))])
    offset = builder.mul(v.load(place, 8 * tap, I64), _number(SIZES[kernel.left]))
    narrow = v.load(builder.gep(codes, [offset]), 0, ir.VectorType(ELEMENTS[kernel.left], width))
    if kernel.left == "int16":
        return narrow
    widen = builder.sext if kernel.left == "int8" else builder.zext
    return widen(narrow, ir.VectorType(I16, width))


def _line_codes(
    v: Vectors, kernel: TapKernel, sums: list[Value], constants: Value, zero_point: Value, limits: tuple[Value, Value]
) -> Value:
    """Emit the steps on both registers, and return one vector of codes, of 16 bits at most, in the order of the line.

    `limits` are int32 within the range of the codes.
    """
    builder, width = v.builder, kernel.width
    scaled = []
    for register, total in enumerate(sums):
        own = _constants(v, kernel.steps, constants, width, register)
        scaled.append(builder.add(_scale(v, total, kernel.steps, own), zero_point))
    if kernel.form.saturates:  # in the order of `kernel.order`
        whole = v.narrowed_pair(*scaled)
        short = Vectors(builder, width)
        whole = short.clamp(whole, *(short.spread(builder.trunc(limit, I16)) for limit in limits))
    else:
        mask = ir.Constant(ir.VectorType(I32, width), [kernel.order.index(i) for i in range(width)])
        spread = [v.spread(limit) for limit in limits]
        whole = builder.shuffle_vector(*(v.clamp(total, *spread) for total in scaled), mask)
    code = ir.VectorType(ELEMENTS[kernel.code], width)
    return whole if whole.type == code else builder.trunc(whole, code)


#: Bytes of a constant's place.
_PLACE = 8


class SumOperands(NamedTuple):
    """The arguments of a sum's function, as LLVM values: addresses of bytes, counts, scalars."""

    first: Value = ADDRESS  # of the first operand's first code
    second: Value = ADDRESS
    constants: Value = ADDRESS  # of places of 8 bytes, see sums.constants_of
    passes: Value = I64  # registers of elements, 1 at least
    zero_point: Value = I32
    low: Value = I32
    high: Value = I32
    out: Value = ADDRESS  # of the first code


class _Constants:
    """The constants of a kernel, each in all lanes, in the order of their places."""

    def __init__(self, v: Vectors, address: Value) -> None:
        self._v, self._address, self._at = v, address, 0

    def take(self, kind: str) -> Value:
        """Load the next one."""
        value = self._v.spread(self._v.load(self._address, self._at, ELEMENTS[kind]))
        self._at += _PLACE
        return value

    def of_steps(self, steps: Iterable[VectorStep]) -> list[list[Value]]:
        """Load those of steps."""
        return [[self.take(kind) for kind in step.types] for step in steps]


def _emit_sum(builder: ir.IRBuilder, kernel: SumKernel, at: SumOperands) -> None:
    """Emit codes = clamp(scale(scale(first) + sign * scale(second)) + zero point), a register at a time."""
    v = Vectors(builder, kernel.lanes)
    constants = _Constants(v, at.constants)
    centring, inputs = [], []
    for steps in (kernel.first, kernel.second):
        centring.append([constants.take("int32"), constants.take("int32")])
        inputs.append(constants.of_steps(steps))
    scaling = constants.of_steps(kernel.steps)
    zero_point, low, high = (v.spread(limit) for limit in (at.zero_point, at.low, at.high))
    loop = Loop(builder, "over_passes")
    start = builder.mul(loop.number, ir.Constant(I64, kernel.lanes))
    first = _scale(v, _centre(v, kernel, at.first, start, centring[0]), kernel.first, inputs[0])
    second = _scale(v, _centre(v, kernel, at.second, start, centring[1]), kernel.second, inputs[1])
    total = builder.add(first, second) if kernel.sign > 0 else builder.sub(first, second)
    codes = v.clamp(builder.add(_scale(v, total, kernel.steps, scaling), zero_point), low, high)
    narrow = builder.trunc(codes, ir.VectorType(ELEMENTS[kernel.code], kernel.lanes))
    v.store(narrow, builder.gep(at.out, [builder.mul(start, ir.Constant(I64, SIZES[kernel.code]))]))
    loop.end(at.passes)


def _centre(v: Vectors, kernel: SumKernel, place: Value, start: Value, constants: list[Value]) -> Value:
    """Emit (code - zero point) * 2**left for a register of codes."""
    zero_point, left = constants
    address = v.builder.gep(place, [v.builder.mul(start, ir.Constant(I64, SIZES[kernel.left]))])
    narrow = v.load(address, 0, ir.VectorType(ELEMENTS[kernel.left], v.lanes))
    codes = (v.builder.zext if kernel.left == "uint8" else v.builder.sext)(narrow, v.int32)
    return v.shift_left(v.builder.sub(codes, zero_point), left)


class Family(NamedTuple):
    """How the functions of a kind of kernels are written: their operands, and their body without its return.

    `are_apart`: the arrays behind the addresses share no memory.
    """

    operands: Callable[..., Any]
    body: Callable[[ir.IRBuilder, Any, Any], None]
    are_apart: bool = True


_FAMILIES: Mapping[type, Family] = MappingProxyType(
    {
        TileKernel: Family(Operands, _emit_tile),
        FloatTile: Family(FloatOperands, _emit_floats),
        TapKernel: Family(LineOperands, _emit_line),
        SumKernel: Family(SumOperands, _emit_sum, are_apart=False),
    }
)


def emit(module: ir.Module, kernel: object, name: str) -> ir.Function:
    """Write a kernel into `module` as a function of a name, which takes the operands of its family."""
    family = _FAMILIES[type(kernel)]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), family.operands()), name)
    for argument in function.args:
        if family.are_apart and argument.type.is_pointer:
            argument.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block())
    family.body(builder, kernel, family.operands(*function.args))
    builder.ret_void()
    return function
