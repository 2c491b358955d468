"""Calls of machine code: every kind of argument and result, exceptions, code of other processors, damaged code."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from support.tiles import has_arm_tools
from tflq.engine.jit import code_store, images, native, processors
from tflq.engine.jit import images as objects
from tflq.engine.jit.building import build
from tflq.engine.jit.compiled import Int, Real, compiled, compiling_is_off, writes
from tflq.engine.jit.images import Image, MachineCode, NotLinkable, link, unpacked
from tflq.engine.jit.native import MachineCall, UnknownArgument, add_types, pack, results
from tflq.engine.jit.processors import NotBuildable
from tflq.engine.numerics.codes import ZeroPoint
from tflq.typing import Array

pytestmark = pytest.mark.skipif(compiling_is_off(), reason="there is no machine code where the source runs as Python")


class Size(NamedTuple):
    height: int
    width: int


class Named(NamedTuple):
    size: Size
    half: float


@compiled
def _sum(x: Array, row: Int, half: Real, narrow: Any, negative: bool, named: Named, nothing: Any, out: Array) -> Int:
    total = np.float64(0)
    for c in range(x.shape[1]):
        total += x[row, c] * half + narrow
    out[0] = -total if negative else total
    out[1] = named.size.height * 100 + named.size.width + named.half
    return np.int64(total)


@compiled
def _several(a: Int, b: Real) -> Any:
    return a + 1, b * 0.5, a > 2


@compiled
def _single(a: Any) -> Any:
    return a


@compiled
def _scratch(x: Array, out: Array) -> None:
    block = np.empty((4, x.size), np.int32)
    flat = block.reshape(-1)
    for i in range(flat.size):
        flat[i] = x[i % x.size]
    out[:] = block[3]


@compiled
def _checked(x: Array) -> Int:
    for i in range(x.size):
        if x[i] < 0:
            raise ValueError("negative")
    return x.size


@compiled
def _with_default(a: Int, b: Int = 5) -> Int:
    return a * 10 + b


@compiled
def _array_of(n: Int) -> Array:
    return np.zeros(n)


def arguments(x: Array, out: Array) -> tuple[Any, ...]:
    return x, 1, 0.25, np.float32(0.5), True, Named(Size(3, 4), 0.5), None, out


@pytest.mark.parametrize("x", [np.arange(12.0).reshape(3, 4), np.arange(24).reshape(4, 6)[:3, ::2].T[:3]])
def test_every_kind_of_argument(x: Array) -> None:
    out, again = np.zeros(2), np.zeros(2)
    assert _sum(*arguments(x, out)) == _sum.python(*arguments(x, again))
    assert out.tolist() == again.tolist()


@pytest.mark.parametrize("a", [0, -1, 2**62, -(2**62)])
def test_results_of_several_numbers(a: int) -> None:
    assert _several(a, 3.0) == (a + 1, 1.5, a > 2)
    assert [type(part) for part in _several(a, 3.0)] == [int, float, bool]


@pytest.mark.parametrize(
    "value",
    [True, 7, -7, 2**63 + 5, 0.1, np.float32(0.1), np.int8(-3), np.uint8(200), np.uint64(2**64 - 1), np.int16(-300)],
)
def test_a_number_comes_back(value: Any) -> None:
    assert _single(value) == value
    assert add_types((value,)) in ("b", "i8", "u8", "f8", "f4", "i1", "u1", "i2")


@pytest.mark.slow
def test_memory_of_its_own() -> None:
    x, out = np.arange(5, dtype=np.int32), np.zeros(5, np.int32)
    _scratch(x, out)
    assert out.tolist() == x.tolist()
    with pytest.raises(ValueError, match="shape"):  # as numba says it
        _scratch(x, np.zeros(4, np.int32))


def test_exceptions_are_raised() -> None:
    x = np.arange(3)
    call = _checked.bound(x)
    assert _checked(x) == call() == 3
    x[1] = -1
    for make in (lambda: _checked(x), call):
        with pytest.raises(ValueError, match="negative"):
            make()


def test_names_and_defaults() -> None:
    assert _with_default(1) == 15
    assert _with_default(1, 2) == _with_default(1, b=2) == _with_default(b=2, a=1) == 12
    with pytest.raises(TypeError):
        _with_default()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        _with_default(1, 2, b=3)  # type: ignore[misc]


def test_what_only_numba_can_pass_or_return() -> None:
    with pytest.raises(UnknownArgument):
        add_types(([1, 2],))
    assert _single("text") == "text"
    assert _array_of(3).tolist() == [0, 0, 0]
    with pytest.raises(NotBuildable, match="result"):
        build(_array_of.linkable(), (3,))


def test_a_bound_call_sees_its_arrays() -> None:
    x, out = np.zeros(5, np.int32), np.zeros(5, np.int32)
    call = _scratch.bound(x, out)
    assert isinstance(call, MachineCall)
    for value in (3, -4):
        x[:] = value
        call()
        assert out.tolist() == [value] * 5


def test_words_and_types() -> None:
    x = np.zeros((2, 3), np.float32)
    args = (x, 1.0, np.float32(1), True, (2, -3), None, 2**64 - 1)
    assert pack(args)[1] == [id(x), 0x3FF0000000000000, 0x3F800000, 1, 2, -3, 0, -1]
    assert pack((2**63,))[0] != pack((2**63 - 1,))[0]
    assert pack((x,))[0] != pack((x.T,))[0]
    readonly, transposed = x.copy(), x.T
    readonly.flags.writeable = False
    assert add_types((x, readonly, transposed, x[:, ::2])) == "<f4:2C,<f4:2Cr,<f4:2F,<f4:2A"
    assert add_types(((1, 2.0), Size(1, 2))).endswith("Size(i8,i8)")
    assert results("(u1,i2,f4)").unpack(np.array([-1, -300, 0x3F800000]).tobytes()) == (255, -300, 1.0)
    assert results("n").size == results("()").size == 0


@pytest.fixture(scope="module")
def code() -> MachineCode:
    return build(_several.linkable(), (1, 1.0))


def test_code_is_what_was_packed(code: MachineCode) -> None:
    assert unpacked(code.packed()) == code
    assert unpacked(MachineCode(b"object", "n").packed()) == MachineCode(b"object", "n")


def test_damaged_code_is_refused(code: MachineCode) -> None:
    whole = code.packed()
    for damaged in (
        b"",
        whole[:3],
        b"tfq0" + whole[4:],
        whole[:4] + b"\xff\xff\xff\xff",
        b"tfq2" + struct.pack("<I", 2) + b"[]",
        whole[:-1],
    ):
        with pytest.raises(ValueError):
            unpacked(damaged)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"MZ" * 99, b"\x7fELF\x01\x01" + bytes(99)])
def test_what_is_no_object_file(content: bytes) -> None:
    with pytest.raises((NotLinkable, struct.error)):
        link(content, "f")


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(OSError, match="no_such"):
        images.load(Image(bytes(16), bytes(8), 0, {"no_such": 1 << 16}, ()))


def test_llvm_loads_object_files_where_images_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflq.engine.jit.processors.loads_images", lambda: False)
    made = build(_several.linkable(), (1, 1.0))
    assert isinstance(made.body, bytes)
    entry = native.Entry(unpacked(made.packed()), False)
    memory = entry.words_of(pack((4, 3.0))[1])
    assert entry.call(memory) == 0
    assert entry.result.unpack_from(memory, 24) == (5, 1.5, True)


@pytest.mark.slow
def test_numba_is_not_imported_for_code_that_is_there(tmp_path: Path) -> None:
    program = (
        "import sys; from tflq.engine.numerics.rounding import wrap as f; print(f(300, 8), 'numba' in sys.modules)"
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    said = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment).stdout.split()
        for _ in range(2)
    ]
    assert [each[-1] for each in said] == ["True", "False"] or said == [["44", "False"]] * 2  # shipped
    assert said[0][0] == said[1][0]


# --- levels of processors ---------------------------------------------------------------------------------------------


def test_shipped_code_is_found_by_source_and_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: MachineCode
) -> None:
    own = processors.levels()[0]
    name = code_store.name_of("f", "origin", "i8")
    (tmp_path / f"{own.name}.code").write_bytes(code_store.pack({name: code.packed(), "g": b"x"}))
    monkeypatch.setattr(code_store, "folder", lambda: tmp_path)
    code_store._packs.cache_clear()
    try:
        assert code_store.is_here()
        assert code_store.read(name) == code.packed()
        assert code_store.read("g") == b"x"
        assert code_store.read(code_store.name_of("f", "origin", "f8")) is None
        for damaged in (b"", b"garbage" * 9, code_store.pack({"g": b"x"})[:20], code_store.pack({"g": b"xy"})[:-1]):
            (tmp_path / f"{own.name}.code").write_bytes(damaged)
            code_store._packs.cache_clear()
            assert not code_store.is_here()
        whole = bytearray(code_store.pack({"g": b"x", "h": b"y"}))
        whole[-1] ^= 1
        (tmp_path / f"{own.name}.code").write_bytes(whole)
        code_store._packs.cache_clear()
        assert (code_store.read("g"), code_store.read("h")) == (b"x", None)
        with pytest.raises(ValueError, match="damaged: h"):
            code_store.shipped_unpacked(bytes(whole))
    finally:
        code_store._packs.cache_clear()


@pytest.mark.parametrize("settings", [{"NUMBA_CPU_FEATURES": ""}, {"NUMBA_CPU_NAME": "generic"}])
def test_no_features_are_no_vector_code(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba compiles for no features then: LLVM ends the process if code asks for an instruction of the host."""
    monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert processors.features() == frozenset()


