"""The arithmetic limit of this processor: multiply-accumulates a second with all operands in registers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import perf_counter

from llvmlite import binding, ir

from tflq.engine.jit.targets import features, machine
from tflq.engine.microkernels import float_tiles
from tflq.engine.microkernels.emission import DOTS, ELEMENTS
from tflq.engine.microkernels.forms import Form, choose
from tflq.engine.microkernels.vectors import FLOAT, I8, I32, I64, Value, Vectors

#: Rows, and vectors of weights, in registers. Each pair has a register of sums, which hides latencies.
_SIDE = 3
#: Steps of a call, each with one instruction for each sum, and calls of which the fastest counts.
_STEPS, _CALLS = 50_000, 300
#: The constraint of a vector register in assembly, by architecture.
_REGISTERS = {"x86_64": "x", "aarch64": "w"}

#: Bytes between operands in memory: the widest register, and a line of the cache.
_LINE = 64

#: (vectors, sums, row, weights) -> sums
Product = Callable[[Vectors, Value, Value, Value], Value]


def limits() -> dict[str, dict[str, str | float]]:
    """Return limits by the kind of products, "codes" (of 8 bits), "wide" (of 16 bits) and "floats".

    Each has the `form` of its instructions and `rate`, multiply-accumulates a second in one thread. Kinds without a
    form are left out.
    """
    found: dict[str, dict[str, str | float]] = {}
    for kind, form in (("codes", choose(False)), ("wide", choose(True))):
        if form is not None:
            found[kind] = {"form": form.name, "rate": rate_of_form(form)}
    if found:
        lanes = float_tiles.choose().lanes
        found["floats"] = {"form": f"float32 x {lanes}", "rate": _rate(lanes, lanes, FLOAT, FLOAT, _multiply)}
    return found


def rate_of_form(form: Form) -> float:
    """Return the multiply-accumulates a second that a form's instruction makes in one thread."""
    weights = ir.VectorType(ELEMENTS[form.right], form.lanes * form.group)
    return _rate(form.lanes, form.lanes * form.group, I32, weights.element, DOTS[form.dot])


def _multiply(v: Vectors, sums: Value, row: Value, weights: Value) -> Value:
    """Emit a product that is rounded before it is added, as in the reference kernels."""
    return v.builder.fadd(sums, v.builder.fmul(row, weights))


def _rate(lanes: int, products: int, total: ir.Type, weight: ir.Type, product: Product) -> float:
    """Return products a second. An instruction makes `products` of them."""
    module = ir.Module("limits")
    module.triple = binding.get_process_triple()
    _emit(module, lanes, ir.VectorType(total, lanes), ir.VectorType(weight, products), product)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    parsed = binding.parse_assembly(str(module))
    target = binding.Target.from_triple(module.triple)
    on = ",".join("+" + name for name in sorted(features()))
    processor = target.create_target_machine(binding.get_host_cpu_name(), on, opt=3, jit=True)
    with binding.create_mcjit_compiler(parsed, processor) as engine:
        engine.finalize_object()
        memory = (ctypes.c_uint8 * (_LINE * 16))(*bytes(range(1, _LINE + 1)) * 16)
        address = (ctypes.addressof(memory) + _LINE - 1) & -_LINE
        run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("sums"))
        times = []
        for _ in range(_CALLS):
            begun = perf_counter()
            run(_STEPS, address)
            times.append(perf_counter() - begun)
    return _STEPS * _SIDE**2 * products / min(times)


def _emit(module: ir.Module, lanes: int, totals: ir.Type, weights: ir.Type, product: Product) -> None:
    """Emit a loop in which all rows meet all weights, and write the sums at its end.

    Each step passes the rows through an empty piece of assembly, so that no product is moved out of the loop.
    """
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I8.as_pointer()]), "sums")
    builder = ir.IRBuilder(function.append_basic_block())
    v, (steps, memory) = Vectors(builder, lanes), function.args
    rows = [v.load(memory, _LINE * i, totals) for i in range(_SIDE)]
    kept = [v.load(memory, _LINE * (_SIDE + i), weights) for i in range(_SIDE)]
    before, loop = builder.block, builder.append_basic_block()
    after = builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    step = builder.phi(I64)
    sums = [builder.phi(totals) for _ in range(_SIDE * _SIDE)]
    register = _REGISTERS[machine()]
    same = ir.FunctionType(totals, [totals])
    passed = [builder.asm(same, "", f"={register},0", [row], side_effect=True) for row in rows]
    pairs = [(row, weight) for row in passed for weight in kept]
    following = [product(v, total, row, weight) for total, (row, weight) in zip(sums, pairs, strict=True)]
    next_step = builder.add(step, ir.Constant(I64, 1))
    zero = ir.Constant(totals, None)
    for phi, first, last in (
        (step, ir.Constant(I64, 0), next_step),
        *((phi, zero, last) for phi, last in zip(sums, following, strict=True)),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(last, loop)
    builder.cbranch(builder.icmp_signed("<", next_step, steps), loop, after)
    builder.position_at_end(after)
    for i, total in enumerate(following):
        v.store(total, memory, _LINE * i)
    builder.ret_void()
