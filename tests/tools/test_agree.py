"""Models compared in real runtimes: differences are seen, absent runtimes are named, certificates are read."""

from __future__ import annotations

import hashlib
import json
import stat
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from agree import in_turn, main
from agreement.comparing import Lockstep
from agreement.devices import Device, devices
from agreement.inputs import Drawn
from agreement.searching import Search
from agreement.sums import Census, at_thresholds, products

import tflq
from opfuzz.one_operator import T, build
from support import suites
from support.processors import own
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read

MOBILENET = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
QUICK = ("--search", "0.5", "--count", "60")
live = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed")
CODES = (np.dtype(np.int8), (1, 4))


def convolution(weights: np.ndarray, bias: np.ndarray, real: float, depthwise: bool = False) -> bytes:
    """A strided convolution of a 6x5 image with SAME padding, whose multiplier is `real`."""
    options = {"padding": 0, "stride_h": 2, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 2}
    options |= {"fused_activation_function": 0} | ({"depth_multiplier": weights.shape[3] // 2} if depthwise else {})
    channels = weights.shape[3] if depthwise else weights.shape[0]
    operands = [
        T("int8", (1, 6, 5, 2), 0.5, 3),
        T("int8", weights.shape, np.float32(real * 2), 0, value=weights),
        T("int32", (channels,), np.float32(real), 0, value=bias),
    ]
    op = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    kind = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    return build(op, operands, [T("int8", (1, 3, 5, channels), 1.0, -5)], (kind, options), 3)


def portable() -> bytes:
    """A convolution with even weights, odd biases and a multiplier just below a power of two."""
    rng = np.random.default_rng(2)
    weights = (2 * rng.integers(-60, 61, (4, 3, 3, 2))).astype(np.int8)
    bias = 2 * rng.integers(-500, 500, 4) + 1
    return convolution(weights, bias, float(np.nextafter(np.float32(2.0**-7), np.float32(0))))


def summed(x: np.ndarray, weights: np.ndarray, depthwise: bool) -> np.ndarray:
    """Sum over taps one by one: rows have stride 2 and one row of padding, columns dilation 2 and two of padding."""
    channels = weights.shape[3] if depthwise else weights.shape[0]
    out = np.zeros((3, 5, channels), np.int64)
    for y, column, c, ky, kx, d in np.ndindex(3, 5, channels, 3, 3, 2):
        row, place = 2 * y + ky, column + 2 * kx - 2
        if row >= 6 or not 0 <= place < 5:
            continue
        if not depthwise:
            out[y, column, c] += (int(x[0, row, place, d]) - 3) * int(weights[c, ky, kx, d])
        elif d == c // (channels // 2):
            out[y, column, c] += (int(x[0, row, place, d]) - 3) * int(weights[0, ky, kx, c])
    return out


@pytest.mark.parametrize("depthwise", [False, True])
def test_accumulators_are_sums_over_the_taps_inside(depthwise: bool) -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(-127, 128, (1, 3, 3, 4) if depthwise else (4, 3, 3, 2)).astype(np.int8)
    model = read(convolution(weights, np.zeros(4), 2.0**-7, depthwise))
    (product,) = products(model, by_name("litert-ref"))
    x = rng.integers(-128, 128, (1, 6, 5, 2)).astype(np.int8)
    assert (product.accumulators(x).reshape(3, 5, 4) == summed(x, weights, depthwise)).all()


def test_accumulators_of_a_transposed_convolution_are_sums_over_the_taps_that_reach_a_place() -> None:
    rng = np.random.default_rng(3)
    weights, x = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((3, 3, 2, 2), (1, 4, 3, 2)))
    shape = T("int32", (4,), value=np.array([1, 8, 5, 3]))
    operands = [shape, T("int8", weights.shape, 0.5, 0, value=weights), T("int8", x.shape, 0.5, 3)]
    options = ("TransposeConvOptions", {"padding": 0, "stride_h": 2, "stride_w": 2})
    model = read(build("TRANSPOSE_CONV", operands, [T("int8", (1, 8, 5, 3), 64.0, -5)], options, 1))
    (product,) = products(model, by_name("litert-ref"))
    expected = np.zeros((8, 5, 3), np.int64)
    for y, column, ky, kx in np.ndindex(4, 3, 3, 2):
        if 2 * y + ky < 8 and 2 * column + kx < 5:  # SAME: no padding before
            expected[2 * y + ky, 2 * column + kx] += weights[:, ky, kx].astype(int) @ (x[0, y, column].astype(int) - 3)
    assert (product.accumulators(x).reshape(8, 5, 3) == expected).all()


@pytest.mark.parametrize(("profile", "first"), [("tflm-cmsis-nn-single", 8), ("litert-ref", 7)])
def test_thresholds_are_where_codes_change(profile: str, first: int) -> None:
    """At 1/16, half up begins a code at 8. Of two roundings the first makes 4 of 7/2, and the second 1 of 4/8."""
    weights = np.ones((4, 3, 3, 2), np.int8)
    (product,) = products(read(convolution(weights, np.zeros(4), 2.0**-4)), by_name(profile))
    found = [s for s in range(1, 101) if at_thresholds(product, np.full((1, 4), s, np.int64)) == 4]
    assert found == [s for s in range(1, 101) if s % 16 in (first - 1, first)]


def test_constructed_inputs_reach_more_thresholds_than_random_ones() -> None:
    drawn = Drawn(read(portable()), "litert-ref", 1)
    shares = []
    for samples in (drawn.constructed(20), drawn.random(20)):
        census = Census.of(drawn.products[:1])
        for (sample,) in samples:
            census.add({drawn.products[0].x: sample})
        every, near = census.counted[drawn.products[0].index]
        shares.append(near / every)
    assert shares[0] > 2 * shares[1]


def test_the_search_finds_better_samples() -> None:
    drawn = Drawn(tflq.load(MOBILENET), "litert-ref", 1)
    search, start = Search(drawn, "litert-ref"), list(drawn.random(3))
    found = search.found(start, 4, 1.0)
    assert found
    assert max(map(search.score, found)) > max(map(search.score, start))


def test_kinds_of_inputs_take_turns() -> None:
    samples = [(np.array(number),) for number in range(4)]
    kinds = {"first": iter(samples[:1]), "second": iter(()), "third": iter(samples[1:])}
    assert [(kind, int(sample[0])) for kind, sample in in_turn(kinds)] == [
        ("first", 0),
        ("third", 1),
        ("third", 2),
        ("third", 3),
    ]


@live
def test_differences_of_an_ordinary_model_are_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "counts.json"
    words = [str(MOBILENET), "--folder", str(tmp_path), "--json", str(file), *QUICK]
    assert main([*words, "--runtimes", "litert-ref", "litert-xnnpack", "tflm"]) == 1
    printed = capsys.readouterr().out
    assert "differ from litert-ref: litert-xnnpack" in printed
    assert "not run: tflm: " in printed
    first, second, _ = json.loads(file.read_text())["runtimes"]
    assert not first["different_by_tensor"]
    assert second["different_by_tensor"]
    assert second["inputs"] == 60


@live
def test_a_portable_model_gives_the_same_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "portable.tflite"
    model.write_bytes(portable())
    words = [str(model), "--folder", str(tmp_path), *QUICK]
    assert main([*words, "--runtimes", "litert-ref", "litert-opt", "litert-xnnpack"]) == 0
    assert "the same bits (3 runtimes" in capsys.readouterr().out


@live
def test_outputs_alone_are_compared_without_a_search(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    words = [
        str(MOBILENET),
        "--folder",
        str(tmp_path),
        "--json",
        str(file),
        "--outputs",
        "--search",
        "0",
        "--count",
        "5",
    ]
    assert main([*words, "--runtimes", "litert-ref", "litert-ref"]) == 0
    assert [runtime["elements"] for runtime in json.loads(file.read_text())["runtimes"]] == [50, 50]


@pytest.mark.slow
@live
def test_only_tensors_and_runtimes_of_the_certificate_decide(tmp_path: Path) -> None:
    runtimes = ["--runtimes", "litert-ref", "litert-xnnpack"]
    words = [str(MOBILENET), "--folder", str(tmp_path), *QUICK, *runtimes, "--certificate", str(tmp_path / "c.json")]
    codes, here = [], [own("litert-xnnpack")]
    for covered, names in (([], here), (range(1000), here), (range(1000), ["tflm"])):
        write_certificate(tmp_path / "c.json", covered=list(covered), names=names)
        codes.append(main(words))
    assert codes == [0, 1, 0]


def write_certificate(file: Path, *, covered: list[int], names: list[str], digest: str = "") -> None:
    document = {
        "schema": "tflq/certificate/1",
        "model": {"sha256": digest or hashlib.sha256(MOBILENET.read_bytes()).hexdigest()},
        "profiles": [{"name": name, "also": []} for name in names],
        "coverage": [{"subgraph": 0, "covered": covered}],
    }
    file.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"coverage": [{"subgraph": 0, "covered": ["x"]}]}', None])
def test_a_bad_certificate_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None) -> None:
    file = tmp_path / "c.json"
    if text is None:
        write_certificate(file, covered=[], names=[], digest="0" * 64)
    else:
        file.write_text(text, encoding="utf-8")
    assert main([str(MOBILENET), "--folder", str(tmp_path), "--certificate", str(file), *QUICK]) == 2
    assert "certificate" in capsys.readouterr().err


