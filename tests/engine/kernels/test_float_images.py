"""Float operators over images and volumes against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.parameters import floats
from support.single_op import T, assert_same, build, tflq
from tflq.errors import ModelError


@each("seed", range(12))
def test_l2_pool(seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 3)), *(int(v) for v in rng.integers(1, 9, 2)), int(rng.integers(1, 5)))
    window = rng.integers(1, 5, 2)
    options = {
        "padding": seed % 2,
        "filter_height": int(window[0]),
        "filter_width": int(window[1]),
        "stride_h": int(rng.integers(1, 4)),
        "stride_w": int(rng.integers(1, 4)),
        "fused_activation_function": int(rng.choice([0, 1, 3])),
    }
    if seed % 2 and (window[0] > shape[1] or window[1] > shape[2]):
        options["padding"] = 0
    model = build("L2_POOL_2D", [T("float32", shape)], [T("float32", shape)], ("Pool2DOptions", options))
    assert_same(model, [floats(rng, shape)], (shape, options))


@pytest.mark.parametrize("seed", range(8))
def test_local_response_normalization(seed):
    rng = np.random.default_rng(seed)
    shape = (2, 3, 2, int(rng.integers(1, 12)))
    options = {
        "radius": int(rng.integers(-1, 9)),
        "bias": float(rng.uniform(0.5, 2)),
        "alpha": float(rng.uniform(0, 2)),
        "beta": float(rng.choice([0.5, 1, 0.75])),
    }
    model = build(
        "LOCAL_RESPONSE_NORMALIZATION",
        [T("float32", shape)],
        [T("float32", shape)],
        ("LocalResponseNormalizationOptions", options),
    )
    assert_same(model, [rng.normal(size=shape).astype(np.float32)], (shape, options))


def volume(rng, seed):
    """Random geometry of a 3-D convolution: sizes, kernel, channels, options."""
    sizes, kernel = (tuple(int(v) for v in rng.integers(low, high, 3)) for low, high in ((1, 7), (1, 4)))
    options = {"padding": seed % 2, "fused_activation_function": int(rng.choice([0, 1, 3]))}
    for letter, axis in zip("dhw", range(3), strict=True):
        options[f"stride_{letter}"] = int(rng.integers(1, 4))
        options[f"dilation_{letter}_factor"] = int(rng.integers(1, 3)) if seed % 3 == 0 else 1
        reach = (kernel[axis] - 1) * options[f"dilation_{letter}_factor"] + 1
        if seed % 2:
            sizes = (*sizes[:axis], max(sizes[axis], reach), *sizes[axis + 1 :])
    return sizes, kernel, int(rng.integers(1, 5)), int(rng.integers(1, 5)), options


def steps(options):
    return [(options[f"stride_{c}"], options[f"dilation_{c}_factor"]) for c in "dhw"]


def outputs(sizes, kernel, options):
    """Output sizes by the definition of SAME and VALID."""
    made = []
    for size, taps, (stride, dilation) in zip(sizes, kernel, steps(options), strict=True):
        made.append(-(-(size if options["padding"] == 0 else size - (taps - 1) * dilation) // stride))
    return tuple(made)


@each("seed", range(12))
def test_conv_3d(seed):
    rng = np.random.default_rng(seed)
    sizes, kernel, depth, filters, options = volume(rng, seed)
    x, w, b = (2, *sizes, depth), (*kernel, depth, filters), (filters,)
    bias = [T("float32", b, value=rng.normal(size=b))] if seed % 4 else []
    y = T("float32", (2, *outputs(sizes, kernel, options), filters))
    given = [T("float32", x), T("float32", w, value=rng.normal(size=w)), *bias]
    model = build("CONV_3D", given, [y], ("Conv3DOptions", options))
    assert_same(model, [rng.normal(size=x).astype(np.float32)], (x, w, options))


@each("seed", range(12))
def test_conv_3d_transpose(seed):
    rng = np.random.default_rng(100 + seed)
    sizes, kernel, depth, filters, options = volume(rng, seed)
    x, w, b = (2, *outputs(sizes, kernel, options), depth), (*kernel, filters, depth), (filters,)
    bias = [T("float32", b, value=rng.normal(size=b))] if seed % 4 else []
    y = (2, *sizes, filters)
    shape = T("int32", (5,), value=y if seed % 3 else None)
    given = [shape, T("float32", w, value=rng.normal(size=w)), T("float32", x), *bias]
    model = build("CONV_3D_TRANSPOSE", given, [T("float32", y)], ("Conv3DOptions", options))
    run_time = [] if seed % 3 else [np.array(y, np.int32)]
    assert_same(model, [*run_time, rng.normal(size=x).astype(np.float32)], (x, w, y, options))


def test_shapes_that_do_not_fit_are_refused():
    given = [
        T("int32", (5,), value=(1, 4, 4, 4, 2)),
        T("float32", (1, 1, 1, 2, 3), value=1),
        T("float32", (1, 4, 3, 4, 3)),
    ]
    options = {f"{kind}_{c}{end}": 1 for c in "dhw" for kind, end in (("stride", ""), ("dilation", "_factor"))}
    model = build("CONV_3D_TRANSPOSE", given, [T("float32", (1, 4, 4, 4, 2))], ("Conv3DOptions", options))
    with pytest.raises(ModelError, match="shape"):
        tflq(model, [np.zeros((1, 4, 3, 4, 3), np.float32)])
