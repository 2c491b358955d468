"""Goldens as C or Verilog, and the report of the files written.

`tflq golden export`: goldens as C, and the report of the files written.

A golden as C99: a header with inputs and expected outputs, and a test that compares a firmware's outputs with them.

Arrays are named and sized as the test data of TensorFlow Lite Micro's examples are (g_NAME_data, g_NAME_data_size).
Floats are bit patterns, so that every bit arrives.

The report of `tflq golden export`: the files written, and how to build them.

Stages of one operator as files that `$readmemh` reads, with a header of parameters for Verilog and SystemVerilog.

Every file has one word per line in hexadecimal, two's complement. cocotb reads the same files.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np

from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.verification.stage_values import StageValues, TapOperands
from tflq.errors import LimitError, UnsupportedError
from tflq.face.report.blocks import FactLine, Headline, Next, Report, TableBlock
from tflq.face.report.wording import counted, runtime_text
from tflq.model.storage.arrays import raw
from tflq.texts import printable
from tflq.typing import Array

#: Bytes of values that a header may hold.
_MOST = 4 << 20
_PER_LINE = 16
_LONGEST = 100  # characters of a name


@dataclass(frozen=True, slots=True)
class Exported:
    """The two files."""

    header: str
    test: str


def c_name(text: str) -> str:
    """Return a C identifier for any text, which is the same for no other letters or digits.

    Letters lose their accents; each letter or digit that is not ASCII becomes its number. A name that is too long ends
    in its CRC-32.
    """
    plain = unicodedata.normalize("NFKD", text)
    spelt = "".join(f"u{ord(c):x}" if c.isalnum() and not c.isascii() else c for c in plain)
    name = re.sub(r"[^a-z0-9]+", "_", spelt.lower()).strip("_") or "golden"
    name = name if name[0].isalpha() else f"golden_{name}"
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}_{zlib.crc32(name.encode()):08x}"


def export_c(
    golden: Golden, name: str, model: bytes | memoryview | None = None, *, checksums: bool = False
) -> Exported:
    """Write a golden as C.

    Args:
        golden: Its samples are all written.
        name: The middle of every name in the files; see `c_name`.
        model: The model's file, where it goes into the header.
        checksums: Whether outputs are expected by CRC-32 and size instead of by value.

    Raises:
        LimitError: The values are too many for a header.
        UnsupportedError: Tensors of strings.

    Example:
        >>> golden = tflq.load_golden("golden/recorded/digits_mobilenet_int8.npz")
        >>> "digits_invoke" in tflq.export_c(golden, "digits").test
        True
    """
    samples = [_CSample(name, k, one) for k, one in enumerate(golden.plain().observations)]
    size = sum(a.nbytes for s in samples for a in (*s.inputs, *([] if checksums else s.outputs.values())))
    size += len(model or b"")
    if size > _MOST:
        raise LimitError(
            f"{size:,} bytes of values, more than {_MOST:,}: take fewer samples (--samples) or --checksums"
        )
    guard = f"TFLQ_{name.upper()}_H_"
    said = [f"model SHA-256 {golden.model_sha256 or 'unknown'}", f"recorded from {runtime_text(golden.runtime)}"]
    head = [f"/* Made by tflq golden export: {len(samples)} sample(s).", *(f"   {_comment(line)}" for line in said)]
    lines = [f"{head[0]}", *head[1:-1], f"{head[-1]} */", f"#ifndef {guard}", f"#define {guard}", ""]
    lines += ["#include <stddef.h>", "#include <stdint.h>", ""]
    if model is not None:
        lines += _array(f"g_{name}_model_data", np.frombuffer(model, np.uint8), aligned=True)
    for sample in samples:
        lines += sample.declared(checksums=checksums)
    lines += ["/* What the firmware under test provides: 0 where the model ran. */"]
    lines += [
        f"int {name}_invoke(const void *const inputs[], void *const outputs[]);",
        "",
        f"#endif  /* {guard} */",
        "",
    ]
    return Exported("\n".join(lines), "\n".join(_test(name, samples, checksums=checksums)))


class _CSample:
    """One sample's arrays with their names."""

    def __init__(self, name: str, number: int, observation: Observation) -> None:
        self.name = f"g_{name}_sample{number}"
        self.inputs = observation.inputs
        self.outputs = {i: value for i, value in enumerate(observation.outputs) if value is not None}
        if any(value.dtype.kind in "OSU" for value in (*self.inputs, *self.outputs.values())):
            raise UnsupportedError("export to C", reason="tensors of strings have no C type")
        for dtype in (value.dtype for value in (*self.inputs, *self.outputs.values())):
            if dtype.kind not in "biufc" or dtype.itemsize // (2 if dtype.kind == "c" else 1) not in (1, 2, 4, 8):
                raise UnsupportedError("export to C", reason=f"elements of type {dtype} have no C type")

    def declared(self, *, checksums: bool) -> Iterator[str]:
        for i, value in enumerate(self.inputs):
            yield from _array(f"{self.name}_input{i}_data", value)
        for i, value in self.outputs.items():
            if checksums:
                yield f"#define {self.name}_output{i}_crc32 UINT32_C(0x{zlib.crc32(raw(value)):08x})"
                yield f"#define {self.name}_output{i}_data_size ((size_t){value.nbytes})"
                yield ""
            else:
                yield from _array(f"{self.name}_output{i}_data", value)