def test_float_inputs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = MOBILENET.with_name("digits_mobilenet_float.tflite")
    assert main([str(model), "--folder", str(tmp_path), *QUICK]) == 2
    assert "quantize it" in capsys.readouterr().err


def test_unknown_runtimes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(MOBILENET), "--folder", str(tmp_path), "--runtimes", "litert", *QUICK]) == 2
    assert "litert-ref" in capsys.readouterr().err


def test_one_runtime_compares_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--runtimes", "tflm", "openvino", "litert-opt-arm64"]
    assert main([str(MOBILENET), "--folder", str(tmp_path), *words, *QUICK]) == 2
    printed = capsys.readouterr().out
    assert "nothing was compared" in printed
    assert all(f"not run: {name}: " in printed for name in words[1:])


def test_every_device_has_a_reason_or_a_command(tmp_path: Path) -> None:
    for device in devices(tmp_path).values():
        assert device.absent or Path(device.command[0]).exists()


def program(folder: Path, name: str, body: str) -> Device:
    """A runtime of one int8 input and output of four elements."""
    file = folder / name
    header = f"#!{sys.executable}\nimport sys\nsay, take = sys.stdout.buffer, sys.stdin.buffer\n"
    file.write_text(header + body, encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return Device(name, (str(file),))


ECHO = 'say.write(b\'{"name": "echo", "bytes": [4]}\\n\'); say.flush()\n'
LOOP = "while data := take.read(4): say.write(data); say.flush()\n"


def test_runtimes_that_end_or_hang_are_named(tmp_path: Path) -> None:
    chosen = [
        program(tmp_path, "echo", ECHO + LOOP),
        program(tmp_path, "other", ECHO + "while data := take.read(4): say.write(data[:3] + b'!'); say.flush()\n"),
        program(tmp_path, "ends", ECHO + "take.read(4); sys.exit('out of memory')\n"),
        program(tmp_path, "hangs", ECHO + "take.read(8)\n"),
        program(tmp_path, "refuses", "sys.exit('unknown operator')\n"),
        program(tmp_path, "sizes", ECHO.replace("[4]", "[5]") + LOOP),
    ]
    with Lockstep(chosen, tmp_path / "model.tflite", [CODES], 2.0, 0) as lockstep:
        for number in range(2):
            assert lockstep.run(number, (np.full((1, 4), number, np.int8),), (7,)) is not None
    results = {result.device.name: result for result in lockstep.results}
    assert results["echo"].compared == results["other"].compared == 8
    assert results["other"].differing == {7: 2}
    assert results["other"].first == (0, 7)
    assert results["ends"].problem == "input 0: out of memory"
    assert "took longer than 2 s" in results["hangs"].problem
    assert results["refuses"].problem == "unknown operator"
    assert "other sizes" in results["sizes"].problem


def test_a_budget_ends_a_runtime_but_not_the_others(tmp_path: Path) -> None:
    chosen = [
        program(tmp_path, "echo", ECHO + LOOP),
        program(tmp_path, "slow", ECHO + "import time\n" + LOOP.replace("say.write", "time.sleep(0.1); say.write")),
    ]
    with Lockstep(chosen, tmp_path / "model.tflite", [CODES], 20.0, 0.15) as lockstep:
        for number in range(6):
            lockstep.run(number, (np.full((1, 4), number, np.int8),), (7,))
    assert [result.inputs for result in lockstep.results] == [6, 2]
