"""Every kernel file has a test of its own name, or is named here with the test that covers it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from support import suites
from tflq import kernels

FOLDERS = (
    "arm64",
    "cmsis_nn",
    "earlier",
    "families",
    "geometry",
    "micro",
    "optimized",
    "recurrent",
    "reference",
    "tf1",
    "xnnpack",
)
TESTS = suites.ROOT / "tests"
#: Kernel file -> the tests that cover it together with others.
TOGETHER = {
    **dict.fromkeys(
        (
            "earlier.batch_matmul_2_5",
            "earlier.conv_2d_hybrid_2_5",
            "earlier.log_softmax_2_5",
            "earlier.mean_2_5",
            "optimized.add_2_5",
            "optimized.log_softmax_2_3",
            "optimized.log_softmax_2_5",
            "optimized.matrix_vector_2_5",
            "optimized.mean_2_3",
            "optimized.mean_2_5",
            "optimized.refused_2_3",
            "optimized.resize_bilinear_2_3",
            "optimized.sigmoids_2_3",
            "optimized.sums_2_3",
            "optimized.transpose_conv_2_3",
            "optimized.transpose_conv_2_5",
        ),
        "profiles/test_tf_2.py",
    ),
    **dict.fromkeys(
        (
            "earlier.fully_connected_2_7",
            "earlier.fully_connected_2_9",
            "earlier.mean_2_12",
            "earlier.mean_2_9",
            "earlier.pad_2_13",
            "earlier.random_standard_normal_2_7",
            "earlier.releases",
            "earlier.sum_2_12",
            "earlier.sum_2_13",
            "earlier.transpose_conv_2_11",
            "earlier.transpose_conv_2_8",
            "optimized.batch_matmul_1_2",
            "optimized.batch_matmul_1_4",
            "optimized.fully_connected_2_9",
            "optimized.matrix_vector_2_12",
            "optimized.mean_2_12",
            "optimized.transpose_conv_2_12",
            "xnnpack.batch_matmul_2_0",
            "xnnpack.mean_1_0",
            "xnnpack.mean_2_0",
            "xnnpack.sum_2_0",
        ),
        "profiles/test_recorded.py",
    ),
    **dict.fromkeys(("micro.svdf_float32",), "kernels/micro/test_multipliers.py"),
    **dict.fromkeys(
        (
            "earlier.equal",
            "earlier.leaky_relu",
            "earlier.sum_1_0",
            "optimized.leaky_relu",
            "optimized.mul",
            "optimized.sum_2_14",
            "xnnpack.transpose_conv_2_12",
        ),
        "profiles/test_ties.py",
    ),
    **dict.fromkeys(
        (
            "arm64.registry",
            "cmsis_nn.registry",
            "earlier.registry",
            "earlier.acceptance",
            "micro.registry",
            "micro.acceptance",
            "optimized.registry",
            "tf1.registry",
            "tf1.acceptance",
            "xnnpack.registry",
        ),
        "profiles/test_profile.py",
    ),
    **dict.fromkeys(("families.float_products", "families.operand_rows"), "kernels/families/test_matrix_products.py"),
    **dict.fromkeys(
        ("cmsis_nn.conv_2d", "cmsis_nn.fully_connected", "cmsis_nn.rounding", "cmsis_nn.unidirectional_sequence_lstm"),
        "profiles/test_cmsis_nn.py",
    ),
    **dict.fromkeys(
        (
            "earlier.four_bits",
            "earlier.fully_connected",
            "earlier.gelu",
            "earlier.hybrid",
            "optimized.fully_connected_float_2_14",
            "optimized.reduce_prod_2_14",
        ),
        "profiles/test_faults.py",
    ),
    **dict.fromkeys(
        (
            "micro.bias_width",
            "micro.conv_2d",
            "micro.fully_connected",
            "micro.squared_difference",
            "micro.svdf",
            "micro.svdf_float32",
        ),
        "profiles/test_tflm.py",
    ),
    **dict.fromkeys(
        ("tf1.convolutions_optimized", "tf1.dequantize", "tf1.lstm", "tf1.pad_optimized", "tf1.quantize"),
        "profiles/test_tf_1_15.py",
    ),
    **dict.fromkeys(
        (
            "reference.if_",
            "reference.while_",
            "reference.call_once",
            "reference.stablehlo_case",
            "reference.stablehlo_composite",
        ),
        "kernels/families/test_subgraph_calls.py",
    ),
    **dict.fromkeys(
        (
            "reference.assign_variable",
            "reference.read_variable",
            "reference.var_handle",
            "reference.hashtable",
            "reference.hashtable_find",
            "reference.hashtable_import",
            "reference.hashtable_size",
        ),
        "kernels/families/test_resources.py",
    ),
    **dict.fromkeys(
        ("reference.stablehlo_gather", "reference.stablehlo_reduce_window", "reference.stablehlo_scatter"),
        "kernels/test_stablehlo.py",
    ),
    **dict.fromkeys(
        (
            "recurrent.lstm_basic",
            "recurrent.lstm_integer",
            "recurrent.lstm_integer_steps",
            "recurrent.lstm_narrow",
            "reference.bidirectional_sequence_lstm",
        ),
        "kernels/recurrent/test_lstm.py",
    ),
    "reference.audio_spectrogram": "kernels/reference/test_mfcc.py",
    "reference.depthwise_conv_2d_version_7": "kernels/test_quantized_storage.py",
    "reference.lsh_projection": "kernels/reference/test_skip_gram.py",
    "reference.numeric_verify": "kernels/test_quantized_storage.py",
    "families.custom_options": "kernels/reference/test_detection_postprocess.py",
    "families.element_types": "kernels/test_slicing.py",
    "families.heap": "kernels/families/test_nms.py",
    "families.vector_blocks": "profiles/test_litert_opt.py",
    "optimized.narrow_functions": "profiles/test_litert_opt.py",
}


def files() -> list[str]:
    """The modules of the kernel folders, as "folder.module"."""
    named = []
    for folder in FOLDERS:
        package = import_module(f"{kernels.__name__}.{folder}")
        named += [f"{folder}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    return named


@pytest.mark.parametrize("name", files())
def test_a_kernel_file_has_a_test(name: str) -> None:
    folder, _, module = name.partition(".")
    own = TESTS / "kernels" / folder / f"test_{module.rstrip('_')}.py"
    assert own.is_file() != (name in TOGETHER), f"write {own.relative_to(TESTS)}, or name the test that covers it here"
    assert name not in TOGETHER or (TESTS / TOGETHER[name]).is_file()


def test_what_is_named_exists() -> None:
    assert set(TOGETHER) <= set(files())
