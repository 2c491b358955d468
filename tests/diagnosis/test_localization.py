"""Operators that cannot be run are replayed from the dump, so that what comes after them is still checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import suites
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.localization import localize
from tflq.diagnosis.profile_fit import fit
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES, by_name
from tflq.errors import ShapeError
from tflq.model.ir import Model, OperatorCode, view, with_graph
from tflq.model.surgery.cut import cut

Array = NDArray[Any]
REFERENCE = by_name("litert-ref")
STRANGE = 5


@pytest.fixture(scope="module")
def plain() -> Model:
    return load(suites.ROOT / "golden/models/digits_mobilenet_int8.tflite")


@pytest.fixture(scope="module")
def values(plain: Model) -> dict[int, Array]:
    graph = view(plain)
    rng = np.random.default_rng(2)
    fed = {t: rng.integers(-128, 128, graph.tensors[t].shape).astype(np.int8) for t in graph.inputs}
    return dict(run(make_plan(plain, REFERENCE), fed, keep_all=True).values)


@pytest.fixture(scope="module")
def with_custom(plain: Model) -> Model:
    """The model with a custom operator in the place of one that other operators need."""
    graph = view(plain)
    custom = OperatorCode(32, "CUSTOM", 1, "MyAccelerator")
    operators = list(graph.record.operators)
    operators[STRANGE] = replace(operators[STRANGE], opcode_index=len(plain.operator_codes), options=None)
    changed = with_graph(plain, replace(graph.record, operators=tuple(operators)))
    return replace(changed, operator_codes=(*plain.operator_codes, custom))


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
def test_what_follows_a_custom_operator_is_checked(with_custom: Model, values: dict[int, Array], mode: str) -> None:
    found = localize(with_custom, Dump("", values), REFERENCE, mode)
    assert found[STRANGE].op == "MyAccelerator"
    assert found[STRANGE].reason.startswith("unsupported")
    assert [o.index for o in found if not o.differences] == [STRANGE]
    assert not any(o.differs for o in found)


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
def test_a_fault_behind_a_custom_operator_is_found(with_custom: Model, values: dict[int, Array], mode: str) -> None:
    tensor = view(with_custom).op(STRANGE + 3).outputs[0]
    wrong = values[tensor].copy()
    wrong.reshape(-1)[100] ^= 1
    found = localize(with_custom, Dump("", {**values, tensor: wrong}), REFERENCE, mode)
    assert next(o.index for o in found if o.differs) == STRANGE + 3


def test_what_only_a_custom_operator_makes_and_the_dump_lacks_is_not_compared_behind_it(
    with_custom: Model, values: dict[int, Array]
) -> None:
    """An operator that reads it says so; one whose inputs the dump has is compared."""
    lost = view(with_custom).op(STRANGE).outputs[0]
    found = localize(with_custom, Dump("", {t: v for t, v in values.items() if t != lost}), REFERENCE)
    readers = {i for i, o in enumerate(view(with_custom).ops) if lost in o.inputs}
    assert readers
    assert {o.index for o in found if not o.differences} == {STRANGE, *readers}
    assert all(f"tensor {lost} is neither in the dump" in found[i].reason for i in readers)


def test_fit_names_the_operators_that_the_best_profile_does_not_explain(plain: Model, values: dict[int, Array]) -> None:
    """A device that is litert-opt but for one operator, which no profile computes so."""
    graph = view(plain)
    fed = {t: values[t] for t in graph.inputs}
    device = dict(run(make_plan(plain, by_name("litert-opt")), fed, keep_all=True).values)
    odd = graph.op(13).outputs[0]
    device[odd] = device[odd] ^ 1
    rest, numbers = cut(plain, range(14, len(graph.ops)))
    after = run(
        make_plan(rest, by_name("litert-opt")), {i: device[numbers[i]] for i in view(rest).inputs}, keep_all=True
    )
    device |= {numbers[i]: value for i, value in after.values.items()}
    matrix = fit(plain, [Dump("", device)]).matrix
    exact = {name: sum(c is not None and c[0] == c[1] for c in row) for name, row in matrix.items()}
    assert exact["litert-opt"] == max(exact.values()) == len(graph.ops) - 1
    assert [i for i, c in enumerate(matrix["litert-opt"]) if c is not None and c[0] < c[1]] == [13]


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
def test_a_result_of_another_shape_is_no_difference(plain: Model, values: dict[int, Array], mode: str) -> None:
    tensor = view(plain).op(STRANGE).outputs[0]
    with pytest.raises(ShapeError):
        localize(plain, Dump("", {**values, tensor: values[tensor][:, :-1]}), REFERENCE, mode)


def test_samples_of_an_operator_are_bound_once(plain: Model, values: dict[int, Array]) -> None:
    dumps = [Dump("", values), Dump("", {t: value.copy() for t, value in values.items()})]
    first, second = OperatorCase(plain, tuple(dumps), 1, REFERENCE).parts
    assert second.plan(REFERENCE) is first.plan(REFERENCE)
    other = by_name("tflm")
    assert second.plan(other) is first.plan(other) is not first.plan(REFERENCE)
    for name in tuple(PROFILES)[:8]:
        first.plan(by_name(name))
    assert len(first.plans) < 8
