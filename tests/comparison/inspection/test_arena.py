"""Arenas of tflite-micro, as its interpreter prints them."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from support.each import each
from support.suites import ROOT
from tflq.comparison.inspection.arena import Arena, BuildLayout, PlannedBuffer, arena_of, planned, registrations
from tflq.devices.suites.draft import T, build
from tflq.engine.api.files import load
from tflq.model.flatbuf import read
from tflq.model.ir import Model

#: Bytes of head and tail that `print_allocations` of tflite-micro 0.dev20260820164721 gave, on x86-64, by model.
PRINTED = {
    "models/digits_autoencoder_int8": (128, 5_360),
    "models/digits_autoencoder_int16x8": (256, 5_360),
    "models/digits_autoencoder_float": (512, 2_672),
    "models/digits_lstm_int8": (592, 26_960),
    "models/digits_lstm_float": (2_160, 17_184),
    "models/digits_mobilenet_int8": (28_672, 10_528),
    "models/digits_mobilenet_int16x8": (57_344, 12_608),
    "models/digits_mobilenet_float": (114_688, 10_368),
    "models/digits_unet_int8": (3_520, 3_536),
    "models/digits_unet_int16x8": (7_040, 3_776),
    "models/digits_unet_float": (8_192, 3_456),
    "singleop/models/add_i16_1": (24_576, 1_024),
    "singleop/models/average_pool_2d_i8_0": (1_360, 896),
    "singleop/models/concat_i8_0": (768, 1_168),
    "singleop/models/conv_i8_0": (1_952, 1_120),
    "singleop/models/depthwise_i8_0": (1_312, 1_056),
    "singleop/models/dequantize_i16": (24_576, 832),
    "singleop/models/div_u8_0": (3_072, 976),
    "singleop/models/equal_i8": (3_072, 944),
    "singleop/models/fc_i8_0": (80, 960),
    "singleop/models/greater_u8": (3_072, 944),
    "singleop/models/hard_swish_i8_0": (1_024, 848),
    "singleop/models/l2norm_i8_0": (128, 832),
    "singleop/models/leaky_relu_01": (512, 864),
    "singleop/models/leaky_relu_two_2": (768, 1_200),
    "singleop/models/less_equal_i8": (3_072, 944),
    "singleop/models/log_softmax_i8_0": (160, 864),
    "singleop/models/logistic_i16_0": (262_144, 848),
    "singleop/models/max_pool_2d_i8_1": (1_696, 896),
    "singleop/models/maximum_u8": (768, 944),
    "singleop/models/mean_i8_0": (1_760, 912),
    "singleop/models/mean_tie_i8_1": (880, 912),
    "singleop/models/mul_i16_0": (24_576, 992),
    "singleop/models/pad_i8": (416, 912),
    "singleop/models/pad_rank1_pad_u8": (32, 912),
    "singleop/models/pad_rank1_padv2_u8": (32, 928),
    "singleop/models/pad_rank2_pad_u8": (48, 912),
    "singleop/models/pad_rank2_padv2_i8": (48, 928),
    "singleop/models/pad_rank3_pad_i8": (128, 912),
    "singleop/models/pad_rank3_padv2_i8": (128, 928),
    "singleop/models/prelu_u8_1": (576, 880),
    "singleop/models/quantize_i8_0": (20_480, 832),
    "singleop/models/reduce_max_u8_1": (1_632, 912),
    "singleop/models/relu6_i8_0": (512, 832),
    "singleop/models/relu_i8_1": (512, 864),
    "singleop/models/requantize_i16_i32": (24_576, 864),
    "singleop/models/resize_bilinear_i8_0": (640, 848),
    "singleop/models/resize_nearest_neighbor_u8_1": (544, 848),
    "singleop/models/softmax_i8_1": (2_048, 912),
    "singleop/models/sub_i16_0": (24_576, 1_008),
    "singleop/models/sum_i8_1": (1_760, 912),
    "singleop/models/tanh_i16_0": (262_144, 848),
    "singleop/models/tie_add_i8_0": (3_072, 1_024),
    "singleop/models/tie_conv_i8_0": (1_536, 1_120),
    "singleop/models/tie_depthwise_u8_0": (2_048, 1_120),
    "singleop/models/tie_fc_b1_i8_2": (64, 960),
    "singleop/models/tie_fc_i8_0": (768, 960),
    "singleop/models/tie_mul_u8_0": (3_072, 992),
    "singleop/models/tie_requantize_i8": (512, 864),
    "singleop/models/tie_sub_i8_0": (3_072, 1_008),
    "singleop/models/transpose_conv_u8_0": (560, 1_024),
}


def model_of(name: str) -> Model:
    return load(ROOT / "golden" / f"{name}.tflite")


@each("name", PRINTED)
def test_the_arena_is_what_the_interpreter_prints(name: str) -> None:
    found = arena_of(model_of(name), BuildLayout.WHEEL)
    assert (found.head, found.tail) == PRINTED[name]
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("buffers", "most"),
    [
        ([], 0),
        ([PlannedBuffer(32, 0, 1)], 32),
        ([PlannedBuffer(32, 0, 1), PlannedBuffer(48, 2, 3)], 48),  # one after the other
        ([PlannedBuffer(32, 0, 2), PlannedBuffer(48, 1, 3)], 80),
        (
            [PlannedBuffer(16, 0, 3), PlannedBuffer(64, 0, 1), PlannedBuffer(48, 2, 3)],
            80,
        ),  # the small one lies above both
        ([PlannedBuffer(64, 0, 1), PlannedBuffer(16, 0, 3), PlannedBuffer(32, 1, 3), PlannedBuffer(16, 2, 2)], 112),
    ],
)
def test_the_planner_places_the_largest_first(buffers: list[PlannedBuffer], most: int) -> None:
    assert planned(buffers) == most


def test_pointers_of_32_bits_take_less() -> None:
    wheel, board = (arena_of(model_of("models/digits_mobilenet_int8"), layout) for layout in BuildLayout)
    assert board.head == wheel.head
    assert board.tail < wheel.tail
    assert wheel.total == wheel.head + wheel.tail
    assert wheel.peak == "3 DEPTHWISE_CONV_2D"


def test_what_the_data_does_not_have_is_named() -> None:
    """A kernel's own memory that no `sizeof` tells, and that of variables with handles."""
    window = build("SignalWindow", [T("int16", (1, 4)), T("int16", (4,))], [T("int16", (1, 4))], ("", {"shift": 1}))
    assert arena_of(read(window)).unknown == ("SignalWindow",)
    handle = build("VAR_HANDLE", [], [T("resource", (1,))], ("VarHandleOptions", {"shared_name": "state"}))
    assert arena_of(read(handle)).unknown == ("VAR_HANDLE",)


