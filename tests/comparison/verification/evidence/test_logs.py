"""Tensors in the text that boards print: formats of real loggers, noise, damage, and what may be two tensors."""

from __future__ import annotations

import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from tflq.comparison.evidence.dumps import load_dumps
from tflq.comparison.evidence.logs import blocks_of
from tflq.errors import InputError, InputWarning, LimitError
from tflq.model.ir import view

PATH = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
MODEL = tflq.load(PATH)
GRAPH = view(MODEL)
(INPUT,), (OUTPUT,) = GRAPH.inputs, GRAPH.outputs
RNG = np.random.default_rng(5)
FED = RNG.integers(-128, 128, 64).astype(np.int8)
GOT = np.array([-128, -128, 127, -3, 0, 5, -128, 12, -99, 1], np.int8)


def decimal(values: np.ndarray, by: str = ", ") -> str:
    return by.join(map(str, values.tolist()))


def pairs(values: np.ndarray, by: str = " ") -> list[str]:
    """Return lines of 16 bytes in hexadecimal."""
    data = values.tobytes()
    return [by.join(f"{byte:02x}" for byte in data[k : k + 16]) for k in range(0, len(data), 16)]


def ascii_of(line: str) -> str:
    return "".join(chr(b) if 32 <= b < 127 else "." for b in bytes.fromhex(line.replace(" ", "")))


def lines(prefix: Callable[[int], str], *parts: str) -> str:
    return "".join(f"{prefix(k)}{part}\r\n" for k, part in enumerate(parts))


def zephyr(k: int) -> str:
    return f"[00:00:0{k % 10}.253,{k:03d}] <inf> tflm: "


def espressif(k: int) -> str:
    return f"\x1b[0;32mI ({1200 + k}) main_task: "


