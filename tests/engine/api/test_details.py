"""Details of tensors, operators and signatures, key by key as LiteRT gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.block_weights import block_model
from tflq.engine.interpreter import Plan

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

GROUP = 40


def reference(path: object) -> Any:
    return litert.Interpreter(str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)


def assert_same(got: Any, want: Any, place: str) -> None:
    """The same structure, with the same Python types and dtypes all the way down."""
    assert type(got) is type(want), f"{place}: {type(got)} is not {type(want)}"
    if isinstance(want, dict):
        assert list(got) == list(want), place
        for key in want:
            assert_same(got[key], want[key], f"{place}[{key!r}]")
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want), place
        for index, (a, b) in enumerate(zip(got, want, strict=True)):
            assert_same(a, b, f"{place}[{index}]")
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype, place
        np.testing.assert_array_equal(got, want, err_msg=place)
    else:
        assert got == want, place


@pytest.mark.parametrize("first", range(0, 1280, GROUP))
def test_details_of_every_model(first: int, shared: object) -> None:
    cases = list(suites.suite_models())[first : first + GROUP]
    assert cases
    for case in cases:
        ours, theirs = tflq.Interpreter(str(case.model)), reference(case.model)
        count = len(theirs.get_tensor_details())
        assert_same(ours.get_tensor_details()[:count], theirs.get_tensor_details(), case.id)
        assert_same(ours.get_input_details(), theirs.get_input_details(), case.id)
        assert_same(ours.get_output_details(), theirs.get_output_details(), case.id)
        assert_same(ours.get_signature_list(), theirs.get_signature_list(), case.id)
        assert_same(ours._get_ops_details(), theirs._get_ops_details(), case.id)
        assert ours.num_subgraphs() == theirs.num_subgraphs()


def test_details_of_weights_with_scales_of_blocks() -> None:
    content = block_model(np.random.default_rng(0), 2, 64, 6, 32)
    ours, theirs = tflq.Interpreter(model_content=content), litert.Interpreter(model_content=content)
    (details,) = (each for each in ours.get_tensor_details() if each["quantization_parameters"]["block_size"])
    assert details["quantization_parameters"]["scales"].size == 12
    assert_same(ours.get_tensor_details(), theirs.get_tensor_details(), "blocks")


def test_shapes_after_allocation(shared: object) -> None:
    compared = 0
    for case in suites.suite_models():
        shapes = recorded_shapes(case)
        ours, theirs = tflq.Interpreter(str(case.model)), reference(case.model)
        try:
            allocate(ours, shapes)
        except tflq.TflqError:  # whether it may be refused is another test's question
            continue
        allocate(theirs, shapes)
        assert_same(ours.get_input_details(), theirs.get_input_details(), case.id)
        for got, want in zip(ours.get_output_details(), theirs.get_output_details(), strict=True):
            plan = plan_of(ours)
            if plan.known[got["index"]] and got["index"] not in plan.folding.early:
                assert_same(got, want, case.id)
                compared += 1
    assert compared > 400


def plan_of(interpreter: tflq.Interpreter) -> Plan:
    plan = interpreter._session(0).plan
    assert plan is not None
    return plan


def recorded_shapes(case: suites.Case) -> list[tuple[int, ...]]:
    """Shapes of the inputs for which the model's outputs were recorded."""
    with np.load(case.golden) as golden:
        names = sorted((n for n in golden if n.startswith("s0_in")), key=lambda n: int(n.removeprefix("s0_in")))
        return [golden[name].shape for name in names]


def allocate(interpreter: Any, shapes: list[tuple[int, ...]]) -> None:
    for detail, shape in zip(interpreter.get_input_details(), shapes, strict=True):
        if tuple(detail["shape"]) != shape:
            interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