def test_each_operator_is_registered_once() -> None:
    methods = registrations(model_of("models/digits_mobilenet_int8"))
    assert methods[:3] == ("AddResizeBilinear", "AddConv2D", "AddDepthwiseConv2D")
    assert len(methods) == len(set(methods)) == 7


def test_a_model_without_operators_has_an_arena() -> None:
    model = model_of("models/digits_unet_int8")
    graph = model.subgraphs[0]
    bare = model.__class__(
        model.version, (), (graph.__class__(graph.tensors, graph.inputs, graph.inputs, ()),), model.buffers
    )
    found = arena_of(bare)
    assert isinstance(found, Arena)
    assert found.head > 0


PRINT = (
    "import sys; from tflite_micro import runtime as r;"
    "r.Interpreter.from_file(sys.argv[1], arena_size=1 << 24).print_allocations()"
)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tflite_micro") is None, reason="tflite-micro is not installed")
def test_arenas_of_the_installed_release_are_within_a_twenty_fifth() -> None:
    for name in PRINTED:
        path = str(ROOT / "golden" / f"{name}.tflite")
        done = subprocess.run([sys.executable, "-c", PRINT, path], capture_output=True, text=True, check=True)
        total = int(re.findall(r"allocation total (\d+)", done.stderr)[0])
        assert abs(arena_of(model_of(name), BuildLayout.WHEEL).total / total - 1) <= 0.04, name