HEX = [f"{p}" for p in pairs(FED)]
#: How the input and the output appear in logs of boards.
LOGS: dict[str, str] = {
    "printf": f"booting...\ninput: {decimal(FED)}\noutput: {decimal(GOT)}\ndone in 120 ms\n",
    "printf in brackets": f"input = [{decimal(FED)}]\noutput = [{decimal(GOT)}]\n",
    "wrapped": "input:\n"
    + "\n".join(decimal(FED[k : k + 7]) for k in range(0, 64, 7))
    + f"\noutput:\n{decimal(GOT)}\n",
    "element by element": "".join(f"input[{k}] = {v}\n" for k, v in enumerate(FED))
    + "".join(f"output[{k}] = {v}\n" for k, v in enumerate(GOT)),
    "hex with 0x": "input: "
    + " ".join(f"0x{b:02X}" for b in FED.tobytes())
    + "\noutput: "
    + ",".join(f"0x{b:02X}" for b in GOT.tobytes()),
    "zephyr": lines(zephyr, f"input: {decimal(FED, ' ')}", f"output: {decimal(GOT, ' ')}"),
    "zephyr LOG_HEXDUMP": lines(zephyr, "input")
    + "".join(f"{'':38}{line} |{ascii_of(line)}\n" for line in HEX)
    + lines(zephyr, "output")
    + f"{'':38}{pairs(GOT)[0]}                    |..........\n",
    "ESP-IDF": lines(espressif, f"Input: {decimal(FED)}\x1b[0m", "Free heap: 123456", f"Output: {decimal(GOT)}\x1b[0m"),
    "ESP_LOG_BUFFER_HEX": lines(espressif, "input", *HEX, "output", *pairs(GOT)),
    "ESP_LOG_BUFFER_HEXDUMP": lines(
        espressif,
        "input",
        *(f"0x3ffb42{16 * k:02x}   {line}  |{ascii_of(line)}|" for k, line in enumerate(HEX)),
        "output",
        f"0x3ffb5280   {pairs(GOT)[0]}                    |..........|",
    ),
    "Arduino": "".join(
        f"12:34:56.{700 + k} -> {part}\n" for k, part in enumerate(("Input:", decimal(FED), "Output:", decimal(GOT)))
    ),
    "mbed": lines(lambda k: "[INFO][main]: ", f"input {decimal(FED, ' ')}", f"output {decimal(GOT, ' ')}"),
    "semihosting": f"semihosting: input {{{decimal(FED)}}}\nsemihosting: output {{{decimal(GOT)}}}\n",
    "Segger RTT": lines(lambda k: "00> ", f"Tensor {INPUT}: {decimal(FED)}", f"Tensor {OUTPUT}: {decimal(GOT)}"),
    "nRF": lines(lambda k: f"[00:00:0{k}.412,109] <info> app: ", f"input: {decimal(FED)}", f"output: {decimal(GOT)}"),
    "syslog": lines(
        lambda k: "Nov 27 21:55:08 board infer[123]: ", f"input: {decimal(FED)}", f"output: {decimal(GOT)}"
    ),
    "date": lines(
        lambda k: f"2026-11-27 21:55:0{k},123 - INFO - ", f"input: {decimal(FED)}", f"output: {decimal(GOT)}"
    ),
    "kernel": lines(lambda k: f"[   12.34567{k}] ", f"input: {decimal(FED)}", f"output: {decimal(GOT)}"),
    "gdb print": f"(gdb) p input\n$1 = {{{decimal(FED)}}}\n(gdb) p output\n"
    f"$2 = {{-128 <repeats 2 times>, {decimal(GOT[2:])}}}\n",
    "gdb x/16xb": "input\n"
    + "".join(
        f"0x2000{k:04x} <g_in+{k}>:\t" + "\t".join(f"0x{b:02x}" for b in FED.tobytes()[k : k + 8]) + "\n"
        for k in range(0, 64, 8)
    )
    + f"output: {decimal(GOT)}\n",
    "gdb x/4xw": "input\n"
    + "".join(
        f"0x2000{k:04x}:\t"
        + "\t".join(f"0x{int(w):08x}" for w in np.frombuffer(FED.tobytes()[k : k + 16], "<u4"))
        + "\n"
        for k in range(0, 64, 16)
    )
    + f"output: {decimal(GOT)}\n",
    "xxd": "input\n"
    + "".join(
        f"{16 * k:08x}: {' '.join(line.replace(' ', '')[i : i + 4] for i in range(0, 32, 4))}  {ascii_of(line)}\n"
        for k, line in enumerate(HEX)
    )
    + f"output: {decimal(GOT)}\n",
    "one line of hex": f"input: {FED.tobytes().hex()}\noutput: {GOT.tobytes().hex()}\n",
    "by name": f"{GRAPH.tensors[INPUT].name}: {decimal(FED)}\n{GRAPH.tensors[OUTPUT].name}: {decimal(GOT)}\n",
    "by number": f"t{INPUT}: {decimal(FED)}\nt{OUTPUT}: {decimal(GOT)}\n",
    "JSON": f'{{"input": [{decimal(FED)}],\n "output": [{decimal(GOT)}]}}\n',
    "unsigned": f"input: {decimal(FED.view(np.uint8))}\noutput: {decimal(GOT.view(np.uint8))}\n",
}


def words(values: np.ndarray, size: int) -> list[str]:
    """Return little-endian words of memory in hexadecimal, without 0x."""
    return [f"{int(word):0{2 * size}x}" for word in np.frombuffer(values.tobytes(), f"<u{size}")]


def signed(values: np.ndarray, form: str) -> str:
    """Return int8 as `%x` prints them: with the sign of an int."""
    return " ".join(form.format(int(value) & 0xFFFFFFFF) for value in values)


def escaped(values: np.ndarray, form: str) -> str:
    return "".join(form.format(byte) for byte in values.tobytes())


def both(first: str, second: str, label: str = "{}: ") -> str:
    return f"{label.format('input')}{first}\n{label.format('output')}{second}\n"


