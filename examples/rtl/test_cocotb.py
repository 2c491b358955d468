"""Compare requantize.v and mac_array.v with exported vectors under cocotb 2, for example in Icarus Verilog.

    python examples/rtl/test_cocotb.py vectors

`vectors` is the folder of `tflq golden export --verilog`; see README.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cocotb
from cocotb.triggers import Timer
from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent


def words(name: str, bits: int) -> list[int]:
    """Return a file's words as signed numbers."""
    lines = (Path(os.environ["VECTORS"]) / f"{name}.hex").read_text().split()
    return [int(line, 16) - (int(line, 16) >> bits - 1 << bits) for line in lines]


def parameter(name: str, key: str) -> int:
    """Return a parameter of a header."""
    lines = (Path(os.environ["VECTORS"]) / f"{name}.vh").read_text().splitlines()
    return next(int(line.split("=")[1].strip(" ;")) for line in lines if f"{name.upper()}_{key} " in line)


@cocotb.test(skip=os.environ.get("DESIGN") != "requantize")
async def every_stage(dut) -> None:
    """Compare every stage of every element."""
    name = "requantizer"
    dut.zero_point.value, dut.low.value, dut.high.value = (parameter(name, k) for k in ("ZERO_POINT", "LOW", "HIGH"))
    mantissas, shifts = words(f"{name}_mantissa", 32), words(f"{name}_shift", 8)
    stages = {"shifted": "shifted", "high_word": "high", "scaled": "scaled", "code": "codes"}
    expected = {port: words(f"{name}_{key}", 32) for port, key in stages.items()}
    for i, accumulator in enumerate(words(f"{name}_accumulator", 32)):
        dut.accumulator.value = accumulator
        dut.mantissa.value, dut.shift.value = mantissas[i % len(mantissas)], shifts[i % len(shifts)]
        await Timer(1, "step")
        for port, values in expected.items():
            assert getattr(dut, port).value.to_signed() == values[i], f"element {i}: {port}"


@cocotb.test(skip=os.environ.get("DESIGN") != "mac_array")
async def every_row(dut) -> None:
    """Send every row through the array."""
    name = "pointwise"
    rows, weights, bias = words(f"{name}_rows", 16), words(f"{name}_weights", 16), words(f"{name}_bias", 32)
    taps, count, expected = parameter(name, "TAPS"), len(bias), words(f"{name}_accumulator", 32)
    dut.bias.value = sum((value & 0xFFFFFFFF) << 32 * c for c, value in enumerate(bias))
    for r in range(len(rows) // taps):
        for t in range(-1, taps):
            dut.start.value, dut.value.value = int(t < 0), rows[r * taps + t] if t >= 0 else 0
            column = [weights[c * taps + t] & 0xFFFF if t >= 0 else 0 for c in range(count)]
            dut.weights.value = sum(value << 16 * c for c, value in enumerate(column))
            for level in (1, 0):
                dut.clock.value = level
                await Timer(1, "step")
        got = int(dut.accumulators.value)
        for c in range(count):
            value = got >> 32 * c & 0xFFFFFFFF
            assert value - (value >> 31 << 32) == expected[r * count + c], f"row {r}, channel {c}"


def main(vectors: str) -> None:
    """Build and test both designs."""
    for design in ("requantize", "mac_array"):
        runner = get_runner(os.environ.get("SIM", "icarus"))
        folder = (Path("sim_build") / design).resolve()
        runner.build(sources=[HERE / f"{design}.v"], hdl_toplevel=design, build_dir=folder, always=True)
        environment = {"VECTORS": str(Path(vectors).resolve()), "DESIGN": design, "PYTHONPATH": str(HERE)}
        results = runner.test(
            test_module="test_cocotb",
            hdl_toplevel=design,
            build_dir=folder,
            test_dir=folder,
            results_xml=str(folder / "results.xml"),
            extra_env=environment,
        )
        failed = results.read_text().count("<failure") + results.read_text().count("<error")
        print(f"{design}: {'FAIL' if failed else 'PASS'}")
        if failed:
            sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
