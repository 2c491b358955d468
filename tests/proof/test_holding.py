"""Values that tensors can hold: tables, clamps and moves limit the inputs of the operators after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import CARRIER, Buffer, Model, Quantization, Subgraph, TensorSpec, TensorType, view
from tflq.proof import OperatorProof, Word, prove
from tflq.proof.certificate import taking
from tflq.proof.operator import Held
from tflq.proof.proof import bind_in_model
from tflq.quantization.params import Params
from tflq.quantization.portable.editing import Editing

PAIR = ("litert-ref", "litert-xnnpack")
NAMES = (*PAIR, "litert-opt", "tflm-cmsis-nn", "tf-2.5-opt", "tf-1.15-opt")
#: Scales with which the two differ on LEAKY_RELU for some codes.
INPUT, OUTPUT, ALPHA = 0.1, 0.093, 0.2


def int8(scale: float, zero_point: int = 0) -> Quantization | None:
    return Params.of(TensorType.INT8, scale, zero_point).quantization


def looked_up(table: Iterable[int], *, offset: int = 128, shaped: bool = False) -> Model:
    """CAST, ADD, GATHER from a table, perhaps RESHAPE, then LEAKY_RELU."""
    x = TensorSpec("x", TensorType.INT8, (1, 40), quantization=int8(1.0))
    y = TensorSpec("y", TensorType.INT8, (1, 40), quantization=int8(OUTPUT))
    editing = Editing(Model(3, (), (Subgraph((x, y), (0,), (1,), ()),), (Buffer(),)))
    start = editing.new(0)
    wide, place = (editing.tensor(x, end, type=TensorType.INT32, quantization=None) for end in ("/wide", "/place"))
    found = editing.tensor(x, "/found", quantization=int8(INPUT))
    types = {"in_data_type": int(TensorType.INT8), "out_data_type": int(TensorType.INT32)}
    editing.operator("CAST", [start], [wide], 0, "CastOptions", 3, **types)
    added = editing.constant("offset", np.array([offset], np.int32))
    editing.operator("ADD", [wide, added], [place], 0, "AddOptions", pot_scale_int16=False)
    entries = editing.constant("table", np.array(list(table), np.int8), int8(INPUT))
    editing.operator("GATHER", [entries, place], [found], 0, "GatherOptions", 2)
    if shaped:
        moved = editing.tensor(editing.spec(found), "/moved")
        shape = np.array([1, 40], np.int32)
        editing.operator(
            "RESHAPE", [found, editing.constant("shape", shape)], [moved], 0, "ReshapeOptions", new_shape=shape
        )
        found = moved
    editing.operator("LEAKY_RELU", [found], [editing.new(1)], 0, "LeakyReluOptions", 2, alpha=ALPHA)
    return editing.result()


def codes_of(profile: str) -> np.ndarray:
    """LEAKY_RELU of every code, by the interpreter, which knows nothing of proofs."""
    table = np.arange(-128, 128)
    interpreter = tflq.Interpreter(model_content=tflq.save(looked_up(table)), profile=profile)
    interpreter.allocate_tensors()
    codes = []
    for start in range(0, 256, 40):
        fed = np.clip(np.arange(start, start + 40), 0, 255).reshape(1, 40) - 128
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], fed.astype(np.int8))
        interpreter.invoke()
        codes.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
    return np.concatenate(codes)[:256]


SINGLE = sorted((suites.ROOT / "golden" / "singleop" / "models").glob("*_0.tflite"))
WHOLE = sorted((suites.ROOT / "golden" / "models").glob("digits_*int8*.tflite"))


def held_in(model: Model, profiles: Sequence[str]) -> dict[int, Held]:
    """Return the values that tensors can hold, under those of the profiles that take the model."""
    chosen = taking([by_name(name) for name in profiles], [model]).profiles
    held: dict[int, Held] = {}
    for _, _, known in bind_in_model(model, chosen) if chosen else ():
        held = dict(known)
    return held


@pytest.mark.slow
@pytest.mark.parametrize("path", [*SINGLE[::3], *WHOLE], ids=lambda path: path.stem)
def test_no_run_gives_anything_else(path: Path) -> None:
    """Every tensor of random and extreme runs holds listed values only."""
    model = tflq.load(path)
    contradicted(model, held_in(model, NAMES), NAMES)


def contradicted(model: Model, held: Mapping[int, Held], profiles: Sequence[str]) -> None:
    graph, rng = view(model), np.random.default_rng(0)
    for profile in profiles:
        try:
            plan = make_plan(model, by_name(profile))
        except tflq.TflqError:
            continue
        for number in range(6):
            fed = {t: drawn(rng, graph.tensor(t), number) for t in graph.inputs}
            values = run(plan, fed, keep_all=True).values
            for tensor, known in held.items():
                assert np.isin(values[tensor], known.values).all(), (profile, tensor, known.makers)


def drawn(rng: np.random.Generator, spec: TensorSpec, number: int) -> np.ndarray:
    dtype = CARRIER[TensorType(spec.type)]
    if dtype.kind == "f":
        return rng.normal(0, 5, spec.shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(spec.shape) < 0.5
    low, high = (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) if dtype.itemsize < 4 else (0, 1)
    if number % 2:
        return rng.choice(np.array([low, 0, high]), spec.shape).astype(dtype)
    return rng.integers(low, high + 1, spec.shape).astype(dtype)


def test_what_a_model_holds() -> None:
    """Clamps and functions are found in a model of several operators."""
    model = tflq.load(suites.ROOT / "golden" / "models" / "digits_unet_int8.tflite")
    found = {name for held in held_in(model, NAMES).values() for name in held.makers}
    assert found == {"CONV_2D 0", "LEAKY_RELU 2", "LOGISTIC 10"}


@pytest.fixture(scope="module")
def apart() -> np.ndarray:
    """The codes on which the two differ."""
    found = np.flatnonzero(codes_of(PAIR[0]) != codes_of(PAIR[1])) - 128
    assert 0 < len(found) < 200
    return found


def last(model: Model) -> OperatorProof:
    return prove(model, PAIR).operators[-1]


@pytest.mark.parametrize("shaped", [False, True])
def test_a_table_limits_what_follows(apart: np.ndarray, shaped: bool) -> None:
    agreed = sorted(set(range(-128, 128)) - set(apart.tolist()))
    table = np.resize(agreed, 256)
    found = last(looked_up(table, shaped=shaped))
    assert found.word == Word.EQUAL
    assert found.methods == (f"run on all {len(agreed)} codes that GATHER 2 can give at every place",)


@pytest.mark.parametrize("shaped", [False, True])
def test_one_entry_of_a_table_is_enough_to_differ(apart: np.ndarray, shaped: bool) -> None:
    agreed = sorted(set(range(-128, 128)) - set(apart.tolist()))
    table = np.resize(agreed, 256)
    table[77] = apart[0]
    found = last(looked_up(table, shaped=shaped))
    assert found.word == Word.DIFFERS
    (verdict,) = found.verdicts
    assert verdict.witness is not None
    (fed,) = verdict.witness.inputs.values()
    assert set(fed.reshape(-1).tolist()) <= {*agreed, int(apart[0])}


@pytest.mark.parametrize("offset", [127, 129])
def test_a_place_outside_of_the_table_limits_nothing(apart: np.ndarray, offset: int) -> None:
    """One index lies before or behind the table: what a runtime reads there is unknown."""
    agreed = sorted(set(range(-128, 128)) - set(apart.tolist()))
    assert last(looked_up(np.resize(agreed, 256), offset=offset)).word == Word.DIFFERS


def test_a_short_table_limits_nothing(apart: np.ndarray) -> None:
    agreed = sorted(set(range(-128, 128)) - set(apart.tolist()))
    assert last(looked_up(np.resize(agreed, 255))).word == Word.DIFFERS


def test_a_tensor_that_is_fed_is_not_limited(apart: np.ndarray) -> None:
    """The table's result is an input of the graph, too: callers may set it."""
    agreed = sorted(set(range(-128, 128)) - set(apart.tolist()))
    model = looked_up(np.resize(agreed, 256))
    graph = view(model)
    (found,) = graph.ops[2].outputs
    fed = replace(graph.record, inputs=(*graph.inputs, found))
    changed = replace(model, subgraphs=(fed,))
    assert prove(changed, PAIR).operators[-1].word != Word.EQUAL