def _comment(text: str) -> str:
    return printable(text).replace("*/", "* /")


def _type(dtype: np.dtype[Any]) -> str:
    """Return the integer type that has the same bits; complex numbers are two of half the size."""
    size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    return f"{'' if dtype.kind == 'i' else 'u'}int{8 * size}_t"


def _array(name: str, value: Array, *, aligned: bool = False) -> Iterator[str]:
    """Yield an array's definition, and its size in bytes as a macro."""
    kind = _type(value.dtype)
    numbers = np.frombuffer(raw(value), np.dtype(kind.removesuffix("_t")).newbyteorder("<"))
    yield f"/* {value.dtype.name} {list(value.shape)} */"
    before = "__attribute__((aligned(16))) " if aligned else ""
    yield f"static const {before}{kind} {name}[{max(1, numbers.size)}] = {{"
    words = [_literal(int(n), kind) for n in numbers.tolist()] or ["0"]
    for at in range(0, len(words), _PER_LINE):
        yield f"  {', '.join(words[at : at + _PER_LINE])},"
    yield "};"
    yield f"#define {name}_size ((size_t){value.nbytes})"
    yield ""


def _literal(number: int, kind: str) -> str:
    """Return a literal of that type; the lowest numbers of signed types have no literal of their own."""
    if kind.startswith("u"):
        return f"0x{number:x}u" if kind != "uint64_t" else f"UINT64_C(0x{number:x})"
    if kind == "int64_t":
        return "INT64_MIN" if number == -(2**63) else f"INT64_C({number})"
    return "INT32_MIN" if number == -(2**31) else str(number)


_CHECK_VALUES = """static int same(const char *what, const void *expected, const void *got, size_t size) {
  const unsigned char *a = (const unsigned char *)expected, *b = (const unsigned char *)got;
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) {
      printf("%s: byte %lu: expected 0x%02x, got 0x%02x\\n", what, (unsigned long)i, a[i], b[i]);
      return 0;
    }
  }
  return 1;
}
"""
_CHECK_SUMS = """static int same(const char *what, uint32_t expected, const void *got, size_t size) {
  const unsigned char *at = (const unsigned char *)got;
  uint32_t crc = ~UINT32_C(0);
  for (size_t i = 0; i < size; ++i) {
    crc ^= at[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
  }
  if (~crc == expected) return 1;
  printf("%s: CRC-32: expected 0x%08lx, got 0x%08lx\\n", what, (unsigned long)expected, (unsigned long)(uint32_t)~crc);
  return 0;
}
"""


def _test(name: str, samples: Sequence[_CSample], *, checksums: bool) -> Iterator[str]:
    """Yield the test, which counts the outputs that differ. It has a main() if TFLQ_MAIN is defined."""
    slots = max((max(s.outputs, default=-1) + 1 for s in samples), default=0)
    sizes = [max((s.outputs[i].nbytes for s in samples if i in s.outputs), default=1) for i in range(slots)]
    yield f"/* Holds {name}_invoke against {name}.h, to the bit. For a host: cc -DTFLQ_MAIN {name}_test.c invoke.c */"
    yield f'#include "{name}.h"'
    yield "\n#include <stdio.h>\n#include <string.h>\n"
    yield _CHECK_SUMS if checksums else _CHECK_VALUES
    for i, size in enumerate(sizes):
        yield f"static uint64_t output{i}[{-(-size // 8) or 1}];"
    yield f"\nint {name}_test(void) {{"
    yield f"  void *const outputs[] = {{{', '.join(f'output{i}' for i in range(slots)) or 'NULL'}}};"
    yield "  int failures = 0;"
    for sample in samples:
        yield from _tested(name, sample, checksums=checksums)
    yield "  return failures;\n}\n"
    yield "#ifdef TFLQ_MAIN\nint main(void) {"
    yield f"  int failures = {name}_test();"
    yield f'  printf("{name}: %s\\n", failures ? "FAILED" : "PASSED");'
    yield "  return failures != 0;\n}\n#endif\n"


