"""Whatever a file or a model says: only TflqError and TypeError leave the API, within bounded work."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from modelfuzz.changes import changed_often

import tflq
from support import suites
from support.work import at_most
from tflq.model.ir import Model

FOLDER = suites.ROOT / "golden"
SMALL = sorted((FOLDER / "singleop" / "models").glob("*_0.tflite"))
NETWORKS = sorted((FOLDER / "models").glob("*_int8.tflite"))
ALLOWED = (tflq.TflqError,)

RUNNABLE = 1 << 22  # bytes of live tensors up to which a model that was accepted is also run
CALLS = 250_000  # ten times what the largest network takes as it is


def use(model: Model | bytes) -> str:
    """Load, look at everything, allocate and run; gives how far it came."""
    stage = "loaded"
    with at_most(calls=CALLS), suppress(*ALLOWED):
        interpreter = tflq.Interpreter(model_content=model)
        interpreter.get_tensor_details()
        interpreter.get_input_details()
        interpreter.get_output_details()
        interpreter.get_signature_list()
        interpreter._get_ops_details()
        interpreter.allocate_tensors()
        stage = "allocated"
        plan = interpreter._session(0).plan
        if plan is not None and plan.cost.peak_memory <= RUNNABLE:
            interpreter.invoke()
            for detail in interpreter.get_output_details():
                interpreter.get_tensor(detail["index"])
            stage = "ran"
    return stage


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL + NETWORKS, ids=lambda path: path.stem)
def test_models_that_are_wrong_in_one_place(path: Path) -> None:
    model = tflq.load(path)
    stages = {use(changed_often(model, seed)) for seed in range(30)}
    assert stages - {"ran"}, "no mutation was refused"


@pytest.mark.slow
def test_most_of_these_models_run_as_they_are() -> None:
    """Else the mutations would not reach the kernels."""
    stages = [use(tflq.load(path)) for path in SMALL]
    assert stages.count("ran") > 0.7 * len(SMALL)


@pytest.mark.parametrize("path", [*SMALL[::8], NETWORKS[0]], ids=lambda path: path.stem)
def test_files_with_flipped_bytes(path: Path) -> None:
    data = path.read_bytes()
    chance = random.Random(7)
    for _ in range(40):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            changed[chance.randrange(min(len(changed), 4000))] = chance.randrange(256)
        use(bytes(changed))


@pytest.mark.parametrize("path", SMALL[::8], ids=lambda path: path.stem)
def test_truncated_files(path: Path) -> None:
    data = path.read_bytes()
    for size in range(0, len(data), max(1, len(data) // 40)):
        use(data[:size])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.binary(max_size=200))
def test_arbitrary_bytes(data: bytes) -> None:
    use(b"\x1c\0\0\0TFL3" + data)
    use(data)


VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.lists(
        st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.lists(st.integers(), max_size=3)), max_size=5
    ),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.complex_numbers(),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(index=VALUES, value=VALUES, subgraph=VALUES)
def test_arbitrary_arguments(index: object, value: object, subgraph: object) -> None:
    """Wrong Python calls may also be a TypeError."""
    interpreter = tflq.Interpreter(model_content=tflq.load(SMALL[0]))
    interpreter.allocate_tensors()
    calls = (
        lambda: interpreter.set_tensor(index, value),  # type: ignore[arg-type]
        lambda: interpreter.set_tensor(0, value),
        lambda: interpreter.get_tensor(index, subgraph),  # type: ignore[arg-type]
        lambda: interpreter.get_tensor(0, subgraph),  # type: ignore[arg-type]
        lambda: interpreter.tensor(index)(),  # type: ignore[arg-type]
        lambda: interpreter.resize_tensor_input(0, value),  # type: ignore[arg-type]
        lambda: interpreter.resize_tensor_input(index, value, strict=True),  # type: ignore[arg-type]
        lambda: interpreter.get_tensor_details(subgraph),  # type: ignore[arg-type]
        lambda: interpreter.get_signature_runner(value),  # type: ignore[arg-type]
        lambda: tflq.Interpreter(value),  # type: ignore[arg-type]
        lambda: tflq.Interpreter(model_content=value),  # type: ignore[arg-type]
        lambda: tflq.Interpreter(model_content=tflq.load(SMALL[0]), profile=value),  # type: ignore[arg-type]
        interpreter.allocate_tensors,
        interpreter.invoke,
    )
    for call in calls:
        with suppress(*ALLOWED, TypeError):
            call()  # type: ignore[no-untyped-call]


def test_a_huge_shape_is_refused_before_anything_runs() -> None:
    interpreter = tflq.Interpreter(str(SMALL[0]))
    with at_most(calls=1_000):
        interpreter.resize_tensor_input(0, [1 << 15, 1 << 15, 1 << 15])
        with pytest.raises(tflq.TflqError, match="limit"):
            interpreter.allocate_tensors()
