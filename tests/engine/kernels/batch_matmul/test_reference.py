from __future__ import annotations

import numpy as np
import pytest

from support import contracting as c
from support.single_op import T, assert_same, build, tflq
from tflq.errors import ModelError, UndefinedResultError

DENSE = (
    ("float32", "float32", "float32"),
    ("uint8", "uint8", "uint8"),
    ("uint8", "uint8", "int16"),
    ("int8", "int8", "int8"),
    ("int8", "int4", "int8"),
    ("int8", "int2", "int8"),
    ("int16", "int8", "int16"),
    ("int16", "int4", "int16"),
    ("int16", "int16", "int16"),
)


def _dense_weights(rng: np.random.Generator, x: T, type_: str, shape: tuple[int, int]) -> T:
    if type_ in ("float32", "uint8"):
        return c.weights(rng, type_, shape, 0)
    value = c.codes(rng, type_, shape)
    if rng.random() < 0.5 and shape[0] > 1:
        return T(type_, shape, [c.scale(rng) for _ in range(shape[0])], 0, 0, value)
    return T(type_, shape, c.scale(rng), 0, value=value)


@pytest.mark.slow
@pytest.mark.parametrize("types", DENSE, ids=" ".join)
@pytest.mark.parametrize("seed", range(20))
def test_fully_connected(types: tuple[str, str, str], seed: int) -> None:
    rng = np.random.default_rng([seed, DENSE.index(types)])
    length, units = int(rng.choice([1, 3, 8, 64, 700])), int(rng.integers(1, 20))
    leading = [(4,), (1,), (2, 3), (1, 2, 2), ()][int(rng.integers(0, 5))]
    keep = bool(rng.random() < 0.5)
    options: dict[str, object] = {"keep_num_dims": keep, "fused_activation_function": int(rng.integers(0, 4))}
    x = c.activation(rng, types[0], (*leading, length))
    w = _dense_weights(rng, x, types[1], (units, length))
    bias_type = {"float32": "float32", "int16": "int64"}.get(types[0], "int32")
    if types[0] == "int16":
        options["quantized_bias_type"] = int(rng.choice([2, 4] if types[1] == "int16" else [0, 2, 4]))
        bias_type = "int32" if options["quantized_bias_type"] == 2 else "int64"
    b = c.bias(rng, x, w, units, bias_type)
    rows = int(np.prod(leading))
    y = c.result(rng, x, w, (*leading, units) if keep else (rows, units), length, types[2])
    if types[2] == "int16":
        y = T(y.type, y.shape, y.scale, 0)
    inputs = [x, w, b] if rng.random() < 0.7 or types == ("uint8", "uint8", "int16") else [x, w, None]
    model = build("FULLY_CONNECTED", inputs, [y], ("FullyConnectedOptions", options), 14)
    assert_same(model, [c.codes(rng, types[0], tuple(x.shape))], (options, bias_type))


def test_extremes() -> None:
    """Accumulators at the ends: int32 sums of 16-bit activations wrap, large scales leave int32."""
    rng = np.random.default_rng(5)
    for scale in (1e-4, 0.01, 3.0):
        x, y = T("int16", (3, 900), 0.5, 0), T("int16", (3, 4), scale, 0)
        w = T("int8", (4, 900), 0.25, 0, value=rng.choice([-128, 127], (4, 1)) * np.ones((1, 900)))
        options = {"quantized_bias_type": 2}
        b = T("int32", (4,), 0.125, value=[2**31 - 1, -(2**31), 5, 0])
        model = build("FULLY_CONNECTED", [x, w, b], [y], ("FullyConnectedOptions", options), 11)
        assert_same(model, [np.array([[-(2**15)], [2**15 - 1], [77]], np.int16) * np.ones((1, 900), np.int16)], scale)


def test_rest_is_not_read() -> None:
    """An input that is no whole number of rows, and weights without columns."""
    rng = np.random.default_rng(6)
    for type_ in ("float32", "int8"):
        x = c.activation(rng, type_, (2, 7))
        w = c.weights(rng, type_, (3, 4), 0)
        y = c.result(rng, x, w, (3, 3), 4)
        assert_same(
            build("FULLY_CONNECTED", [x, w, None], [y], ("FullyConnectedOptions", {})), [c.codes(rng, type_, (2, 7))]
        )


@pytest.mark.parametrize("types", [("float32",) * 2, ("uint8",) * 2, ("int8",) * 2], ids=" ".join)
def test_computed_weights(types: tuple[str, str]) -> None:
    rng = np.random.default_rng(8)
    x = c.activation(rng, types[0], (5, 12))
    w = c.weights(rng, types[0], (6, 12), 0)
    b = c.bias(rng, x, w, 6, "float32" if types[0] == "float32" else "int32")
    y = c.result(rng, x, w, (5, 6), 12)
    free = [T(t.type, t.shape, t.scale, t.zero_point, t.axis) for t in (w, b)]
    model = build("FULLY_CONNECTED", [x, *free], [y], ("FullyConnectedOptions", {}))
    assert_same(model, [c.codes(rng, types[0], (5, 12)), w.value, np.asarray(b.value).astype(b.type)])


