"""Calls of kernels by address: one compiled caller for all kernels, and definitions where the source runs as Python."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.foreign import ran
from support.tiles import has_arm_tools
from tflq.engine.jit import native, pieces
from tflq.engine.jit.building import build, emit
from tflq.engine.jit.compiled import compiling_is_off
from tflq.engine.jit.native import Unavailable
from tflq.engine.jit.processors import LEVELS, ProcessorLevel
from tflq.engine.kernels.depthwise_conv_2d import tap_offsets
from tflq.engine.kernels.families.channel_sums import convolution, convolve_into
from tflq.engine.kernels.families.ordered import OrderedProduct, products_into
from tflq.engine.kernels.geometry.windows import Padding, Window, axis
from tflq.engine.microkernels import kernel as called
from tflq.engine.microkernels import kernel as forms
from tflq.engine.microkernels import product, sums, taps
from tflq.engine.microkernels import product as tiles
from tflq.engine.microkernels.emission import emit as emit_kernel
from tflq.engine.microkernels.kernel import TileKernel
from tflq.engine.microkernels.product import CodeOperand, driver, fuse, pack_rows
from tflq.engine.microkernels.sums import Term, sums_of
from tflq.engine.numerics.codes import Clamp, NumberClamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import DoubleRounding, SingleRounding
from tflq.engine.numerics.stages import OutputPipeline, OutputStage

FORM = forms.choose(False)
pytestmark = pytest.mark.skipif(FORM is None, reason="no form for this machine")
STAGES = (DoubleRounding, SingleRounding)


def _pipeline(code: str, stage: Any) -> OutputPipeline:
    info = np.iinfo(code)
    return OutputPipeline(stage.of(2.0**-9), ZeroPoint(3), Clamp(int(info.min), int(info.max)), np.dtype(code))


def _entries(function: Any) -> int:
    """Return the number of types of arguments for which there is machine code of a function."""
    return len(function.resolve()._entries)


def test_one_function_multiplies_by_all_kernels() -> None:
    assert FORM is not None
    random, used = np.random.default_rng(0), driver(pack_rows, FORM.left)
    before, run = _entries(used), []
    for code in ("int8", "uint8"):
        for width in (5, 17, 40, 64):
            for stage in STAGES:
                x = random.integers(*((-128, 128) if code == "int8" else (0, 256)), (9, 7)).astype(code)
                w, pipeline = random.integers(-127, 128, (7, width)).astype(np.int16), _pipeline(code, stage)
                out = np.zeros((9, width), code)
                (bound,) = fuse(CodeOperand(x.dtype, 3, pack_rows), [w], 9, np.zeros(width, np.int32), pipeline)
                bound(out, 0, x, 0)
                want = pipeline((x.astype(np.int64) - 3) @ w.astype(np.int64), np.zeros(width, np.int32))
                np.testing.assert_array_equal(out, want)
                run.append(bound)
    assert len({bound.constants[4] for bound in run}) >= 2 * len(STAGES)  # more where tiles have several widths
    assert {bound.run for bound in run} == {used}
    assert _entries(used) <= before + (2 if FORM.is_wide else 1)  # packed pairs keep the sign of bytes


def _added(code: str, stage: type[OutputStage]) -> Any:
    one: Any = stage
    terms = [Term(np.dtype(code), 3, 20, one.of(0.5)) for _ in range(2)]
    return sums_of(*terms, 1, OutputPipeline(one.of(2.0**-20), ZeroPoint(3), Clamp(0, 90), np.dtype(code)))


def test_one_function_adds_by_all_kernels() -> None:
    before = _entries(sums.sums_into)
    found = [_added(code, stage) for code in ("int8", "uint8") for stage in STAGES]
    for each in found:
        a, out = np.arange(100).astype(each.kernel.code), np.zeros(100, each.kernel.code)
        each.into(a, a, out)()
        np.testing.assert_array_equal(out, np.clip(np.arange(100) - 3 + 3, 0, 90))
    assert len({each.address for each in found}) == len(found)
    assert _entries(sums.sums_into) <= before + 1


def _convolved(code: str, stage: Any) -> Any:
    sides = axis(Padding.SAME, 6, 3, 1, 1), axis(Padding.SAME, 5, 3, 1, 1)
    assert sides[0] is not None
    assert sides[1] is not None
    at, weights = Window.over(*sides), np.ones((9, 2), np.int16)
    bound = taps.tap_sums(
        np.dtype(code), 3, weights, tap_offsets(at, 2)[:9], np.zeros(2, np.int32), _stages(code, stage)
    )
    if bound is None:
        return None
    x, out = np.full((1, 6, 5, 2), 5, code), np.zeros((1, 6, 5, 2), code)
    convolution(bound, x, at, 1, 3, 2, out)()
    return bound.line[0], out


def _stages(code: str, stage: Any) -> OutputPipeline:
    info = np.iinfo(code)
    return OutputPipeline(stage.of(np.full(2, 0.5)), ZeroPoint(3), Clamp(int(info.min), int(info.max)), np.dtype(code))


def test_one_function_convolves_by_all_kernels() -> None:
    before = _entries(convolve_into)
    found = [_convolved(code, stage) for code in ("int8", "uint8") for stage in STAGES]
    if None in found:
        pytest.skip("no form of int16 pairs for this machine")
    for _, out in found:  # 9, 6 or 4 taps of (5 - 3) * 0.5
        assert out[0, 1, 1].tolist() == [12, 12]
        assert out[0, 0, 1].tolist() == [9, 9]
        assert out[0, 0, 0].tolist() == [7, 7]
    assert len({address for address, _ in found}) == len(found)
    assert _entries(convolve_into) <= before + 1


def test_pieces_have_the_bits_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product is cut along rows into independent pieces; each has its tile in its own words."""
    random = np.random.default_rng(1)
    x, w = random.integers(0, 256, (301, 40)).astype(np.uint8), random.integers(-127, 128, (40, 70)).astype(np.int16)
    (bound,) = fuse(
        CodeOperand(x.dtype, 9, pack_rows), [w], 301, np.zeros(70, np.int32), _pipeline("int8", DoubleRounding)
    )
    outs = [np.zeros((301, 70), np.int8) for _ in range(2)]
    bound(outs[0], 0, x, 0)
    monkeypatch.setattr(pieces, "LONGEST", 1 << 14)
    call: Any = bound.into(outs[1], 0, x, 0)
    (parts,) = call.args
    assert len(parts) > 1
    for part in reversed(parts):
        part()
    np.testing.assert_array_equal(*outs)
    assert len(np.unique(outs[0])) > 20


