"""Images of AArch64 that call each other by address, run on arrays under user-mode emulation."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.tiles import GCC, QEMU
from tflq.engine.jit.images import Image

#: Reads images and one block of memory from stdin, calls the first image, and writes its status and the block.
RUNNER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static int64_t number(void) { int64_t x; if (fread(&x, 8, 1, stdin) != 1) exit(2); return x; }
static void bytes(char *to, int64_t size) { if (fread(to, 1, size, stdin) != (size_t)size) exit(3); }
int main(void) {
  void *outside[] = {(void *)malloc, (void *)free, (void *)memcpy, (void *)memset, (void *)memmove};
  int64_t entries[8], images = number();
  for (int64_t i = 0; i < images; i++) {
    int64_t size = number(), slots;
    char *memory = mmap(0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    entries[i] = (int64_t)memory + number();
    bytes(memory, size);
    for (slots = number(); slots > 0; slots--) {
      int64_t which = number();
      memcpy(memory + number(), outside + which, 8);
    }
    __builtin___clear_cache(memory, memory + size);
  }
  int64_t size = number();
  char *block = malloc(size);
  bytes(block, size);
  for (int64_t moved = number(); moved > 0; moved--) *(int64_t *)(block + number()) += (int64_t)block;
  int64_t at = number();
  for (int64_t i = 1; i < images; i++) *(int64_t *)(block + number()) = entries[i];
  int32_t status = ((int32_t (*)(char *))entries[0])(block + at);
  fwrite(&status, 4, 1, stdout);
  fwrite(block, 1, size, stdout);
  return 0;
}
"""
_OUTSIDE = ("malloc", "free", "memcpy", "memset", "memmove")


def ran(images: Sequence[Image], args: tuple[Any, ...], addresses: Sequence[int], out: int, folder: Path) -> Any:
    """Call the first image with arguments, in which numbers at `addresses` are those of the other images; return the
    array at the position `out` after the call."""
    (folder / "run.c").write_text(RUNNER)
    program = folder / "run"
    subprocess.run([GCC, "-static", "-O1", "-o", program, folder / "run.c"], check=True)
    block, moved, words, begin = bytearray(), [], [0], 0

    def put(content: bytes) -> int:
        block.extend(bytes(-len(block) % 64))
        at = len(block)
        block.extend(content)
        return at

    for position, value in enumerate(args):
        if isinstance(value, np.ndarray):
            data, shape = put(value.tobytes() + bytes(64)), put(struct.pack(f"<{value.ndim}q", *value.shape))
            strides = put(struct.pack(f"<{value.ndim}q", *value.strides))
            at = put(struct.pack("<7q", 0, 0, data, value.ndim, shape, strides, 0))
            moved += [at + 16, at + 32, at + 40]
            begin = data if position == out else begin
            words.append(at)
        else:
            words.append(int(value))
    at = put(struct.pack(f"<{len(words)}q", *words))
    moved += [at + 8 * (1 + i) for i, value in enumerate(args) if isinstance(value, np.ndarray)]
    sent = [struct.pack("<q", len(images))]
    for image in images:
        memory = bytearray(image.start + len(image.data))
        memory[: len(image.code)], memory[image.start :] = image.code, image.data
        slots = [(_OUTSIDE.index(name), place) for name, place in image.slots.items()]
        sent += [struct.pack("<2q", len(memory), image.entry), bytes(memory), struct.pack("<q", len(slots))]
        sent += [struct.pack("<2q", *slot) for slot in slots]
    sent += [struct.pack("<q", len(block)), bytes(block), struct.pack(f"<{1 + len(moved)}q", len(moved), *moved)]
    sent += [struct.pack("<q", at), *(struct.pack("<q", at + 8 * (1 + position)) for position in addresses)]
    run = subprocess.run(
        [QEMU, "-cpu", "max", program], input=b"".join(sent), capture_output=True, check=True, timeout=60
    )
    assert struct.unpack_from("<i", run.stdout)[0] == 0
    array = args[out]
    return np.frombuffer(run.stdout, array.dtype, array.size, 4 + begin).reshape(array.shape)