@pytest.mark.parametrize(("activation", "word"), [(0, Word.DIFFERS), (1, Word.EQUAL)])
def test_a_fused_activation_limits_what_follows(activation: int, word: Word) -> None:
    """LEAKY_RELU with equal scales differs on negative codes only, which RELU removes."""
    x = TensorSpec("x", TensorType.INT8, (1, 4), quantization=int8(0.01))
    y = TensorSpec("y", TensorType.INT8, (1, 8), quantization=int8(INPUT))
    editing = Editing(Model(3, (), (Subgraph((x, y), (0,), (1,), ()),), (Buffer(),)))
    start = editing.new(0)
    dense = editing.tensor(y, "/dense", quantization=int8(INPUT))
    w = editing.constant("w", np.full((8, 4), 64, np.int8), int8(1.0))
    b = editing.constant("b", np.ones(8, np.int32), Params.of(TensorType.INT32, 0.01).quantization)
    options = {"fused_activation_function": activation, "keep_num_dims": False, "weights_format": 0}
    editing.operator("FULLY_CONNECTED", [start, w, b], [dense], 0, "FullyConnectedOptions", 4, **options)
    editing.operator("LEAKY_RELU", [dense], [editing.new(1)], 0, "LeakyReluOptions", 2, alpha=ALPHA)
    assert last(editing.result()).word == word
