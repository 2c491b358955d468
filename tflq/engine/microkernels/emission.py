"""One tile of sums of products as LLVM code: a loop over k with all sums in registers, then the steps of a stage.

Nothing here depends on numba: the same code is written into a function of its own for other machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from llvmlite import ir

from tflq.engine.microkernels.forms import Tile
from tflq.engine.microkernels.kernel import SIZES, Kernel
from tflq.engine.microkernels.vectors import DOUBLE, FLOAT, I8, I16, I32, I64, Value, Vectors, written

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
    """The arguments of a tile's function, as LLVM values: addresses of bytes, distances of rows in bytes, scalars."""

    rows: Value  # address of the first row's first value
    row_step: Value
    weights: Value  # address of the panel
    steps: Value  # groups of k, 1 at least
    constants: Value  # address of the panel's
    terms: Value  # address of the first row's, int32: added to all of its sums
    zero_point: Value  # int32, as low and high
    low: Value
    high: Value
    codes: Value  # address of the first row's first code
    code_step: Value


def emit_function(module: ir.Module, kernel: Kernel, name: str) -> ir.Function:
    """Write the tile into `module` as a function of a name, which takes Operands."""
    address = I8.as_pointer()
    kinds = Operands(address, I64, address, I64, address, address, I32, I32, I32, address, I64)
    return written(module, name, kinds, lambda builder, at: _emit(builder, kernel, at))


def _emit(builder: ir.IRBuilder, kernel: Kernel, at: Operands) -> None:
    """Emit codes = clamp(scale(bias + term + row . column) + zero point)."""
    tile = kernel.tile
    v = Vectors(builder, tile.form.lanes)
    totals = _products(v, tile, at)
    constants = [_constants(v, kernel, at.constants, vector) for vector in range(tile.vectors)]
    zero_point = v.spread(at.zero_point)
    for r, sums in enumerate(totals):
        scaled = []
        for total, own in zip(sums, constants, strict=True):
            for step, values in zip(kernel.steps, own, strict=True):
                total = getattr(v, step.name)(total, *values)
            scaled.append(builder.add(total, zero_point))
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
    before, loop = builder.block, builder.append_basic_block("over_k")
    after = builder.append_basic_block("scale")
    builder.branch(loop)
    builder.position_at_end(loop)
    step = builder.phi(I64)
    running = [[builder.phi(v.int32) for _ in row] for row in sums]
    panel = builder.gep(at.weights, [builder.mul(step, ir.Constant(I64, vector_bytes * tile.vectors))])
    loaded = [v.load(panel, i * vector_bytes, weight) for i in range(tile.vectors)]
    following = []
    for start, totals in zip(starts, running, strict=True):
        place = builder.gep(start, [builder.mul(step, ir.Constant(I64, word))])
        row = v.spread(v.load(place, 0, ir.IntType(8 * word)))
        following.append([dot(v, total, row, w) for total, w in zip(totals, loaded, strict=True)])
    next_step = builder.add(step, ir.Constant(I64, 1))
    step.add_incoming(ir.Constant(I64, 0), before)
    step.add_incoming(next_step, loop)
    for row, first, last in zip(running, sums, following, strict=True):
        for phi, begin, end in zip(row, first, last, strict=True):
            phi.add_incoming(begin, before)
            phi.add_incoming(end, loop)
    builder.cbranch(builder.icmp_signed("<", next_step, at.steps), loop, after)
    builder.position_at_end(after)
    return following


def _begin(v: Vectors, tile: Tile, at: Operands, row: int) -> list[Value]:
    """Emit a row's sums before the first product: the biases, and the row's own term if the form has such terms."""
    biases = [v.load(at.constants, 4 * tile.form.lanes * i, v.int32) for i in range(tile.vectors)]
    if tile.form.is_wide:
        return biases
    term = v.spread(v.load(at.terms, 4 * row, I32))
    return [v.builder.add(bias, term) for bias in biases]


def _constants(v: Vectors, kernel: Kernel, address: Value, vector: int) -> list[list[Any]]:
    """Load the constants of each step for one vector of columns."""
    offset, constants = 4 * kernel.tile.columns, []
    for step in kernel.steps:
        values = []
        for kind in step.types:
            size = SIZES[kind]
            own = ir.VectorType(ELEMENTS[kind], v.lanes)
            values.append(v.load(address, offset + vector * v.lanes * size, own))
            offset += kernel.tile.columns * size
        constants.append(values)
    return constants