@pytest.mark.parametrize(
    ("w", "bias", "options", "match"),
    [
        (T("int8", (4, 3, 1), 0.1, value=1), None, {}, "number of dimensions"),
        (T("int8", (4, 3), value=1), None, {}, "no quantization"),
        (T("int8", (4, 3), [0.1] * 3, 0, 1, value=1), None, {}, "quantized dimension"),
        (T("int4", (4, 3), 0.1, 1, value=1), None, {}, "zero point"),
        (T("int8", (4, 3), 0.1, value=1), T("int32", (3,), 0.01, value=0), {}, "bias length"),
        (T("int8", (4, 3), 0.1, value=1), T("int32", (4,), 9.0, value=0), {}, "bias scale"),
        (T("int8", (4, 3), 0.1, value=1), None, {"weights_format": 1}, "shuffled"),
        (T("int8", (4, 3), 0.1, value=1), None, {"fused_activation_function": 4}, "fused activation"),
        (T("int8", (4, 5), 0.1, value=1), None, {"keep_num_dims": True}, "last dimension"),
    ],
)
def test_refused(w: T, bias: T | None, options: dict[str, object], match: str) -> None:
    x, y = T("int8", (2, 3), 0.1, 0), T("int8", (2, 4), 0.1, 0)
    with pytest.raises(ModelError, match=match):
        tflq(
            build("FULLY_CONNECTED", [x, w, bias], [y], ("FullyConnectedOptions", options)), [np.zeros((2, 3), np.int8)]
        )


def test_undefined() -> None:
    x, y, w = T("int16", (2, 3), 0.1, 0), T("int16", (2, 4), 0.1, 0), T("int8", (4, 3), 0.1, value=1)
    b = T("int32", (4,), 0.01, value=0)
    with pytest.raises(UndefinedResultError):
        tflq(build("FULLY_CONNECTED", [x, w, b], [y], ("FullyConnectedOptions", {})), [np.zeros((2, 3), np.int16)])


PAIRS = (
    ("float32", "float32", "float32"),
    ("int8", "int8", "int8"),
    ("int8", "int8", "int32"),
    ("int16", "int16", "int16"),
    ("int16", "int8", "int16"),
)


@pytest.mark.slow
@pytest.mark.parametrize("types", PAIRS, ids=" ".join)
@pytest.mark.parametrize("seed", range(25))
def test_batch_matmul(types: tuple[str, str, str], seed: int) -> None:
    rng = np.random.default_rng([seed, PAIRS.index(types), 3])
    rows, length, columns = int(rng.integers(1, 9)), int(rng.choice([1, 5, 32, 700])), int(rng.integers(1, 9))
    adj_x, adj_y = (bool(rng.integers(0, 2)) for _ in range(2))
    full = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 4))))
    cut = [tuple(1 if rng.random() < 0.3 else n for n in full) for _ in range(2)]
    leads = [lead[int(rng.integers(0, len(lead) + 1)) :] if rng.random() < 0.3 else lead for lead in cut]
    shape_x = (*leads[0], *((length, rows) if adj_x else (rows, length)))
    shape_y = (*leads[1], *((columns, length) if adj_y else (length, columns)))
    lead = np.broadcast_shapes(*leads)
    x, y = c.activation(rng, types[0], shape_x), c.activation(rng, types[1], shape_y)
    if types[0] == "int16":
        y = T(y.type, y.shape, y.scale, 0)
    out = (
        T("int32", (*lead, rows, columns), 0.1)
        if types[2] == "int32"
        else c.result(rng, x, y, (*lead, rows, columns), length)
    )
    values = [c.codes(rng, types[0], shape_x), c.codes(rng, types[1], shape_y)]
    if rng.random() < 0.3:
        y = T(y.type, y.shape, y.scale, y.zero_point, value=values.pop())
    options = ("BatchMatMulOptions", {"adj_x": adj_x, "adj_y": adj_y})
    assert_same(build("BATCH_MATMUL", [x, y], [out], options, 4), values, (shape_x, shape_y, adj_x, adj_y))


@pytest.mark.parametrize(
    ("shapes", "match"), [(((3,), (3, 2)), "rank"), (((2, 3), (4, 2)), "inner"), (((2, 2, 3), (3, 3, 2)), "broadcast")]
)
def test_batch_matmul_refused(shapes: tuple[tuple[int, ...], tuple[int, ...]], match: str) -> None:
    model = build(
        "BATCH_MATMUL",
        [T("float32", s) for s in shapes],
        [T("float32", (2, 2))],
        ("BatchMatMulOptions", {"adj_x": False, "adj_y": False}),
    )
    with pytest.raises(ModelError, match=match):
        tflq(model, [np.zeros(s, np.float32) for s in shapes])