def _tested(name: str, sample: _CSample, *, checksums: bool) -> Iterable[str]:
    inputs = ", ".join(f"{sample.name}_input{i}_data" for i in range(len(sample.inputs)))
    what = sample.name.removeprefix("g_")
    yield "  {"
    yield f"    const void *const inputs[] = {{{inputs or 'NULL'}}};"
    for i in sample.outputs:
        yield f"    memset(output{i}, 0xa5, sizeof output{i});"
    yield f"    if ({name}_invoke(inputs, outputs)) {{"
    yield f'      printf("{what}: did not run\\n");'
    yield "      ++failures;\n    } else {"
    for i in sample.outputs:
        expected = f"{sample.name}_output{i}_{'crc32' if checksums else 'data'}"
        size = f"{sample.name}_output{i}_data_size"
        yield f'      failures += !same("{what} output{i}", {expected}, output{i}, {size});'
    yield "    }\n  }"


def export_report(paths: Sequence[str]) -> Report:
    """Build the report of an exported header and test."""
    return Report("export", [Headline(" ".join(paths), ""), Next([f"cc -DTFLQ_MAIN {quote(paths[1])} invoke.c"])])


def verilog_report(found: StageValues, paths: Sequence[str]) -> Report:
    """Build the report of an operator's stages: the cases of rounding that they cover, and those that they do not."""
    rows = [(case, f"{count:,}") for case, count in found.coverage.items()]
    none = [case for case, count in found.coverage.items() if not count]
    source = "codes as a runtime recorded them" if found.recorded else "no recording has these codes: computed"
    missing = f"not covered: {', '.join(none)}" if none else "every case is covered"
    text = f"{counted(found.accumulator.size, 'element')} of {found.op}, stage {found.stage}; {source}"
    return Report(
        "export",
        [
            TableBlock([("case", "<"), ("elements", ">")], rows),
            FactLine(missing),
            FactLine(text),
            Headline(" ".join(paths), ""),
        ],
    )


#: Bits of a word of each file.
_WIDTHS: Mapping[str, int] = {
    "mantissa": 32,
    "shift": 8,
    "accumulator": 32,
    "shifted": 32,
    "high": 32,
    "scaled": 32,
    "codes": 32,
    "rows": 16,
    "weights": 16,
    "bias": 32,
}


def verilog_files(found: StageValues, operands: TapOperands | None, name: str) -> dict[str, str]:
    """Return the texts of all files by name: NAME_STAGE.hex for each stage, NAME.vh with the parameters."""
    words: dict[str, Array] = {
        key: getattr(found, key) for key in ("mantissa", "shift", "accumulator", "shifted", "high", "scaled", "codes")
    }
    if operands is not None:
        words |= {"rows": operands.rows, "weights": operands.weights, "bias": operands.bias}
    files = {f"{name}_{key}.hex": _hexadecimal(values, _WIDTHS[key]) for key, values in words.items() if values.size}
    return {**files, f"{name}.vh": "".join(f"{line}\n" for line in _header(found, operands, name))}


def _hexadecimal(values: Array, bits: int) -> str:
    """Return one word per line."""
    unsigned = values.reshape(-1).astype(np.int64) & ((1 << bits) - 1)
    return "".join(f"{int(word):0{bits // 4}x}\n" for word in unsigned)


def _header(found: StageValues, operands: TapOperands | None, name: str) -> Iterator[str]:
    """Yield the lines of the parameters."""
    label = name.upper()
    source = "a runtime recorded the codes" if found.recorded else "no recording has these codes: tflq computed them"
    yield f"// {found.op}, stage {found.stage}; {source}."
    numbers = {
        "COUNT": found.accumulator.size,
        "CHANNELS": len(found.mantissa),
        "ZERO_POINT": found.zero_point,
        "LOW": found.clamp.low,
        "HIGH": found.clamp.high,
    }
    if operands is not None:
        numbers |= {"ROWS": len(operands.rows), "TAPS": operands.rows.shape[1]}
    for key, value in numbers.items():
        yield f"localparam integer {label}_{key} = {value};"