ESP32 = "[  1234][I][main.cpp:42] loop(): "
JLINK = [f"2000{16 * k:04X} = {line.upper()}" for k, line in enumerate(HEX)]
HALF = [f"{line[:23]}  {line[24:]}" for line in HEX]
LOGS |= {
    "Arduino on ESP32": lines(lambda k: ESP32, "input", *HEX, "output", *pairs(GOT)),
    "ESP-IDF with lengths": lines(espressif, "input len=64", *HEX, "output len=10", *pairs(GOT)),
    "ESP-IDF with other logs between": lines(
        espressif, "input", *HEX[:2], "rssi: -67", *HEX[2:], "output", *pairs(GOT)
    ),
    "hex without zeros": both(signed(FED.view(np.uint8), "{:X}"), signed(GOT.view(np.uint8), "{:X}")),
    "hex with the sign of an int": both(signed(FED, "{:02x}"), signed(GOT, "{:02x}")),
    "0x with the sign of an int": both(signed(FED, "0x{:x}"), signed(GOT, "0x{:x}")),
    "columns": both(decimal(FED, " | "), decimal(GOT, " | "), "{} | "),
    "CSV": both(decimal(FED, ","), decimal(GOT, ","), "{},"),
    "indices in brackets": "input:\n"
    + "".join(f"[{k:3}] {v:4}\n" for k, v in enumerate(FED))
    + "output:\n"
    + "".join(f"[{k:3}] {v:4}\n" for k, v in enumerate(GOT)),
    "numbered classes": f"input: {decimal(FED)}\noutput:\n"
    + "".join(f"  digit_{k}: {(int(v) + 128) / 256:.8f}\n" for k, v in enumerate(GOT)),
    "Edge Impulse": f"input: {decimal(FED)}\nPredictions (DSP: 10 ms., Classification: 3 ms., Anomaly: 0 ms.): \n"
    + "".join(f"    {chr(97 + k)}x: {(int(v) + 128) / 256:.5f}\n" for k, v in enumerate(GOT)),
    "a remark behind": both(f"{decimal(FED)} (scale 0.5, zp -128)", f"{decimal(GOT)} (scale 1)"),
    "NumPy": both(f"array({FED.tolist()}, dtype=int8)", f"array({GOT.tolist()}, dtype=int8)"),
    "pyserial": f"b'input: {decimal(FED)}\\r\\n'\nb'output: {decimal(GOT)}\\r\\n'\n",
    "joined by dashes": both(FED.tobytes().hex("-"), GOT.tobytes().hex("-")),
    "joined by colons": both(FED.tobytes().hex(":"), GOT.tobytes().hex(":")),
    "escaped": both(escaped(FED, "\\x{:02x}"), escaped(GOT, "\\x{:02x}")),
    "bytes of Python": both(f"b'{escaped(FED, chr(92) + 'x{:02x}')}'", f"b'{escaped(GOT, chr(92) + 'x{:02x}')}'"),
    "a list of Rust": "".join(
        f"[src/main.rs:1] {name} = [\n" + "".join(f"    {v},\n" for v in values) + "]\n"
        for name, values in (("input", FED), ("output", GOT))
    ),
    "gdb on a string": f'(gdb) p input\n$1 = "{escaped(FED, chr(92) + "{:03o}")}"\n(gdb) p output\n'
    + "$2 = '\\200' <repeats 2 times>, "
    + f'"{escaped(GOT[2:], chr(92) + "{:03o}")}"\n',
    "gdb on characters": both(*(", ".join(f"{v} '\\{int(v) & 255:o}'" for v in x) for x in (FED, GOT)), "{} = "),
    "IAR": "".join(
        f"{name}\t<array>\t0x20000000\tint8_t[{values.size}]\n"
        + "".join(f"  [{k}]\t{v}\t0x{0x20000000 + k:08x}\tint8_t\n" for k, v in enumerate(values))
        for name, values in (("input", FED), ("output", GOT))
    ),
    "lldb": "".join(
        f"(lldb) p {name}\n(int8_t[{values.size}]) $0 = {{\n"
        + "".join(f"  [{k}] = {v}\n" for k, v in enumerate(values))
        + "}\n"
        for name, values in (("input", FED), ("output", GOT))
    ),
    "OpenOCD mdb": "> mdb 0x20000000 64\ninput\n"
    + "".join(f"0x2000{16 * k:04x}: {line} \n" for k, line in enumerate(HEX))
    + f"output\n0x20001000: {pairs(GOT)[0]} \n",
    "OpenOCD mdh": both(
        "".join(f"\n0x2000{k:04x}: {' '.join(words(FED, 2)[k : k + 16])}" for k in (0, 16)), decimal(GOT)
    ),
    "OpenOCD mdw": both(
        "".join(f"\n0x2000{k:04x}: {' '.join(words(FED, 4)[k : k + 8])}" for k in (0, 8)), decimal(GOT)
    ),
    "OpenOCD read_memory": f"> read_memory input 8 64\n{signed(FED.view(np.uint8), '0x{:x}')}\n"
    f"> read_memory output 8 10\n{signed(GOT.view(np.uint8), '0x{:x}')}\n",
    "J-Link mem8": "J-Link>mem8 20000000,40\ninput\n"
    + "".join(f"{line}  {ascii_of(HEX[k])}\n" for k, line in enumerate(JLINK))
    + f"output\n20001000 = {pairs(GOT)[0].upper()}\n",
    "J-Link mem": both(
        "".join(f"\n2000{16 * k:04X} = {line}  {ascii_of(HEX[k])}" for k, line in enumerate(HALF)), decimal(GOT)
    ),
    "J-Link mem32": both(
        "".join(f"\n2000{k:04X} = {' '.join(words(FED, 4)[k : k + 4]).upper()}" for k in range(0, 16, 4)), decimal(GOT)
    ),
    "hexdump -C": both(
        "".join(f"\n{16 * k:08x}  {line}  |{ascii_of(HEX[k])}|" for k, line in enumerate(HALF)) + "\n00000040",
        decimal(GOT),
    ),
    "od": both("".join(f"\n{16 * k:07o} {decimal(FED[16 * k : 16 * k + 16], '  ')}" for k in range(4)), decimal(GOT)),
    "xxd -g4": both(
        "".join(
            f"\n{16 * k:08x}: {' '.join(line.replace(' ', '')[j : j + 8] for j in (0, 8, 16, 24))}  {ascii_of(line)}"
            for k, line in enumerate(HEX)
        ),
        decimal(GOT),
    ),
    "xxd -e": both(
        "".join(
            f"\n{16 * k:08x}: {' '.join(words(FED, 4)[4 * k : 4 * k + 4])}  {ascii_of(line)}"
            for k, line in enumerate(HEX)
        ),
        decimal(GOT),
    ),
}


