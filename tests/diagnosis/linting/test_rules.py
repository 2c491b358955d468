"""Every rule: a planted breach that it finds, and a near miss on which it stays silent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support import devices, suites
from support.composites import attention
from support.each import each
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.comparison.goldens.stored import load_golden
from tflq.diagnosis.linting import portable
from tflq.diagnosis.linting import rules as findings
from tflq.diagnosis.linting.lint import RULES, fixed, lint
from tflq.diagnosis.linting.targets import TARGETS, UNDEFINED, target_rules
from tflq.engine.api.files import load, save
from tflq.errors import UnknownNameError
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
)
from tflq.model.ir.model import enum

I8, I16, I32, U8 = TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.UINT8
SMALLEST_NORMAL = 2.0**-126


def t(type_: TensorType, scale: float | list[float], zero_point: int = 0, *, dimension: int = 0) -> TensorSpec:
    scales = np.atleast_1d(np.array(scale, np.float32))
    q = Quantization(scales, np.full(scales.size, zero_point, np.int64), dimension)
    return TensorSpec("t", type_, (1, 4), quantization=q)


def model(op: str, inputs: list[TensorSpec], output: TensorSpec, version: int = 9, **options: float) -> Model:
    count = len(inputs)
    operator = Operator(0, tuple(range(count)), (count,), _record(op, options))
    graph = Subgraph((*inputs, output), tuple(range(count)), (count,), (operator,))
    code = enum("BuiltinOperator").get(op, 999)
    return Model(3, (OperatorCode(code, op, version),), (graph,), (Buffer(),))


def _record(op: str, options: dict[str, float]) -> Record | None:
    return Record(f"{op.title().replace('_', '')}Options", options) if options else None


def dense(
    bias: float | list[float] = 0.125,
    bias_zp: int = 0,
    weights: float | list[float] = 0.25,
    weights_zp: int = 0,
    dimension: int = 0,
    values: tuple[int, ...] = (0, 0, 0, 0),
    version: int = 4,
) -> Model:
    w = replace(t(I8, weights, weights_zp, dimension=dimension), shape=(4, 4))
    b = replace(t(I32, bias, bias_zp), shape=(4,), buffer=1)
    made = model("FULLY_CONNECTED", [t(I8, 0.5, 3), w, b], t(I8, 0.5), version)
    return replace(made, buffers=(Buffer(), Buffer(np.array(values, "<i4").view(np.uint8))))


def chain(tensors: list[TensorSpec], operators: list[tuple[str, tuple[int, ...], int]]) -> Model:
    """Return operators (name, inputs, output) in a row; the first tensor is the input, the last one the output."""
    codes = tuple(OperatorCode(enum("BuiltinOperator")[op], op, 1) for op, _, _ in operators)
    made = tuple(Operator(i, inputs, (output,), None) for i, (_, inputs, output) in enumerate(operators))
    graph = Subgraph(tuple(tensors), (0,), (len(tensors) - 1,), made)
    return Model(3, codes, (graph,), (Buffer(), Buffer(np.zeros(16, np.uint8))))


def joined(scale: float, through: str = "") -> Model:
    """Return a concatenation of scale 1 of an input of another scale, which a QUANTIZE or `through` rescales."""
    if through == "RESHAPE":
        operators = [("QUANTIZE", (0,), 1), ("RESHAPE", (1,), 2), ("CONCATENATION", (2, 2), 3)]
        return chain([t(I8, scale), t(I8, 1.0), t(I8, 1.0), t(I8, 1.0)], operators)
    operators = [(through or "QUANTIZE", (0,), 1), ("CONCATENATION", (1, 1), 2)]
    return chain([t(I8, scale), t(I8, 1.0), t(I8, 1.0)], operators)


def with_scores(scale: float, squashing: str = "LOGISTIC") -> Model:
    """Return an output that joins an input and its probabilities, or other values, in one scale."""
    operators = [(squashing, (0,), 1), ("QUANTIZE", (1,), 2), ("CONCATENATION", (0, 2), 3)]
    output = replace(t(I8, scale), shape=(2, 4))
    return chain([t(I8, scale), t(I8, 1 / 256, -128), t(I8, scale), output], operators)


def shell(*, is_float: bool) -> Model:
    """Return an int8 input whose FULLY_CONNECTED computes in float32 or in int8."""
    real = TensorSpec("t", TensorType.FLOAT32, (1, 4))
    weights = replace(real if is_float else t(I8, 0.5), shape=(4, 4), buffer=1)
    middle = real if is_float else t(I8, 0.5)
    operators = [("DEQUANTIZE", (0,), 1), ("FULLY_CONNECTED", (1 if is_float else 0, 3), 2)]
    return chain([t(I8, 0.5), real, middle, weights], operators)


def between(*ops: str, last: str = "QUANTIZE") -> Model:
    """Return operators in float32 between codes and a QUANTIZE, or another last operator."""
    real = TensorSpec("t", TensorType.FLOAT32, (1, 4))
    row = [("DEQUANTIZE", (0,), 1), *((op, (k + 1,), k + 2) for k, op in enumerate(ops))]
    count = len(row)
    return chain([t(I8, 0.5), *[real] * count, t(I8, 0.5)], [*row, (last, (count,), count + 1)])


def padded() -> Model:
    """Return a PAD whose amounts are computed."""
    amounts = TensorSpec("t", I32, (2, 2))
    made = chain([t(I8, 0.5), amounts, amounts, t(I8, 0.5)], [("ABS", (1,), 2), ("PAD", (0, 2), 3)])
    return replace(made, subgraphs=(replace(made.subgraphs[0], inputs=(0, 1)),))


def summed(type_: TensorType) -> Model:
    axes = replace(TensorSpec("t", I32, (1,)), buffer=1)
    return chain([t(type_, 0.5), axes, t(type_, 0.5)], [("SUM", (0, 1), 2)])


def wide_sums(taps: int, *, has_bias: bool = False) -> Model:
    """Return 16-bit activations without a bias or with one of int64; 32768 * 127 * 517 is beyond 32 bits."""
    weights = np.full((2, taps), 127, np.int8)
    operands = [T("int16", (1, taps), 0.01, 0), T("int8", (2, taps), 0.01, 0, value=weights)]
    operands += [T("int64", (2,), 0.0001, 0, value=np.zeros(2, np.int64))] if has_bias else []
    return devices.one("FULLY_CONNECTED", operands, T("int16", (1, 2), 1.0, 0))


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
    "scale-count": [
        (lambda: dense(weights=[0.25] * 3), lambda: dense(weights=[0.25] * 4)),
        (lambda: dense(weights=0.25, dimension=2), lambda: dense(weights=0.25, dimension=1)),
    ],
    "buffer-size": [(lambda: dense(values=(0, 0, 0)), lambda: dense(values=(0, 0, 0, 0, 0)))],
    "coarse-operand": [
        (lambda: joined(1 / 256), lambda: joined(1 / 7)),
        (lambda: joined(1 / 256, "RESHAPE"), lambda: joined(1 / 7, "RESHAPE")),
        (
            lambda: model("CONCATENATION", [t(U8, 0.5), t(U8, 0.05)], t(U8, 0.5)),
            lambda: model("CONCATENATION", [t(U8, 0.5), t(U8, 0.07)], t(U8, 0.5)),
        ),
        (lambda: joined(1.0, "RELU6"), lambda: joined(1.0, "RELU")),
    ],
    "lost-scores": [
        (lambda: with_scores(1 / 62), lambda: with_scores(1 / 64)),
        (lambda: with_scores(6.7), lambda: with_scores(6.7, "ABS")),
    ],
    "narrow-sums": [
        (lambda: wide_sums(517), lambda: wide_sums(516)),
        (lambda: wide_sums(600), lambda: wide_sums(600, has_bias=True)),
    ],
    "float-between": [
        (lambda: between("LOGISTIC"), lambda: between("RELU", last="LOGISTIC")),
        (lambda: between("SIN", "TANH"), lambda: between("SIN")),  # which has no int8 kernel
    ],
    "float-inside": [(lambda: shell(is_float=True), lambda: shell(is_float=False))],
    "composite": [
        (
            lambda: load(attention((1, 2, 1, 4), (1, 3, 1, 4), None, {})),
            lambda: load(attention((1, 2, 1, 4), (1, 3, 1, 4), None, {}, "odml.unknown")),
        )
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


@each(("rule", "breach", "near"), PAIRS)
def test_a_breach_is_found_and_a_near_miss_is_not(
    rule: str, breach: Callable[[], Model], near: Callable[[], Model]
) -> None:
    assert rule in rules_of(breach())
    assert rule not in rules_of(near())


BREACHES = [
    pytest.param(breach, id=f"{rule}-{i}") for rule, pairs in CASES.items() for i, (breach, _) in enumerate(pairs)
]


@each("breach", BREACHES)
def test_what_is_fixable_is_gone_after_the_fix_and_nothing_else(breach: Callable[[], Model]) -> None:
    findings = lint(breach()).findings
    better, corrected = fixed(breach(), findings)
    assert corrected == tuple(f for f in findings if f.fixable)
    assert lint(load(save(better))).findings == tuple(f for f in findings if not f.fixable)


def test_what_can_be_fixed_is_what_kernels_do_not_read() -> None:
    fixable = {f.rule for pairs in CASES.values() for breach, _ in pairs for f in lint(breach()).findings if f.fixable}
    assert fixable == {"bias-scale", "bias-zero-point", "operator-version"}


def spoilt(right: Model) -> Model:
    """With other scales and zero points of all biases, and version 1 of every operator."""
    graph = view(right)
    biases = {o.inputs[2] for o in graph.ops if len(o.inputs) > 2}

    def wrong(spec: TensorSpec) -> TensorSpec:
        q = spec.quantization
        assert q is not None
        q = replace(q, scale=q.scale * np.float32(1.001), zero_point=q.zero_point + 3)
        return replace(spec, quantization=q)

    tensors = tuple(wrong(spec) if i in biases else spec for i, spec in enumerate(graph.tensors))
    codes = tuple(replace(code, version=1) for code in right.operator_codes)
    return replace(right, operator_codes=codes, subgraphs=(replace(graph.record, tensors=tensors),))


@pytest.mark.parametrize("name", ["digits_mobilenet_int8", "digits_autoencoder_int8"])
def test_a_fixed_model_runs_and_is_clean_and_no_bit_has_changed(name: str, tmp_path: Path) -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    right = load(suites.ROOT / f"golden/models/{name}.tflite")
    broken = spoilt(right)
    # XNNPACK takes no bias with a zero point, and the default resolver fails with it.
    assert rules_of(broken) == {"bias-scale", "bias-zero-point", "operator-version", "refused"}
    better, _ = fixed(broken, lint(broken).findings)
    assert rules_of(better) == set()
    save(better, tmp_path / "better.tflite")
    made = interpreter.Interpreter(
        model_path=str(tmp_path / "better.tflite"), experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF
    )
    made.allocate_tensors()
    for seen in load_golden(suites.ROOT / f"golden/recorded/{name}.npz").observations:
        made.set_tensor(view(right).inputs[0], seen.inputs[0])
        made.invoke()
        assert seen.outputs[0] is not None
        assert np.array_equal(made.get_tensor(view(right).outputs[0]), seen.outputs[0])


# --- targets --------------------------------------------------------------------------------------------------------


def adding(type_: TensorType, version: int = 2) -> Model:
    return model("ADD", [t(type_, 0.5), t(type_, 0.5)], t(type_, 0.5), version)


def custom(name: str) -> Model:
    made = model("ADD", [t(I8, 0.5), t(I8, 0.5)], t(I8, 0.5))
    return replace(made, operator_codes=(OperatorCode(enum("BuiltinOperator")["CUSTOM"], "CUSTOM", 1, name),))


def dense_of(data: TensorType, scales: list[float]) -> Model:
    w = replace(t(I8, scales), shape=(4, 4))
    return model("FULLY_CONNECTED", [t(data, 0.5), w], t(data, 0.5))


#: (target, rule) -> (planted breach, near miss)
TARGET_CASES: dict[tuple[str, str], list[tuple[Callable[[], Model], Callable[[], Model]]]] = {
    ("litert", "known-fault"): [(lambda: summed(I8), lambda: summed(U8))],
    ("litert", "undefined-result"): [
        (
            lambda: model("CONCATENATION", [t(U8, 1e10)] * 2, t(U8, 1e-3), 1, axis=0, fused_activation_function=0),
            lambda: model("CONCATENATION", [t(U8, 1.0)] * 2, t(U8, 1e-3), 1, axis=0, fused_activation_function=0),
        )
    ],
    ("litert", "custom-operator"): [(lambda: custom("ethos-u"), lambda: custom("TFLite_Detection_PostProcess"))],
    ("litert", "refused"): [
        (lambda: model("BUILTIN_999", [t(I8, 0.5)], t(I8, 0.5)), lambda: adding(I8)),
        (lambda: adding(I8, 99), lambda: adding(U8, 1)),
    ],
    ("tflm", "refused"): [(lambda: adding(U8, 1), lambda: adding(I8)), (padded, lambda: adding(I8))],
    ("cmsis-nn", "refused"): [(lambda: adding(U8, 1), lambda: adding(I8))],
    ("cmsis-nn", "cmsis-nn-types"): [
        (lambda: adding(U8), lambda: adding(I8)),
        (lambda: adding(U8), lambda: model("CONCATENATION", [t(U8, 0.5)] * 2, t(U8, 0.5))),
        (lambda: dense_of(I16, [0.5] * 4), lambda: dense_of(I8, [0.5] * 4)),
        (lambda: dense_of(I16, [0.5] * 4), lambda: dense_of(I16, [0.5])),
    ],
}
TARGET_PAIRS = [
    pytest.param(*key, *pair, id=f"{'-'.join(key)}-{i}")
    for key, pairs in TARGET_CASES.items()
    for i, pair in enumerate(pairs)
]


def test_every_rule_of_every_target_has_cases() -> None:
    general = {rule.id for rule in target_rules("")}
    own = {(target, rule.id) for target in TARGETS for rule in target_rules(target) if rule.id not in general}
    refused = {(target, "refused") for target in TARGETS}
    assert set(TARGET_CASES) == own | refused | {("litert", rule) for rule in (*general, UNDEFINED.id)}


def test_a_target_is_any_profile() -> None:
    found = [f for f in lint(adding(U8, 1), "tflm-2026.9").findings if f.rule == "refused"]
    assert [finding.op for finding in found] == ["ADD"]
    assert "refused" not in {f.rule for f in lint(adding(U8, 1), "tflite-2.12-ref").findings}
    with pytest.raises(UnknownNameError):
        lint(adding(U8, 1), "litert-ret")


def test_without_a_target_an_operator_that_litert_refuses_is_found() -> None:
    assert "refused" in rules_of(adding(I8, 99))
    assert "refused" not in rules_of(adding(U8, 1))  # tflite-micro refuses it, LiteRT does not


def test_an_empty_buffer_is_no_constant_that_is_too_small() -> None:
    empty = Buffer(np.zeros(0, np.uint8))
    assert rules_of(replace(adding(I8), buffers=(empty,))) == set()


def test_shapes_of_a_loop_body_are_no_reason_to_refuse_it(shared: Path) -> None:
    assert rules_of(load(shared / "suites/zip/models/dynamic_rnn/003_float.tflite")) == set()


@each(("target", "rule", "breach", "near"), TARGET_PAIRS)
def test_a_breach_of_a_target_is_found_and_a_near_miss_is_not(
    target: str, rule: str, breach: Callable[[], Model], near: Callable[[], Model]
) -> None:
    assert rule in {f.rule for f in lint(breach(), target).findings}
    assert rule not in {f.rule for f in lint(near(), target).findings}


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_takes_the_projects_int8_model(target: str) -> None:
    assert lint(suites.ROOT / "golden/models/digits_mobilenet_int8.tflite", target).findings == ()


def test_the_document_lists_every_rule_with_its_level() -> None:
    page = (suites.ROOT / "docs/how-to/lint-a-model.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w-]+)` \| (\w+) \|", page, re.MULTILINE))
    rules = (
        *RULES,
        *findings.rules_of(portable),
        UNDEFINED,
        *(rule for target in TARGETS for rule in target_rules(target)),
    )
    assert listed == {(rule.id, rule.level.value) for rule in rules}


@pytest.mark.parametrize("beside", [False, True])
def test_a_float16_bias_beside_8_bit_weights_is_refused_unless_another_operator_reads_it(beside: bool) -> None:
    """LiteRT 2.3 refuses the one and runs the other."""
    tensors = [T("float32", (2, 4)), T("int8", (3, 4), 0.01, value=np.ones((3, 4), np.int8))]
    tensors += [T("float16", (3,), value=np.ones(3, np.float16)), T("float32", (3,)), T("float32", (2, 3))]
    ops = [Op("DEQUANTIZE", [2], [3], None, 3), Op("FULLY_CONNECTED", [0, 1, 3], [4], ("FullyConnectedOptions", {}), 9)]
    if beside:
        tensors.append(T("float32", (3,)))
        ops.append(Op("ABS", [3], [5]))
    file = build(Graph(tensors, [0], [4, 5] if beside else [4], ops))
    found = [finding for finding in lint(load(file)).findings if finding.rule == "refused"]
    assert [finding.operator for finding in found] == ([] if beside else [1])