def test_definitions_have_numbers_where_the_source_runs_as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(called, "compiling_is_off", lambda: True)
    assert FORM is not None
    random, rows, length, width = np.random.default_rng(2), 7, 9, 19
    monkeypatch.setattr(tiles.tile_into, "_addresses", {})
    for code in ("int8", "uint8", "int32"):
        tile = FORM.tile(width)
        kernel = TileKernel(tile, DoubleRounding.of(2.0**-6).scaling(2**20).steps if code != "int32" else (), code)
        x, w = random.integers(0, 256, (rows, length)).astype(np.uint8), random.integers(-127, 128, (length, width))
        pipeline = _pipeline(code, DoubleRounding)
        codes, matrix = CodeOperand(x.dtype, 5, pack_rows), w.astype(np.int16)
        if code == "int32":
            (bound,) = product.summed(codes, [matrix], rows, np.dtype(np.int32))
            want = (x.astype(np.int64) - 5) @ w
        else:
            (bound,) = fuse(codes, [matrix], rows, np.zeros(width, np.int32), pipeline)
            want = pipeline((x.astype(np.int64) - 5) @ w, np.zeros(width, np.int32))
        assert bound.constants[4] < 100 + len(called._DEFINITIONS)
        out = np.zeros((rows, width), code)
        plain = _plain(bound.run)
        with np.errstate(over="ignore"):
            plain(out.view(np.uint8), 0, bound._read(x), 0, *bound.constants)
        np.testing.assert_array_equal(out, want)
        assert kernel.code == bound.kernel.code


