"""Stages of one operator as files that `$readmemh` reads, with a header of parameters for Verilog and SystemVerilog.

Every file has one word per line in hexadecimal, two's complement. cocotb reads the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tflq.comparison.verification.stage_values import Operands, StageValues
from tflq.typing import Array

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


def verilog_files(found: StageValues, operands: Operands | None, name: str) -> dict[str, str]:
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


def _header(found: StageValues, operands: Operands | None, name: str) -> Iterator[str]:
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
