"""Float operators of `litert-opt`, many of whose sums Eigen orders, held against LiteRT's on random models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.processors import here
from support.running import assert_same, run
from support.single_op import FULL, T, build, litert
from tflq.engine.profiles import by_name
from tflq.errors import UndefinedResultError

pytestmark = pytest.mark.slow

Array = np.ndarray[Any, Any]
RELUS = (0, 1, 3)


def normal(rng: np.random.Generator, *shape: int, strange: float = 0) -> Array:
    """Normal numbers; a part of `strange` of them NaN, infinite or a zero of either sign."""
    x = rng.standard_normal(shape).astype(np.float32)
    if strange:
        odd = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32), shape)
        x = np.where(rng.random(shape) < strange, odd, x)
    return x


def check(model: bytes, inputs: list[Array], note: object) -> None:
    """The same bits as LiteRT."""
    assert_same(run(model, inputs, here("litert-opt")), litert(model, inputs, FULL), str(note))


def sliding(rng: np.random.Generator, size: tuple[int, int], kernel: tuple[int, int]) -> tuple[dict[str, Any], Any]:
    """Options of a window, and the output's size."""
    same = rng.random() < 0.5
    stride = rng.integers(1, 3, 2) if rng.random() < 0.5 else np.ones(2, int)
    dilation = rng.integers(1, 3, 2) if (stride == 1).all() and rng.random() < 0.3 else np.ones(2, int)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    out = [-(-n // s) if same else (n - r) // s + 1 for n, s, r in zip(size, stride, reach, strict=True)]
    options = {
        "padding": 0 if same else 1,
        "stride_h": int(stride[0]),
        "stride_w": int(stride[1]),
        "dilation_h_factor": int(dilation[0]),
        "dilation_w_factor": int(dilation[1]),
        "fused_activation_function": int(rng.choice(RELUS)),
    }
    return options, tuple(int(n) for n in out)


@pytest.mark.parametrize("seed", range(40))
def test_convolutions(seed: int) -> None:
    rng = np.random.default_rng([10, seed])
    kernel = (1, 1) if seed % 4 == 0 else tuple(int(n) for n in rng.integers(1, 4, 2))
    size = tuple(int(n) + 2 * k for n, k in zip(rng.integers(0, 12, 2), kernel, strict=True))
    n, depth, units = int(rng.integers(1, 4)), int(rng.integers(1, 40)), int(rng.integers(1, 30))
    if seed % 10 == 9:
        depth, kernel = 120, (3, 3)  # more than one panel
        size = (7, 8)
    options, out = sliding(rng, size, kernel)  # type: ignore[arg-type]
    x = normal(rng, n, *size, depth, strange=0.01 * (seed % 3 == 0))
    w = T("float32", (units, *kernel, depth), value=normal(rng, units, *kernel, depth))
    bias = T("float32", (units,), value=normal(rng, units))
    output = T("float32", (n, *out, units))
    model = build("CONV_2D", [T("float32", x.shape), w, bias], [output], ("Conv2DOptions", options))
    check(model, [x], (x.shape, w.shape, options))


@pytest.mark.parametrize("seed", range(40))
def test_depthwise_convolutions(seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    kernel = tuple(int(n) for n in rng.integers(1, 4, 2))
    size = tuple(int(n) + 2 * k for n, k in zip(rng.integers(0, 12, 2), kernel, strict=True))
    n, depth, times = int(rng.integers(1, 4)), int(rng.integers(1, 40)), int(rng.choice([1, 1, 2, 3, 8]))
    if seed % 10 == 9:
        depth, times = 700, 3  # two pixels fill the buffer
    options, out = sliding(rng, size, kernel)  # type: ignore[arg-type]
    options["depth_multiplier"] = times
    x = normal(rng, n, *size, depth, strange=0.02 * (seed % 2))
    w = T("float32", (1, *kernel, depth * times), value=normal(rng, 1, *kernel, depth * times))
    bias = T("float32", (depth * times,), value=np.where(normal(rng, depth * times) > 0, 0.5, -0.0))
    model = build(
        "DEPTHWISE_CONV_2D",
        [T("float32", x.shape), w, bias],
        [T("float32", (n, *out, depth * times))],
        ("DepthwiseConv2DOptions", options),
    )
    check(model, [x], (x.shape, w.shape, options))


@pytest.mark.parametrize("seed", range(60))
def test_dense_layers(seed: int) -> None:
    rng = np.random.default_rng([12, seed])
    rows, depth, units = (int(n) for n in rng.integers(1, [6, 80, 20]))
    if seed % 5 == 0:
        rows = units = 1
    if seed % 7 == 0:
        depth = int(rng.integers(600, 1500))
    x = normal(rng, rows, depth, strange=0.01 * (seed % 3 == 0))
    w = T("float32", (units, depth), value=normal(rng, units, depth))
    bias = [T("float32", (units,), value=normal(rng, units))] * (seed % 4 > 0)
    options = {"fused_activation_function": int(rng.choice(RELUS))}
    model = build(
        "FULLY_CONNECTED",
        [T("float32", x.shape), w, *bias],
        [T("float32", (rows, units))],
        ("FullyConnectedOptions", options),
    )
    check(model, [x], (rows, depth, units))


@pytest.mark.parametrize("seed", range(40))
def test_functions(seed: int) -> None:
    rng = np.random.default_rng([13, seed])
    rows, depth = (int(n) for n in rng.integers(1, [9, 40]))
    x = normal(rng, rows, depth) * np.float32(rng.choice([1, 10, 60]))
    whole = T("float32", x.shape)
    beta = float(rng.choice([1, 0.3]))
    check(build("SOFTMAX", [whole], [whole], ("SoftmaxOptions", {"beta": beta})), [x], ("SOFTMAX", x.shape, beta))
    for op in ("LOGISTIC", "TANH"):
        check(build(op, [whole], [whole]), [x], (op, x.shape))


def test_one_row_times_one_column_in_2_14() -> None:
    """Packets of four go to two accumulators in turn; the rest follows one by one."""
    rng = np.random.default_rng(14)
    differ = 0
    for depth in (4, 8, 20, 31, 64, 100):
        x, w = normal(rng, 1, depth), normal(rng, 1, depth)
        terms = (x * w)[0]
        packets = terms[: depth & ~3].reshape(-1, 4)
        lanes = [np.zeros(4, np.float32), np.zeros(4, np.float32)]
        for number, packet in enumerate(packets[: len(packets) & ~1] if len(packets) > 1 else packets):
            lanes[number & 1] = lanes[number & 1] + packet
        total = lanes[0] + lanes[1]
        if len(packets) > 1 and len(packets) & 1:
            total = total + packets[-1]
        want = (total[0] + total[2]) + (total[1] + total[3])
        for term in terms[depth & ~3 :]:
            want = want + term
        model = build(
            "FULLY_CONNECTED",
            [T("float32", x.shape), T("float32", w.shape, value=w)],
            [T("float32", (1, 1))],
            ("FullyConnectedOptions", {}),
        )
        assert run(model, [x], "tflite-2.14-opt")[0].item() == want
        differ += run(model, [x], "litert-opt")[0].item() != want
    assert differ


def test_an_absent_bias_is_read_through_a_null_pointer() -> None:
    w = T("float32", (1, 1, 1, 2), value=np.ones((1, 1, 1, 2)))
    options = {"stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    x = T("float32", (1, 2, 2, 2))
    model = build("DEPTHWISE_CONV_2D", [x, w], [x], ("DepthwiseConv2DOptions", options))
    for profile in ("litert-opt", "tflite-2.14-opt", "litert-xnnpack"):  # XNNPACK takes it with a bias only
        with pytest.raises(UndefinedResultError, match="null"):
            run(model, [np.ones(x.shape, np.float32)], profile)
    run(model, [np.ones(x.shape, np.float32)], "litert-ref")


def test_what_is_not_reproduced_is_not_promised() -> None:
    for profile in ("litert-opt", "tflite-2.14-opt"):
        kernels = by_name(profile).kernels
        for op in ("CONV_3D", "CONV_3D_TRANSPOSE", "LOCAL_RESPONSE_NORMALIZATION"):
            words = {row.exactness.word for row in kernels[op] if row.signature.is_float}
            assert words == {"close"}, (profile, op)


def test_volumes_in_2_14_add_up_as_images_do() -> None:
    """A volume one element deep is an image."""
    rng = np.random.default_rng(15)
    x, w, bias = normal(rng, 2, 6, 7, 9), normal(rng, 5, 3, 2, 9), T("float32", (5,), value=normal(rng, 5))
    steps = {"padding": 0, "stride_h": 2, "stride_w": 1}
    flat = build(
        "CONV_2D",
        [T("float32", x.shape), T("float32", w.shape, value=w), bias],
        [T("float32", (2, 3, 7, 5))],
        ("Conv2DOptions", steps),
    )
    deep, filters = x[:, None], w.transpose(1, 2, 3, 0)[None]
    volume = build(
        "CONV_3D",
        [T("float32", deep.shape), T("float32", filters.shape, value=filters), bias],
        [T("float32", (2, 1, 3, 7, 5))],
        ("Conv3DOptions", {**steps, "stride_d": 1}),
    )
    images, volumes = run(flat, [x], "tflite-2.14-opt")[0], run(volume, [deep], "tflite-2.14-opt")[0]
    np.testing.assert_array_equal(volumes[:, 0], images)
    assert (run(volume, [deep], "litert-ref")[0] != volumes).any()
