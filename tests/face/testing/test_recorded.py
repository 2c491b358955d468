"""The checks of the plugin by themselves: outputs count, and what was not compared does not pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.goldens.stored import load_golden, save_golden
from tflq.comparison.results import InputFacts, Verdict
from tflq.face.testing import ModelChanged, Recorded
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Subgraph, TensorSpec, TensorType

X = np.array([[1, -2, 3]], np.float32)
Y, Z = np.abs(X), -np.abs(X)


def recorded(place: Path, outputs: tuple[np.ndarray | None, ...], tensors: Mapping[int, np.ndarray]) -> Recorded:
    """A model of ABS and NEG, whose outputs are both results and the input, and a recording."""
    specs = tuple(TensorSpec(name, TensorType.FLOAT32, (1, 3)) for name in ("x", "y", "z"))
    operators = (Operator(0, (0,), (1,)), Operator(1, (1,), (2,)))
    graph = Subgraph(specs, (0,), (1, 2, 0), operators)
    tflq.save(Model(3, (OperatorCode(101, "ABS"), OperatorCode(59, "NEG")), (graph,), (Buffer(),)), place / "m.tflite")
    golden = Golden((Observation((X,), outputs, tensors),), True, InputFacts("arrays", None, 1), {})
    save_golden([golden], place / "g.zip")
    return Recorded(str(place / "m.tflite"), str(place / "g.zip"))


def failing(checked: Recorded) -> list[int]:
    """The operators whose test fails."""
    found = []
    for index in range(2):
        try:
            checked.check_operator(index)
        except AssertionError:
            found.append(index)
    return found


def test_what_fits_passes(tmp_path: Path) -> None:
    checked = recorded(tmp_path, (Y, Z, X), {1: Y, 2: Z})
    assert checked.check().verdict == Verdict.SAME
    assert failing(checked) == []


@pytest.mark.parametrize(
    ("outputs", "operator"),
    [((Y + 1, Z, X), 0), ((Y, Z + 1, X), 1), ((Y, Z, X + 1), 1)],  # the last: an input, which no operator makes
)
def test_an_output_that_differs_fails_where_it_belongs(
    outputs: tuple[np.ndarray, ...], operator: int, tmp_path: Path
) -> None:
    checked = recorded(tmp_path, outputs, {1: Y, 2: Z})
    assert failing(checked) == [operator]
    with pytest.raises(AssertionError, match="DIFFERS"):
        checked.check()
    with pytest.raises(AssertionError, match=r"output \d: differs under litert-ref\n.*expected"):
        checked.check_operator(operator)


def test_what_was_not_compared_does_not_pass(tmp_path: Path) -> None:
    checked = recorded(tmp_path, (None, None, X), {1: Y})
    assert failing(checked) == [1]
    with pytest.raises(AssertionError, match="INCOMPLETE"):
        checked.check()


def test_nothing_compared_does_not_pass(tmp_path: Path) -> None:
    checked = recorded(tmp_path, (None, None, None), {})
    assert failing(checked) == [0, 1]
    with pytest.raises(AssertionError, match="NOTHING COMPARED"):
        checked.check()


def test_every_signature_is_checked(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    model = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"
    recorded = Recorded(str(model), str(tmp_path / "g.npz"))
    recorded.renew("litert-ref", None, 1, 0, None)
    assert recorded.check().signatures == ("prefill_8", "decode")
    assert [recorded.check_operator(index).place for index in (0, 59, 60, 154)] == [
        "prefill_8/0",
        "prefill_8/59",
        "decode/0",
        "decode/94",
    ]
    wrong = Recorded(str(model), str(tmp_path / "g.npz"), "litert-opt")
    with pytest.raises(AssertionError, match="operator decode/28 SOFTMAX: differs"):
        wrong.check_operator(60 + 28)


def test_a_changed_model_is_one_line(tmp_path: Path) -> None:
    checked = recorded(tmp_path, (Y, Z, X), {1: Y, 2: Z})
    golden = replace(load_golden(checked.golden), model_sha256="0" * 64)
    for tensors, what in (
        ({1: Y, 2: Z}, "no result that the golden holds"),
        ({1: Y, 2: Z + 1}, "weights or parameters of 1 operator (1 NEG)"),
        ({}, "its outputs"),
    ):
        outputs = (Y, tensors.get(2, Z + 1), X)
        save_golden(
            [replace(golden, observations=(Observation((X,), outputs, tensors),), tensors=bool(tensors))],
            tmp_path / "g.zip",
        )
        again = Recorded(checked.model, checked.golden)
        for check in (again.check, lambda own=again: own.check_operator(1)):
            with pytest.raises(ModelChanged) as raised:
                check()
            assert str(raised.value).endswith(f"the model changed: {what}; `pytest --tflq-update` records it")
    save_golden([replace(golden, observations=(Observation((X[:, :2],), (Y,), {}),))], tmp_path / "g.zip")
    assert Recorded(checked.model, checked.golden).change == "it has other tensors or operators"