@each("name", LOGS)
def test_a_log_is_read_whatever_printed_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_bytes(LOGS[name].encode())
    (dump,) = load_dumps(MODEL, path)
    assert dump.tensors.keys() == {INPUT, OUTPUT}
    np.testing.assert_array_equal(dump.tensors[INPUT].ravel(), FED)
    np.testing.assert_array_equal(dump.tensors[OUTPUT].ravel(), GOT)


@pytest.mark.parametrize("ending", [".txt", ".log", "", ".capture"])
def test_a_log_is_known_by_its_content(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"board{ending}"
    path.write_text(LOGS["zephyr"], encoding="utf-8")
    assert load_dumps(MODEL, path)[0].tensors.keys() == {INPUT, OUTPUT}


def test_runs_that_follow_each_other_are_samples(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(LOGS["printf"] + LOGS["zephyr"] + LOGS["xxd"], encoding="utf-8")
    assert len(load_dumps(MODEL, path)) == 3


def test_a_tensor_without_a_name_is_known_by_its_length(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(f"started\n{decimal(GOT)}\n", encoding="utf-8")
    np.testing.assert_array_equal(load_dumps(MODEL, path)[0].tensors[OUTPUT].ravel(), GOT)


def test_a_log_in_an_archive_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "board.zip", "w") as archive:
        archive.writestr("logs/run.txt", LOGS["ESP-IDF"])
    assert load_dumps(MODEL, tmp_path / "board.zip")[0].tensors.keys() == {INPUT, OUTPUT}


def test_few_joined_bytes_are_an_address_of_a_network_card(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(f"mac: 24:6f:28:00:11:22\nvoid: 1\n{decimal(GOT)}\n", encoding="utf-8")
    assert blocks_of(path.read_text())[0][0].words != ("0x24", "0x6f", "0x28", "0x00", "0x11", "0x22")
    np.testing.assert_array_equal(load_dumps(MODEL, path)[0].tensors[OUTPUT].ravel(), GOT)


def test_a_list_that_gdb_cut_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gdb.log"
    path.write_text(f"input = {{{decimal(FED[:50])}...}}\noutput = {{{decimal(GOT)}}}\n", encoding="utf-8")
    with pytest.warns(InputWarning, match="50 numbers after 'input', and tensor 0 has 64"):
        assert load_dumps(MODEL, path)[0].tensors.keys() == {OUTPUT}


def test_inputs_may_come_before_all_outputs(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    fed, got = (np.stack([one, np.roll(one, 1)]) for one in (FED, GOT))
    path.write_text("".join(f"{n}: {decimal(row)}\n" for n, x in (("input", fed), ("output", got)) for row in x))
    dumps = load_dumps(MODEL, path)
    assert [d.tensors[INPUT].ravel().tolist() for d in dumps] == fed.tolist()
    assert [d.tensors[OUTPUT].ravel().tolist() for d in dumps] == got.tolist()


@pytest.mark.parametrize("form", ["output[{k}] = {code} ({real:.4f})", "output[{k}] = {real:.4f} ({code})"])
def test_a_code_beside_its_real_value_is_read(form: str, tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text("\n".join(form.format(k=k, code=v, real=(v + 128) / 256) for k, v in enumerate(GOT.tolist())))
    np.testing.assert_array_equal(load_dumps(MODEL, path)[0].tensors[OUTPUT].ravel(), GOT)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"warmup output: {decimal(FED[:10])}", "is no sample"),
        (f"input: [{decimal(FED[:3], ' ')} ... {decimal(FED[61:], ' ')}]", "values that were left out"),
        (f"input: [[{decimal(FED[:32], ' ')}\n ...\n {decimal(FED[32:], ' ')}]]", "values that were left out"),
        ("output = 3 / 0.5", "line 1: output or input not read"),
        ("confusion: 1 2 3 4 5", "5 numbers after 'confusion' are of no tensor's length"),
    ],
)
def test_lines_that_are_not_read_are_reported(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(f"{line}\noutput: {decimal(GOT)}\n", encoding="utf-8")
    with pytest.warns(InputWarning, match=reason):
        (dump,) = load_dumps(MODEL, path)
    assert dump.tensors.keys() == {OUTPUT}
    np.testing.assert_array_equal(dump.tensors[OUTPUT].ravel(), GOT)


def test_hexadecimal_words_beside_reals_are_read(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(f"tensor {OUTPUT}: 0x0 0.5 " + " ".join(["0.25"] * 8), encoding="utf-8")
    assert load_dumps(MODEL, path)[0].tensors[OUTPUT].ravel().tolist() == [-128, 0] + [-64] * 8


def test_dequantized_values_become_codes(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    real = (GOT.astype(np.float32) + 128) / 256
    path.write_text("output: " + " ".join(f"{v:.7f}" for v in real), encoding="utf-8")
    np.testing.assert_array_equal(load_dumps(MODEL, path)[0].tensors[OUTPUT].ravel(), GOT)


def test_lines_of_others_between_the_numbers_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(f"input:\n{decimal(FED[:30])}\nwifi: beacon timeout\n{decimal(FED[30:])}\noutput: {decimal(GOT)}\n")
    assert load_dumps(MODEL, path)[0].tensors.keys() == {INPUT, OUTPUT}


def test_what_may_be_several_tensors_is_asked_back(tmp_path: Path) -> None:
    path, size = tmp_path / "board.log", GRAPH.tensors[GRAPH.op(1).outputs[0]].shape
    count = int(np.prod(size))
    path.write_text("values: " + decimal(np.zeros(count, np.int8)), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1: .* numbers after 'values' may be \d+ tensors \(.*print the number"):
        load_dumps(MODEL, path)


def test_a_tensor_that_is_cut_is_named(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(f"input: {decimal(FED)}\noutput: {decimal(GOT[:9])}\n", encoding="utf-8")
    with pytest.warns(InputWarning, match=rf"line 2: 9 numbers after 'output', and tensor {OUTPUT} has 10"):
        (dump,) = load_dumps(MODEL, path)
    assert dump.tensors.keys() == {INPUT}


@pytest.mark.parametrize(
    "text", ["\n", "nothing here\n", "heap: 1234\n", "1 2 3\n", "output: 999999 1 2 3 4 5 6 7 8 9\n"]
)
def test_a_log_without_tensors_is_bad_input(text: str, tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        load_dumps(MODEL, path)


def test_no_text_crashes_or_hangs() -> None:
    draw = random.Random(7)
    words = ["0x", "12", "-", "[", "]", "=", ":", "ff", "1e9", "nan", "|", "\t", "\x1b[", "input", "1" * 5000]
    for _ in range(60):
        blocks_of("\n".join(" ".join(draw.choices(words, k=draw.randrange(12))) for _ in range(draw.randrange(9))))
    blocks_of("input: " + "1 " * 30_000 + "x")
    blocks_of(": " * 30_000)
    blocks_of("1" * 30_000)
    for text in ("20000000: " + "12 " * 9999 + "z", "20000000: " + "1" * 9999 + "z", "a (b" * 9999 + ")", '"\\' * 9999):
        blocks_of(text)
    for text in (" | " * 9999, "0x1234 " * 9999 + "|", "b'" + "\\r" * 9999, "'\\x41" * 9999, "(a" * 9999):
        blocks_of(text)
    with pytest.raises(LimitError):
        blocks_of("0 <repeats 999999999 times>")


def checked(sample: int, tensor: int, data: bytes, step: int = 24) -> list[str]:
    """Return the lines that examples/firmware/tflq_log.h prints."""
    found = []
    for start in range(0, len(data), step):
        line = f"TFLQ {sample} {tensor} {len(data)} {start} {data[start : start + step].hex()}"
        found.append(f"{line} {zlib.crc32(line.encode()):08x}")
    return found


def test_checked_lines_are_read_among_others_and_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    whole = [*checked(0, INPUT, FED.tobytes()), *checked(0, OUTPUT, GOT.tobytes()), *checked(1, OUTPUT, GOT.tobytes())]
    path.write_text("input: 1 2 3\n" + lines(zephyr, *whole), encoding="utf-8")
    first, second = load_dumps(MODEL, path)
    np.testing.assert_array_equal(first.tensors[INPUT].ravel(), FED)
    np.testing.assert_array_equal(second.tensors[OUTPUT].ravel(), GOT)
    for damage in (lambda line: line.replace("TFLQ 0", "TFLQ 1", 1), lambda line: line[:40], lambda line: ""):
        path.write_text(lines(zephyr, damage(whole[0]), *whole[1:]), encoding="utf-8")
        with pytest.warns(InputWarning, match=f"tensor {INPUT} of sample 0|checksum|is cut"):
            dumps = load_dumps(MODEL, path)
        assert all(INPUT not in dump.tensors for dump in dumps)
    path.write_text(f"{whole[0]}\n", encoding="utf-8")
    with pytest.raises(InputError, match="byte 24 of 64 is missing"):
        load_dumps(MODEL, path)


def test_inputs_are_read_from_a_log(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(LOGS["zephyr"] + LOGS["printf"], encoding="utf-8")
    ran = tflq.run(PATH, str(path))
    assert ran.inputs.samples == 2
    path.write_text(f"output: {decimal(GOT)}\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no inputs of the model"):
        tflq.run(PATH, str(path))


@pytest.mark.parametrize("content", [PATH.read_bytes(), b"\x08\x07\x12\x07pytorch\x1a", b"\x89HDF\r\n\x1a\n"])
def test_a_model_in_place_of_a_dump_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is an? .*, not a dump"):
        load_dumps(MODEL, path)


NEAR_THE_LOWEST = np.array([-127, -127, -124, -127, -121, -128, -124, -121, 100, -125], np.int8)


@pytest.mark.parametrize("label", [f"Tensor {OUTPUT}:", "output:"])
def test_bytes_without_letters_are_hexadecimal_beside_others_that_are(label: str, tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text("\n".join([f"Tensor {INPUT}:", *pairs(FED), label, *pairs(NEAR_THE_LOWEST)]))
    (dump,) = load_dumps(MODEL, path)
    np.testing.assert_array_equal(dump.tensors[OUTPUT].reshape(-1), NEAR_THE_LOWEST)


def test_bytes_without_letters_alone_are_doubtful(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text("output: 81 81 84 81 87 80 84 87 64 83\n")
    with pytest.warns(InputWarning, match="two digits each, read as decimal; write 0x before hexadecimal"):
        load_dumps(MODEL, path)


def test_logits_beside_the_output_are_the_operand_of_softmax(tmp_path: Path) -> None:
    path, logits = tmp_path / "board.log", np.arange(-60, 40, 10, dtype=np.int8)
    path.write_text(f"input: {decimal(FED)}\nlogits: {decimal(logits)}\noutput: {decimal(GOT)}\n")
    (dump,) = load_dumps(MODEL, path)
    np.testing.assert_array_equal(dump.tensors[OUTPUT].reshape(-1), GOT)
    np.testing.assert_array_equal(dump.tensors[GRAPH.maker(OUTPUT).inputs[0]].reshape(-1), logits)


def test_another_word_for_an_output_is_asked_back(tmp_path: Path) -> None:
    path = tmp_path / "board.log"
    path.write_text(f"scores: {decimal(GOT)}\noutput: {decimal(GOT)}\noutput: {decimal(GOT)}\n")
    with pytest.warns(InputWarning, match="line 1: 'scores' beside 'output' is not known"):
        dumps = load_dumps(MODEL, path)
    assert len(dumps) == 2