def test_settings_of_numba_precede_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+sse2,+avx2,-avx512f,+fma")
    assert processors.features() == {"sse2", "avx2", "fma"}
    monkeypatch.setenv("NUMBA_ENABLE_AVX", "0")
    assert processors.features() == {"sse2"}
    assert processors.levels() == ()


def test_linux_and_llvm_find_the_same_features() -> None:
    from numba.core.codegen import get_host_cpu_features

    named = frozenset().union(*(level.features for level in processors.LEVELS if level.machine == processors.machine()))
    assert processors._own() & named == processors._split(get_host_cpu_features()) & named


RUNNER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int n, char **arg) { /* image, size, entry, words, number of words, slots: name offset ... */
  long size = atol(arg[2]), count = atol(arg[5]);
  char *memory = mmap(0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int64_t words[64];
  FILE *file = fopen(arg[1], "rb");
  if (fread(memory, 1, size, file) != (size_t)size) return 3;
  fclose(file);
  file = fopen(arg[4], "rb");
  if (fread(words, 8, count, file) != (size_t)count) return 4;
  for (int i = 6; i + 1 < n; i += 2) {
    void *f = !strcmp(arg[i], "malloc") ? (void *)malloc : !strcmp(arg[i], "free") ? (void *)free :
      !strcmp(arg[i], "memcpy") ? (void *)memcpy : !strcmp(arg[i], "memset") ? (void *)memset : 0;
    if (!f) return 5;
    memcpy(memory + atol(arg[i + 1]), &f, 8);
  }
  __builtin___clear_cache(memory, memory + size);
  int32_t data[16];
  for (int i = 0; i < 16; i++) data[i] = i * i - 7;
  int64_t shape = 8, stride = 4;
  int64_t x[6] = {0, 0, (int64_t)data, 1, (int64_t)&shape, (int64_t)&stride}; /* arrays as NumPy lays them out */
  int64_t y[6] = {0, 0, (int64_t)(data + 8), 1, (int64_t)&shape, (int64_t)&stride};
  for (int i = 1; i < count; i++) if (words[i] == 0x7777) words[i] = (int64_t)x;
    else if (words[i] == 0x8888) words[i] = (int64_t)y;
  int status = ((int (*)(int64_t *))(memory + atol(arg[3])))(words);
  printf("%d", status);
  for (int i = 0; i < 16; i++) printf(" %d", data[i]);
  printf(" %ld\n", (long)words[count - 1]);
}
"""


@pytest.mark.skipif(not has_arm_tools(), reason="needs qemu-aarch64 and aarch64-linux-gnu-gcc")
def test_images_of_aarch64_compute_under_emulation(tmp_path: Path) -> None:
    level = next(level for level in processors.LEVELS if level.name == "aarch64")
    data = (np.arange(16) ** 2 - 7).astype(np.int32)
    x, out = data[:8], data[8:]
    (tmp_path / "run.c").write_text(RUNNER)
    command = ["aarch64-linux-gnu-gcc", "-static", "-O1", "-o", str(tmp_path / "run"), str(tmp_path / "run.c")]
    subprocess.run(command, check=True)

    def ran(function: Any, args: tuple[Any, ...], places: int) -> list[int]:
        body = build(function.linkable(), args, level).body
        assert isinstance(body, Image)
        assert not body.moved
        memory = bytearray(body.start + len(body.data))
        memory[: len(body.code)], memory[body.start :] = body.code, body.data
        (tmp_path / "image").write_bytes(memory)
        addresses = {id(x): 0x7777, id(out): 0x8888}
        values = [0, *(addresses.get(word, word) for word in pack(args)[1]), *[0] * places]
        (tmp_path / "words").write_bytes(np.array(values, np.int64).tobytes())
        rest = [str(len(memory)), str(body.entry), str(tmp_path / "words"), str(len(values))]
        slots = [word for name, at in body.slots.items() for word in (name, str(at))]
        said = subprocess.run(
            ["qemu-aarch64", str(tmp_path / "run"), str(tmp_path / "image"), *rest, *slots],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return [int(word) for word in said.stdout.split()]

    assert ran(_filled, (x, out), 0)[:17] == [0, *x, *(3 * x + 4)]
    assert ran(_with_default, (7, 8), 1)[-1] == 78


@compiled
def _filled(x: Array, out: Array) -> None:
    block = np.empty((2, x.size), np.int32)
    flat = block.reshape(-1)
    for i in range(flat.size):
        flat[i] = 3 * x[i % x.size] + 4
    for i in range(out.size):
        out[i] = block[1, i]


def test_every_level_is_better_than_the_next() -> None:
    for machine in ("x86_64", "aarch64"):
        own = [level.features for level in processors.LEVELS if level.machine == machine]
        assert all(better > worse for better, worse in itertools.pairwise(own))


def test_without_memory_for_code_numba_computes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(body: object) -> int:
        raise OSError("not permitted")

    monkeypatch.setattr(native, "load", refuse)
    fresh = compiled(_with_default.python)
    assert [fresh(3), fresh(4, 6)] == [35, 46]
    assert "cannot be loaded: not permitted" in caplog.text


# --- arrays that are only read ----------------------------------------------------------------------------------------


@writes("out")
@compiled
def _doubled(x: Array, out: Array) -> None:
    for i in range(out.size):
        out[i] = 2 * x[i]


@writes("out")
@compiled
def _summed(parts: Any, out: Array) -> None:
    for i in range(out.size):
        out[i] = parts[0][i] + parts[1][i]


@writes("x")
@compiled
def _misdeclared(x: Array, out: Array) -> None:
    for i in range(out.size):
        out[i] = 2 * x[i]


def test_one_body_reads_arrays_that_can_be_written_to_or_not() -> None:
    x, out = np.arange(4.0), np.zeros(4)
    for is_writable in (True, False):
        x.flags.writeable, out[:] = is_writable, 0
        _doubled(x, out)
        assert out.tolist() == [0, 2, 4, 6]
        _summed((x, np.arange(4)), out)
        assert out.tolist() == [0, 2, 4, 6]
    calls: list[Any] = [_doubled.resolve(), _summed.resolve()]
    assert [list(call._entries) for call in calls] == [["<f8:1C,<f8:1C"], ["(<f8:1C,<i8:1C),<f8:1C"]]


def test_a_function_that_writes_to_what_it_declares_as_read_is_refused() -> None:
    from numba.core.errors import TypingError

    x, out = np.arange(4.0), np.zeros(4)
    for function in (_doubled, _misdeclared):
        assert function.digest() != compiled(function.python).digest()
    with pytest.raises(TypingError):
        _misdeclared(x, out)
    out.flags.writeable = False
    with pytest.raises(TypingError):
        _doubled(x, out)
    assert out.tolist() == [0, 0, 0, 0]
    assert "<f8:1Cr" in add_types((out,))
    assert add_types((out,), (0,)) == "<f8:1C"


def test_only_parameters_can_be_declared() -> None:
    with pytest.raises(ValueError, match="has no parameter a, y"):
        writes("out", "y", "a")(compiled(_doubled.python))


@compiled
def _counted(x: Array, limit: int) -> None:
    """Add 1, then refuse. The caller guarantees: `x` has an element."""
    x[0] += 1
    if x[0] > limit:
        raise ValueError("beyond the limit")


def test_what_a_failed_call_wrote_is_written_once() -> None:
    x = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="beyond"):
        _counted(x, 0)
    assert x.tolist() == [1]


def test_a_subclass_of_int_is_passed_as_an_int() -> None:
    assert add_types((ZeroPoint(3), ZeroPoint(2**63))) == "i8,u8"
    assert pack((ZeroPoint(3),))[1] == [3]
    assert pack((ZeroPoint(3),))[0] != pack((ZeroPoint(2**63),))[0]


@pytest.mark.parametrize(("distance", "bits"), [(2**31, 32), (-(2**27) - 4, 28), (2**20, 21)])
def test_distances_beyond_their_field_cannot_be_linked(distance: int, bits: int) -> None:
    assert objects._fitting(-(1 << bits - 1), bits) == -(1 << bits - 1)
    with pytest.raises(NotLinkable, match="does not fit"):
        objects._fitting(distance, bits)
