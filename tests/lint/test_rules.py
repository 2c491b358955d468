"""Every rule: a planted breach that it finds, and a near miss on which it stays silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import suites

from tflq.api.files import load, save
from tflq.interpreter import make_plan, run
from tflq.ir import Buffer, Model, Operator, OperatorCode, Quantization, Record, Subgraph, TensorSpec, TensorType
from tflq.lint import lint
from tflq.lint.fixes import fixed
from tflq.lint.session import RULES
from tflq.profiles import PROFILES

I8, I16, I32, U8 = TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.UINT8
SMALLEST_NORMAL = 2.0**-126


def t(type_: TensorType, scale: float | list[float], zero_point: int = 0, *, dimension: int = 0) -> TensorSpec:
    scales = np.atleast_1d(np.array(scale, np.float32))
    q = Quantization(scales, np.full(scales.size, zero_point, np.int64), dimension)
    return TensorSpec("t", type_, (1, 4), quantization=q)


def model(op: str, inputs: list[TensorSpec], output: TensorSpec, version: int = 9, **options: float) -> Model:
    count = len(inputs)
    operator = Operator(0, tuple(range(count)), (count,), Record("SoftmaxOptions", options) if options else None)
    graph = Subgraph((*inputs, output), tuple(range(count)), (count,), (operator,))
    return Model(3, (OperatorCode(0, op, version),), (graph,), (Buffer(),))


def dense(
    bias: float | list[float] = 0.125, bias_zp: int = 0, weights: float | list[float] = 0.25, weights_zp: int = 0,
    dimension: int = 0, values: tuple[int, ...] = (0, 0, 0, 0), version: int = 4,
) -> Model:  # fmt: skip
    w = replace(t(I8, weights, weights_zp, dimension=dimension), shape=(4, 4))
    b = replace(t(I32, bias, bias_zp), shape=(4,), buffer=1)
    made = model("FULLY_CONNECTED", [t(I8, 0.5, 3), w, b], t(I8, 0.5), version)
    return replace(made, buffers=(Buffer(), Buffer(np.array(values, "<i4").view(np.uint8))))


ONE_BIT_MORE = float(np.nextafter(np.float32(0.125), np.float32(1)))

#: rule -> (planted breach, near miss)
CASES: dict[str, list[tuple[Callable[[], Model], Callable[[], Model]]]] = {
    "equal-scale": [
        (
            lambda: model("RESHAPE", [t(I8, 0.5, 1)], t(I8, 0.5, 2)),
            lambda: model("RESHAPE", [t(I8, 0.5, 1)], t(I8, 0.5, 1)),
        ),
        (
            lambda: model("MAX_POOL_2D", [t(U8, 0.5, 1)], t(U8, 0.25, 1)),
            lambda: model("RELU", [t(U8, 0.5, 1)], t(U8, 0.25, 1)),
        ),
        (
            lambda: model("CONCATENATION", [t(I8, 0.5), t(I8, 0.25)], t(I8, 0.5)),
            lambda: model("CONCATENATION", [t(U8, 0.5), t(U8, 0.25)], t(U8, 0.5)),
        ),
        (
            lambda: model("PADV2", [t(I8, 0.5), t(I32, 9), t(I8, 0.25)], t(I8, 0.5)),
            lambda: model("PADV2", [t(I8, 0.5), t(I32, 9), t(I8, 0.5)], t(I8, 0.5)),
        ),
    ],
    "fixed-output": [
        (
            lambda: model("SOFTMAX", [t(I8, 0.5)], t(I8, 1.0011 / 256, -128), beta=1.0),
            lambda: model("SOFTMAX", [t(I8, 0.5)], t(I8, 1.0009 / 256, -128), beta=1.0),
        ),
        (
            lambda: model("LOGISTIC", [t(I8, 0.5)], t(I8, 1 / 256, -127)),
            lambda: model("LOGISTIC", [t(I8, 0.5)], t(I8, 1 / 256, -128)),
        ),
        (
            lambda: model("TANH", [t(U8, 0.5)], t(U8, 1 / 128, 127)),
            lambda: model("TANH", [t(U8, 0.5)], t(U8, 1 / 128, 128)),
        ),
        (
            lambda: model("LOG_SOFTMAX", [t(I8, 0.5)], t(I8, 1 / 16, 126)),
            lambda: model("LOG_SOFTMAX", [t(I8, 0.5)], t(I8, 1 / 16, 127)),
        ),
    ],
    "softmax-range": [
        (
            lambda: model("SOFTMAX", [t(I8, 2.0**-26)], t(I8, 1 / 256, -128), beta=1.0),
            lambda: model("SOFTMAX", [t(I8, 2.0**-25)], t(I8, 1 / 256, -128), beta=1.0),
        ),
        (
            lambda: model("SOFTMAX", [t(I8, 32.0)], t(I8, 1 / 256, -128), beta=1.0),
            lambda: model("SOFTMAX", [t(I8, 32.0)], t(I8, 1 / 256, -128), beta=0.5),
        ),
    ],
    "int16-zero-point": [
        (
            lambda: model("ADD", [t(I16, 0.5), t(I16, 0.5, 1)], t(I16, 0.5)),
            lambda: model("ADD", [t(I16, 0.5)] * 2, t(I16, 0.5)),
        ),
        (lambda: model("ABS", [t(I16, 0.5, -1)], t(I16, 0.5)), lambda: model("ABS", [t(I8, 0.5, -1)], t(I8, 0.5))),
    ],
    "zero-point-range": [
        (lambda: model("RELU", [t(I8, 0.5, 128)], t(I8, 0.5)), lambda: model("RELU", [t(I8, 0.5, 127)], t(I8, 0.5))),
        (lambda: model("RELU", [t(U8, 0.5, -1)], t(U8, 0.5)), lambda: model("RELU", [t(U8, 0.5, 255)], t(U8, 0.5))),
    ],
    "usable-scale": [
        (
            lambda: model("RELU", [t(I8, SMALLEST_NORMAL / 2)], t(I8, 0.5)),
            lambda: model("RELU", [t(I8, SMALLEST_NORMAL)], t(I8, 0.5)),
        ),
        (lambda: model("RELU", [t(I8, np.inf)], t(I8, 0.5)), lambda: model("RELU", [t(I32, np.inf)], t(I8, 0.5))),
        (lambda: model("RELU", [t(I8, -1.0)], t(I8, 0.5)), lambda: model("RELU", [t(I8, 1e30)], t(I8, 0.5))),
    ],
    "bias-scale": [
        (lambda: dense(bias=0.12501), lambda: dense(bias=ONE_BIT_MORE)),
        (
            lambda: dense(bias=[0.125, 0.25, 0.125, 0.125], weights=[0.25] * 4),
            lambda: dense(bias=[0.125, 0.25, 0.125, 0.125], weights=[0.25, 0.5, 0.25, 0.25]),
        ),
    ],
    "bias-zero-point": [(lambda: dense(bias_zp=1), lambda: dense(bias_zp=0))],
    "bias-saturated": [
        (lambda: dense(values=(0, -(2**31) + 1, 2**31 - 1, 0)), lambda: dense(values=(0, 2**31 - 2, 0, -(2**31) + 2)))
    ],
    "weights-zero-point": [(lambda: dense(weights_zp=1), lambda: dense(weights_zp=0))],
    "channel-count": [
        (lambda: dense(weights=[0.25] * 3), lambda: dense(weights=[0.25] * 4)),
        (lambda: dense(weights=[0.25] * 4, dimension=1), lambda: dense(weights=0.25, dimension=1)),
    ],
    "operator-version": [
        (lambda: dense(version=3), lambda: dense(version=4)),
        (
            lambda: model("MAX_POOL_2D", [t(I8, 0.5)], t(I8, 0.5), version=1),
            lambda: model("MAX_POOL_2D", [t(U8, 0.5)], t(U8, 0.5), version=1),
        ),
    ],
}
PAIRS = [pytest.param(rule, *pair, id=f"{rule}-{i}") for rule, pairs in CASES.items() for i, pair in enumerate(pairs)]


def rules_of(made: Model) -> set[str]:
    return {finding.rule for finding in lint(made).findings}


def test_every_rule_has_cases() -> None:
    assert set(CASES) == {rule.id for rule in RULES}


@pytest.mark.parametrize(("rule", "breach", "near"), PAIRS)
def test_a_breach_is_found_and_a_near_miss_is_not(
    rule: str, breach: Callable[[], Model], near: Callable[[], Model]
) -> None:
    assert rule in rules_of(breach())
    assert rule not in rules_of(near())


@pytest.mark.parametrize(
    "make",
    [lambda: dense(bias=0.3), lambda: dense(bias_zp=7), lambda: dense(version=1)],
    ids=["scale", "zero", "version"],
)
def test_what_is_fixable_is_gone_after_the_fix(make: Callable[[], Model]) -> None:
    findings = lint(make()).findings
    assert findings
    assert all(f.fixable for f in findings)
    better, corrected = fixed(make(), findings)
    assert corrected == findings
    assert lint(load(save(better))).findings == ()


def test_a_fix_changes_no_bit() -> None:
    """Of a recorded model whose bias scales, zero points and versions were spoilt."""
    path = suites.ROOT / "golden/models/digits_mobilenet_int8.tflite"
    right = load(path)
    graph = right.subgraphs[0]
    biases = {o.inputs[2] for o in graph.operators if len(o.inputs) > 2}
    spoilt = tuple(
        replace(s, quantization=replace(s.quantization, scale=s.quantization.scale * np.float32(1.001)))
        if i in biases and s.quantization is not None
        else s
        for i, s in enumerate(graph.tensors)
    )
    broken = replace(right, subgraphs=(replace(graph, tensors=spoilt),))
    assert lint(right).findings == ()
    assert rules_of(broken) == {"bias-scale"}
    better, _ = fixed(broken, lint(broken).findings)
    assert rules_of(better) == set()
    spec = graph.tensors[graph.inputs[0]]
    value = np.random.default_rng(0).integers(-128, 128, spec.shape).astype(np.int8)
    results = [
        run(make_plan(m, PROFILES["litert-ref"]), {graph.inputs[0]: value}).values[graph.outputs[0]]
        for m in (right, better)
    ]
    assert np.array_equal(*results)


@pytest.mark.parametrize("target", ["litert", "tflm"])
def test_targets_name_what_they_refuse(target: str) -> None:
    unknown = model("NO_SUCH_OPERATOR", [t(I8, 0.5)], t(I8, 0.5))
    assert {f.rule for f in lint(unknown, target).findings} == {"refused"}
    assert lint(suites.ROOT / "golden/models/digits_mobilenet_int8.tflite", target).findings == ()


def test_cmsis_nn_takes_no_uint8_where_its_kernels_stand_in() -> None:
    def rules(type_: TensorType, op: str) -> set[str]:
        return {f.rule for f in lint(model(op, [t(type_, 0.5), t(type_, 0.5)], t(type_, 0.5)), "cmsis-nn").findings}

    assert "cmsis-nn-types" in rules(U8, "ADD")
    assert "cmsis-nn-types" not in rules(I8, "ADD")
    assert "cmsis-nn-types" not in rules(U8, "CONCATENATION")


def test_cmsis_nn_takes_channels_of_dense_weights_with_int8_only() -> None:
    def rules(data: TensorType, scales: list[float]) -> set[str]:
        w = replace(t(I8, scales), shape=(4, 4))
        made = model("FULLY_CONNECTED", [t(data, 0.5), w], t(data, 0.5))
        return {f.rule for f in lint(made, "cmsis-nn").findings}

    assert "cmsis-nn-types" in rules(I16, [0.5] * 4)
    assert "cmsis-nn-types" not in rules(I8, [0.5] * 4)
    assert "cmsis-nn-types" not in rules(I16, [0.5])
