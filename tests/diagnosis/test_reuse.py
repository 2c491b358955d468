"""Dumps of runtimes that use memory twice: what was written over is named, and never taken for a difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import suites
from support.each import each
from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.goldens.stored import load_golden
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.explanation import explain_operator
from tflq.diagnosis.localization import localize, trust
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
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

Array = NDArray[Any]
NAMES = ("digits_mobilenet_int8", "digits_unet_int8", "digits_autoencoder_int8", "digits_mobilenet_int16x8")
REFERENCE = by_name("litert-ref")


def golden(name: str) -> Path:
    return suites.ROOT / f"golden/models/{name}.tflite"


def random_inputs(model: Model, seed: int = 0) -> dict[int, Array]:
    graph, rng = view(model), np.random.default_rng(seed)
    found = {}
    for tensor in graph.inputs:
        info = np.iinfo(graph.tensors[tensor].type.label)  # type: ignore[union-attr]
        found[tensor] = rng.integers(info.min, info.max + 1, graph.tensors[tensor].shape).astype(info.dtype)
    return found


def memory_after_a_run(path: Path) -> Dump:
    """All tensors of LiteRT's interpreter as they are after a run: most lie where a later one was written."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    made = interpreter.Interpreter(
        model_path=str(path), experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF
    )
    made.allocate_tensors()
    model = load(path)
    for tensor, value in random_inputs(model).items():
        made.set_tensor(tensor, value)
    made.invoke()
    makers = {t for o in view(model).ops for t in (*o.inputs, *o.outputs) if t >= 0}
    return Dump("", {t: np.array(made.get_tensor(t)) for t in makers})


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
@pytest.mark.parametrize("name", NAMES)
def test_memory_used_twice_is_no_difference(name: str, mode: str) -> None:
    model = load(golden(name))
    dump = memory_after_a_run(golden(name))
    found = localize(model, dump, REFERENCE, mode)
    expected = run(make_plan(model, REFERENCE), random_inputs(model), keep_all=True).values
    stale = {t for t, v in expected.items() if t in dump.tensors and not np.array_equal(v, dump.tensors[t])}
    assert stale
    assert [o.index for o in found if o.differs] == []
    assert {t for o in found for t in o.overwritten} == stale
    assert all("in place of tensor" in o.reason for o in found if o.overwritten)


def test_mobilenet_v2_as_memory_is_no_difference(shared: Path) -> None:
    path = shared / "suites/real/models/coral/mobilenet_v2_1.0_224_quant.tflite"
    found = localize(load(path), memory_after_a_run(path), REFERENCE)
    assert [o.index for o in found if o.differs] == []
    assert sum(len(o.overwritten) for o in found) > 40


