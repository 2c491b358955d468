"""The table of known faults: true of the kernel tables, and what docs/runtimes.md says."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import tflq
from support import running, suites
from support.each import each
from support.running import run_once, samples_of
from support.single_op import T, build
from tflq.comparison.inspection.profile_pairs import compare_profiles
from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.notes import Fault
from tflq.engine.profiles import PROFILES
from tflq.engine.profiles.history import Known, known_faults
from tflq.errors import TflqError, UndefinedResultError
from tflq.model.ir import TensorType

FIXED = [k.fault for k in known_faults() if "litert-ref" in k.profiles and "spec" not in k.profiles]
REFERENCE, SPEC = PROFILES["litert-ref"], PROFILES["spec"]


def types_of(form: str) -> tuple[list[TensorType], list[TensorType]]:
    """Operand types of a form, everything optional there."""
    left, _, right = form.replace("?", "").partition("->")
    return [TensorType[n.upper()] for n in left.split()], [TensorType[n.upper()] for n in right.split()]


def is_of(op: str, form: str, fault: Fault) -> bool:
    """Whether an operator with those operand types is one that the fault concerns."""
    return op == fault.op and types_of(form) in [types_of(types) for types in fault.types]


def test_the_page_is_up_to_date() -> None:
    tool = suites.ROOT / "tools" / "profile_docs.py"
    result = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@each("known", known_faults(), ids=lambda known: f"{known.fault.op}-{known.fault.types[0]}")
def test_a_fault_is_one_of_some_profile(known: Known) -> None:
    assert known.profiles
    for name in known.profiles:
        rows = PROFILES[name].kernels[known.fault.op]
        for types in known.fault.types:
            assert any(row.signature.mismatches(*types_of(types)) == 0 for row in rows), (name, types)


@pytest.mark.slow
def test_spec_differs_from_the_reference_on_mended_rows_only() -> None:
    differences = [d for d in compare_profiles(REFERENCE, SPEC) if d.op != "SLICE"]  # whose declared shapes only differ
    differing = [(d.op, form) for d in differences for form in d.types]
    for op, form in differing:
        assert any(is_of(op, form, fault) for fault in FIXED), (op, form)
    for fault in FIXED:
        assert any(is_of(op, form, fault) for op, form in differing), fault
    assert SPEC.arithmetic == REFERENCE.arithmetic


def run(model: bytes, profile: str, x: np.ndarray) -> np.ndarray:
    return run_once(tflq.Interpreter(model_content=model, profile=profile), [x])[0]


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_sums_of_signed_codes_are_mended(type_: str) -> None:
    zero = 5 if type_ == "int8" else 0
    model = build(
        "SUM",
        [T(type_, (4, 6), 0.25, zero), T("int32", (1,), value=[1])],
        [T(type_, (4,), 0.5, -zero)],
        ("ReducerOptions", {"keep_dims": False}),
    )
    x = np.random.default_rng(0).integers(-12, 12, (4, 6)).astype(type_)
    exact = (x.astype(np.int64) - zero).sum(axis=1)  # half of it is the output, ties away from zero
    meant = np.sign(exact) * ((abs(exact) + 1) // 2) - zero
    assert run(model, "spec", x).tolist() == meant.tolist()
    if type_ == "int8":
        assert run(model, "litert-ref", x).tolist() != meant.tolist()
    else:
        with pytest.raises(TflqError):
            run(model, "litert-ref", x)


def test_a_bias_of_32_bits_is_read_as_such() -> None:
    rng = np.random.default_rng(1)
    w, bias = rng.integers(-9, 9, (3, 5)), rng.integers(-500, 500, 3)
    model = build(
        "FULLY_CONNECTED",
        [T("int16", (2, 5), 0.5), T("int8", (3, 5), 0.5, value=w), T("int32", (3,), 0.25, value=bias)],
        [T("int16", (2, 3), 0.25)],
        ("FullyConnectedOptions", {}),
    )
    x = rng.integers(-100, 100, (2, 5)).astype(np.int16)
    assert run(model, "spec", x).tolist() == (x.astype(np.int64) @ w.T + bias).tolist()
    with pytest.raises(TflqError):
        run(model, "litert-ref", x)


@pytest.mark.slow
def test_spec_differs_from_recorded_outputs_on_mended_rows_only() -> None:
    """And it does where a model shows one: the outputs are those of LiteRT's reference resolver."""
    folder = suites.ROOT / "golden" / "singleop"
    differing = set()
    for entry in json.loads((folder / "index.json").read_text(encoding="utf-8")):
        model, recorded = folder / entry["model"], np.load(folder / entry["golden"], allow_pickle=False)
        for inputs, outputs in samples_of(recorded):
            got = running.run(model.read_bytes(), inputs, "spec")
            if any(mine.tobytes() != want.tobytes() for mine, want in zip(got, outputs, strict=True)):
                differing |= {step.op for step in make_plan(tflq.load(model), SPEC).steps}
    assert differing == {"SUM"}
    assert differing <= {fault.op for fault in FIXED}


def provoked(op: str) -> tuple[bytes, list[np.ndarray], np.ndarray]:
    """A model that a fault of `op` spoils, its inputs, and the result without the fault."""
    if op == "REVERSE_V2":
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        axes = T("int32", (2,), value=np.array([0, 1], np.int32))
        return build(op, [T("float32", x.shape), axes], [T("float32", x.shape)]), [x], x[::-1, ::-1]
    if op == "MUL":
        x = np.full((1, 64), 127, np.int8)
        operands = [T("int8", x.shape, 1.0, -128)] * 2
        return build(op, operands, [T("int8", x.shape, 1.0, 127)], ("MulOptions", {}), 2), [x, x], x
    x, y = np.ones((2, 3, 4), np.int8), np.ones((1, 3, 5), np.int8)
    operands, options = [T("int8", x.shape, 1.0), T("int8", y.shape, 1.0)], ("BatchMatMulOptions", {"adj_x": True})
    return build(op, operands, [T("int8", (2, 4, 5), 1.0)], options, 2), [x, y], np.full((2, 4, 5), 3, np.int8)


PROVOKED = (("REVERSE_V2", "only the first"), ("MUL", "wraps"), ("BATCH_MATMUL", "folded"))


@pytest.mark.parametrize(("op", "words"), PROVOKED)
def test_a_fault_is_listed_for_every_profile_that_has_it(op: str, words: str) -> None:
    model, inputs, right = provoked(op)
    spoiled = set()
    for name in PROFILES:
        interpreter = tflq.Interpreter(model_content=model, profile=name)
        try:
            interpreter.allocate_tensors()
        except UndefinedResultError:
            spoiled.add(name)
        except TflqError:
            continue
        else:
            for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
            if not np.array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), right):
                spoiled.add(name)
    (known,) = (known for known in known_faults() if known.fault.op == op and words in known.fault.symptom)
    assert spoiled == set(known.profiles)
