"""Micro-kernels compiled by LLVM alone, for this machine or another, and run on arrays."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from tflq.engine.microkernels.emission import emit

GCC, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"
ARM = "aarch64-unknown-linux-gnu"

#: Reads lengths and buffers from stdin, runs the tile once, and writes the buffer of codes.
DRIVER = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
void tile(void*, int64_t, void*, int64_t, void*, void*, int32_t, int32_t, int32_t, void*, int64_t);
static char* take(int64_t bytes) {
  char* buffer = malloc(bytes);
  if (fread(buffer, 1, bytes, stdin) != (size_t)bytes) exit(2);
  return buffer;
}
int main(void) {
  int64_t h[11];
  while (fread(h, 8, 11, stdin) == 11) {
    char *rows = take(h[0]), *weights = take(h[1]), *constants = take(h[2]), *terms = take(h[3]), *codes = take(h[4]);
    tile(rows, h[5], weights, h[6], constants, terms, h[7], h[8], h[9], codes, h[10]);
    fwrite(codes, 1, h[4], stdout);
  }
  return 0;
}
"""


def module_of(kernel, triple):
    """LLVM's text of a module with the kernel as the function `tile`."""
    module = ir.Module("tiles")
    module.triple = triple
    emit(module, kernel, "tile")
    return str(module)


def target_machine(triple, cpu, features):
    for initialize in ("initialize_all_targets", "initialize_all_asmprinters"):
        getattr(llvm, initialize)()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic")


def assembly(kernel, triple, cpu, features):
    text = module_of(kernel, triple)
    return target_machine(triple, cpu, features).emit_assembly(llvm.parse_assembly(text))


def arguments(kernel, rows, weights, constants, terms, limits):
    """Contiguous buffers and the numbers between them, in the order of the function's arguments."""
    out = np.zeros((kernel.tile.rows, kernel.tile.columns), kernel.code)
    return [np.ascontiguousarray(a) for a in (rows, weights, constants, terms)], limits, out


def on_host(text, kinds):
    """The function `tile` of a module's text, for this machine, and what keeps its code."""
    machine = target_machine(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine, ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("tile"))


class HostFloatTile:
    """A tile of float sums as a function of this machine, with the arguments of its definition."""

    def __init__(self, tile):
        address, i64, f32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
        kinds = (address, i64, address, i64, i64, address, f32, f32, address, i64, i64)
        self.engine, self.function = on_host(module_of(tile, llvm.get_process_triple()), kinds)

    def __call__(self, rows, row, weights, panel, block, biases, low, high, out, out_row, out_column, count):
        self.function(
            rows[row:].ctypes.data,
            rows.strides[0],
            weights[panel].ctypes.data,
            weights.shape[1],
            block,
            biases[out_column:].ctypes.data,
            low,
            high,
            out[out_row:, out_column:].ctypes.data,
            out.strides[0],
            count,
        )


class HostTile:
    """The kernel as a function of this machine."""

    def __init__(self, kernel):
        address, i64, i32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
        kinds = (address, i64, address, i64, address, address, i32, i32, i32, address, i64)
        self.kernel = kernel
        self.engine, self.function = on_host(module_of(kernel, llvm.get_process_triple()), kinds)

    def __call__(self, rows, weights, constants, terms, limits):
        (rows, weights, constants, terms), limits, out = arguments(self.kernel, rows, weights, constants, terms, limits)
        self.function(
            rows.ctypes.data,
            rows.strides[0],
            weights.ctypes.data,
            len(weights),
            constants.ctypes.data,
            terms.ctypes.data,
            *limits,
            out.ctypes.data,
            out.strides[0],
        )
        return out


class ArmTile:
    """The kernel as an AArch64 program under user-mode emulation."""

    def __init__(self, kernel, folder, features):
        text = module_of(kernel, ARM)
        target = target_machine(ARM, "generic", features)
        (folder / "tile.o").write_bytes(target.emit_object(llvm.parse_assembly(text)))
        (folder / "driver.c").write_text(DRIVER)
        self.kernel, self.program = kernel, folder / "driver"
        sources = folder / "driver.c", folder / "tile.o"
        subprocess.run([GCC, "-static", "-O1", "-o", self.program, *sources], check=True)

    def __call__(self, rows, weights, constants, terms, limits):
        buffers, limits, out = arguments(self.kernel, rows, weights, constants, terms, limits)
        sizes = [a.nbytes for a in (*buffers, out)]
        numbers = (*sizes, buffers[0].strides[0], len(buffers[1]), *limits, out.strides[0])
        data = struct.pack("<11q", *numbers) + b"".join(a.tobytes() for a in (*buffers, out))
        run = subprocess.run([QEMU, "-cpu", "max", self.program], input=data, capture_output=True, check=True)
        return np.frombuffer(run.stdout, out.dtype).reshape(out.shape)


def has_arm_tools():
    return shutil.which(GCC) is not None and shutil.which(QEMU) is not None