def _plain(run: Any) -> Any:
    """Return a function whose callees run as Python, too."""
    callees = {name: _plain(value) for name, value in run._globals().items() if hasattr(value, "python")}
    return run.bind(**callees).python


def test_without_memory_for_code_plain_loops_compute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> int:
        raise Unavailable("not permitted")

    monkeypatch.setattr(called.TileFunction, "address", refuse)
    caplog.set_level(logging.ERROR)
    weights = np.ones((3, 4), np.int16)
    codes = CodeOperand(np.dtype(np.int8), 0, pack_rows)
    assert fuse(codes, [weights], 9, np.zeros(4, np.int32), _pipeline("int8", DoubleRounding)) == ()
    assert product.summed(codes, [weights], 9, np.dtype(np.int32)) == ()
    assert _added("int8", DoubleRounding) is None
    assert _convolved("int8", DoubleRounding) is None
    assert OrderedProduct.of(np.ones((3, 4), np.float32), Window.of_one_tap(1, 9), 9) is None


def test_one_function_multiplies_float_rows() -> None:
    before, rows = _entries(products_into), np.random.default_rng(3).standard_normal((1, 1, 9, 5)).astype(np.float32)
    for width in (3, 16, 30):
        matrix, out = np.eye(5, width, dtype=np.float32), np.zeros((9, width), np.float32)
        bound = OrderedProduct.of(matrix, Window.of_one_tap(1, 9), 9)
        assert bound is not None
        open_range = NumberClamp(np.float32(-np.inf), np.float32(np.inf))
        bound.into(rows, np.zeros(width, np.float32), open_range, out)()
        np.testing.assert_array_equal(out[:, : min(width, 5)], rows[0, 0, :, :width])
    assert _entries(products_into) <= before + 1


def test_every_kernel_has_a_digest_of_its_own() -> None:
    """Machine code is found by it."""
    assert FORM is not None
    steps = DoubleRounding.of(0.25).scaling(2**20).steps
    kernels = [TileKernel(FORM.tile(40), own, code) for own in ((), steps) for code in ("int8", "uint8")]
    digests = [tiles.tile_into.digest_of(kernel) for kernel in kernels]
    assert len({*digests, tiles.tile_into.digest()}) == 5
    if not compiling_is_off():
        found = {tiles.tile_into.address(kernel) for kernel in kernels}
        assert len(found) == 4
        assert found <= set(native._KNOWN.values())


ARM = [level for level in LEVELS if level.machine == "aarch64"]


@pytest.mark.slow
@pytest.mark.skipif(not has_arm_tools(), reason="needs qemu-aarch64 and aarch64-linux-gnu-gcc")
@pytest.mark.parametrize("level", ARM, ids=lambda level: level.name)
def test_a_product_of_aarch64_calls_its_tile_by_address(
    level: ProcessorLevel, tmp_path: Path, monkeypatch: Any
) -> None:
    """Both images are made here, for the other processor, and run under emulation."""
    (form,) = forms.ranked("aarch64", level.features, False)[:1]
    random, (rows, length, width) = np.random.default_rng(4), (13, 10, 37)
    x, w = random.integers(0, 256, (rows, length)).astype(np.uint8), random.integers(-127, 128, (length, width))
    pipeline, kernels = _pipeline("int8", DoubleRounding), []
    monkeypatch.setattr(tiles.tile_into, "address", lambda kernel: kernels.append(kernel) or 0)
    codes = CodeOperand(x.dtype, 9, pack_rows)
    (bound,) = fuse(codes, [w.astype(np.int16)], rows, np.zeros(width, np.int32), pipeline, form)
    out = np.zeros((rows, width), np.int8)
    args = (out.view(np.uint8), 0, bound._read(x), 0, *bound.constants)
    caller = build(bound.run.linkable(), args, level, bound.run.reads).body
    tile = emit(lambda module, name: emit_kernel(module, kernels[0], name), level).body
    got = ran([caller, tile], args, [8], 0, tmp_path).view(np.int8)
    want = pipeline((x.astype(np.int64) - 9) @ w, np.zeros(width, np.int32))
    np.testing.assert_array_equal(got, want)