def test_a_fault_in_what_memory_still_holds_is_found_and_explained() -> None:
    model = load(golden("digits_mobilenet_int8"))
    dump = memory_after_a_run(golden("digits_mobilenet_int8"))
    kept = [o.index for o in localize(model, dump, REFERENCE) if o.differences and not o.assumed]
    index = kept[len(kept) // 2]
    tensor = view(model).op(index).outputs[0]
    faulty = dump.tensors[tensor].copy()
    faulty.reshape(-1)[::7] ^= 1
    changed = Dump("", {**dump.tensors, tensor: faulty})
    found = localize(model, changed, REFERENCE)
    assert next(o.index for o in found if o.differs) == index
    explanation = explain_operator(OperatorCase(model, (trust(changed, found),), index, REFERENCE))
    assert explanation.elements - explanation.matching == faulty.reshape(-1)[::7].size


@each("profile", ["litert-opt", "litert-xnnpack", "tflm", "tflite-2.14-opt", "tflite-2.14-ref"])
@each("name", NAMES[:3])
def test_a_whole_dump_loses_nothing(name: str, profile: str) -> None:
    model = load(golden(name))
    values = run(make_plan(model, by_name(profile)), random_inputs(model), keep_all=True).values
    for mode in ("isolated", "cumulative"):
        assert not any(o.overwritten for o in localize(model, Dump("", values), REFERENCE, mode))


# --- what only moves elements ---------------------------------------------------------------------------------------


def moving_chain() -> Model:
    """ABS to another scale, then RESHAPE, then RELU: RESHAPE's output has the bytes of ABS's."""
    shapes, scales = ((1, 64), (1, 64), (8, 8), (8, 8)), (0.5, 0.75, 0.75, 0.75)
    points = [Quantization(np.array([scale], np.float32), np.array([0], np.int64), 0) for scale in scales]
    tensors = [TensorSpec(f"t{i}", TensorType.INT8, shape, quantization=points[i]) for i, shape in enumerate(shapes)]
    shape = TensorSpec("shape", TensorType.INT32, (2,), buffer=1)
    options = Record("ReshapeOptions", {"new_shape": np.array([8, 8], np.int32)})
    operators = (Operator(0, (0,), (1,)), Operator(1, (1, 4), (2,), options), Operator(2, (2,), (3,)))
    codes = (OperatorCode(101, "ABS", 2), OperatorCode(22, "RESHAPE", 1), OperatorCode(19, "RELU", 2))
    graph = Subgraph((*tensors, shape), (0,), (3,), operators)
    return Model(3, codes, (graph,), (Buffer(), Buffer(np.array([8, 8], "<i4").view(np.uint8))))


def test_a_fault_that_is_passed_on_is_not_taken_for_memory_used_twice() -> None:
    """RESHAPE in place gives its input's bytes, right or wrong: here the fault was before it."""
    model = moving_chain()
    values = run(make_plan(model, REFERENCE), random_inputs(model), keep_all=True).values
    faulty = values[1] ^ np.arange(64, dtype=np.int8).reshape(1, 64)
    dump = Dump("", {0: values[0], 1: faulty, 2: faulty.reshape(8, 8), 3: np.maximum(faulty.reshape(8, 8), 0)})
    for mode in ("isolated", "cumulative"):
        found = localize(model, dump, REFERENCE, mode)
        assert next(o.index for o in found if o.differs) == 0
        assert not any(o.overwritten for o in found)


def test_an_operator_in_place_has_written_over_its_input() -> None:
    model = moving_chain()
    values = run(make_plan(model, REFERENCE), {0: random_inputs(model)[0]}, keep_all=True).values
    in_place = Dump("", {**values, 0: values[1]})
    found = localize(model, in_place, REFERENCE)
    assert not any(o.differs for o in found)
    assert found[0].overwritten == {0: 1}
    assert found[0].reason == "the dump holds tensor 1 in place of tensor 0"


def test_one_wrong_element_of_what_an_operator_moved_is_a_difference() -> None:
    """All the other bytes of its result are its input's, which nothing has written over."""
    model = moving_chain()
    values = run(make_plan(model, REFERENCE), random_inputs(model), keep_all=True).values
    wrong = values[2].copy()
    wrong[4, 4] += 1
    for mode in ("isolated", "cumulative"):
        found = localize(model, Dump("", {**values, 2: wrong}), REFERENCE, mode)
        assert not any(o.overwritten for o in found)
        assert next(o.index for o in found if o.differs) == 1


def test_one_wrong_element_is_found_in_every_operator_that_moves_its_input(shared: Path) -> None:
    """In models of one operator, each kind once: fed and faulty at random places."""
    kinds: dict[str, suites.Case] = {}
    for case in suites.suite_models("zip"):
        if len(case.entry["ops"]) == 1 and case.model.stat().st_size < 100_000:
            kinds.setdefault(case.entry["ops"][0], case)
    rng, planted = np.random.default_rng(0), 0
    for case in kinds.values():
        model = load(case.model)
        sample = load_golden(case.golden).observations[0].inputs
        graph = view(model)
        fed = dict(zip(graph.inputs, sample, strict=True))
        try:
            plan = make_plan(model, REFERENCE, input_shapes={t: v.shape for t, v in fed.items()})
            values = run(plan, fed, keep_all=True).values
        except TflqError:
            continue
        results = [t for o in graph.ops for t in o.outputs if t in values and values[t].dtype.kind in "iu"]
        for tensor in (t for t in results if values[t].size and t not in graph.inputs):
            wrong = values[tensor].copy()
            wrong.reshape(-1)[rng.integers(wrong.size)] ^= 1
            found = localize(model, Dump("", {**values, tensor: wrong}), REFERENCE)
            assert any(o.differs for o in found), (case.id, [o.reason for o in found])
            planted += 1
    assert planted > 40


def test_a_result_that_is_moved_by_one_is_a_difference() -> None:
    """Planners of memory do not begin tensors at any byte; a fault may."""
    model = moving_chain()
    values = run(make_plan(model, REFERENCE), random_inputs(model), keep_all=True).values
    rolled = np.roll(values[2].reshape(-1), 1).reshape(8, 8)
    dump = Dump("", {**values, 2: rolled, 3: np.maximum(rolled, 0)})
    for mode in ("isolated", "cumulative"):
        found = localize(model, dump, REFERENCE, mode)
        assert not any(o.overwritten for o in found)
        assert next(o.index for o in found if o.differs) == 1
