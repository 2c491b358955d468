"""Planted faults are brought down to one operator and few elements, in models that LiteRT loads."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from support import suites
from support.each import each
from support.running import litert, run_once
from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.goldens.stored import load_golden
from tflq.diagnosis.reduction import Check, Reduced, _elements, outputs_of, reduce_check, reduce_dump
from tflq.engine.api.files import load, save
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.errors import InputError
from tflq.model.ir import Model, TensorSpec, view
from tflq.model.ir.model import enum
from tflq.model.surgery.cut import cut
from tflq.model.surgery.tap import single_operator

GOLDEN = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
REFERENCE = PROFILES["litert-ref"]


def random_codes(spec: TensorSpec) -> np.ndarray:
    info = np.iinfo(spec.type.label)  # type: ignore[union-attr]
    return np.random.default_rng(3).integers(info.min, info.max + 1, spec.shape).astype(info.dtype)


def dump_with_fault(model: Model, index: int) -> Dump:
    """Every tensor of a run; one element of that operator's output is one LSB off, what follows saw it right."""
    graph = view(model)
    trace = run(make_plan(model, REFERENCE), {t: random_codes(graph.tensors[t]) for t in graph.inputs}, keep_all=True)
    tensors = {t: np.array(v) for t, v in trace.values.items()}
    out = tensors[graph.op(index).outputs[0]]
    middle = tuple(n // 2 for n in out.shape)
    out[middle] ^= 1
    return Dump("", tensors)


def loads_in_litert(found: Reduced) -> tuple[np.ndarray, ...]:
    return tuple(run_once(litert(save(found.model)), found.sample))


@pytest.mark.parametrize("index", range(1, 6))
def test_a_dump_comes_down_to_one_element_that_litert_confirms(index: int) -> None:
    model = load(GOLDEN)
    found = reduce_dump(model, REFERENCE, dump_with_fault(model, index))
    assert found.operators == (index,)
    assert found.got is not None
    assert found.expected[0].size <= 64
    assert np.count_nonzero(found.expected[0] != found.got[0]) == 1
    (live,) = loads_in_litert(found)
    assert np.array_equal(live, found.expected[0])


@each(
    ("name", "most"),
    [
        ("average_pool_2d_i8_0", 1),
        ("max_pool_2d_i8_1", 1),
        ("softmax_i8_1", 256),
        ("log_softmax_u8_0", 64),
        ("l2norm_i8_0", 64),
        ("resize_bilinear_i8_0", 64),
        ("resize_bilinear_u8_2", 143),
        ("resize_nearest_neighbor_u8_1", 143),
        ("transpose_conv_u8_0", 256),
        ("mean_i8_0", 1),
        ("mul_i8_3", 1),
        ("add_i8_1", 1),
        ("hard_swish_u8_1", 1),
        ("leaky_relu_04", 1),
        ("depthwise_u8_0", 1),
        ("fc_i8_0", 1),
    ],
)
def test_operators_of_all_kinds_are_narrowed(name: str, most: int) -> None:
    model = load(suites.ROOT / f"golden/singleop/models/{name}.tflite")
    found = reduce_dump(model, REFERENCE, dump_with_fault(model, 0))
    assert found.got is not None
    assert found.expected[0].size <= most
    assert np.count_nonzero(found.expected[0] != found.got[0]) == 1
    (live,) = loads_in_litert(found)
    assert np.array_equal(live, found.expected[0])


@pytest.mark.parametrize("corner", [(0, 0), (0, -1), (-1, 0), (-1, -1), (0, 3)])
@pytest.mark.parametrize("index", [3, 7])
def test_a_fault_at_the_border_keeps_its_padding(index: int, corner: tuple[int, int]) -> None:
    """DEPTHWISE_CONV_2D with padding SAME, of stride 1 and 2."""
    model = load(GOLDEN)
    dump = dump_with_fault(model, index)
    graph = view(model)
    operator = graph.op(index)
    made = outputs_of(single_operator(model, index)[0], REFERENCE, (dump.tensors[operator.inputs[0]],))[0]
    faulty = made.copy()
    faulty[0, corner[0], corner[1], 5] ^= 1
    found = reduce_dump(model, REFERENCE, Dump("", {**dump.tensors, operator.outputs[0]: faulty}))
    assert found.operators == (index,)
    assert found.got is not None
    assert found.expected[0].size <= 16
    assert np.count_nonzero(found.expected[0] != found.got[0]) == 1
    record = view(found.model).op(0).options
    assert record is not None
    over_the_edge = index == 3 or -1 in corner  # of stride 2, this padding is at the end only
    assert record["padding"] == enum("Padding")["SAME" if over_the_edge else "VALID"]
    (live,) = loads_in_litert(found)
    assert np.array_equal(live, found.expected[0])


def test_mobilenet_comes_down_to_64_elements(shared: Path) -> None:
    model = load(shared / "suites/real/models/coral/mobilenet_v2_1.0_224_quant.tflite")
    found = reduce_dump(model, REFERENCE, dump_with_fault(model, 30))
    assert found.operators == (30,)
    assert found.expected[0].size <= 64
    (live,) = loads_in_litert(found)
    assert np.array_equal(live, found.expected[0])


def test_a_dump_without_a_difference_is_refused() -> None:
    model = load(GOLDEN)
    graph = view(model)
    value = np.zeros(graph.tensors[graph.inputs[0]].shape, np.int8)
    values = run(make_plan(model, REFERENCE), {graph.inputs[0]: value}, keep_all=True).values
    with pytest.raises(InputError, match=r"no operator .* differs"):
        reduce_dump(model, REFERENCE, Dump("", values))


def test_a_check_comes_down_to_the_operator_that_it_is_about() -> None:
    """The check differs wherever double and single rounding do: one operator is left."""
    model = load(GOLDEN)
    graph = view(model)
    shape = graph.tensors[graph.inputs[0]].shape
    values = [np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8) for seed in range(60)]
    single = PROFILES["litert-ref"].with_single_rounding()

    def differs(candidate: Model, sample: tuple[np.ndarray, ...]) -> bool:
        pair = outputs_of(candidate, REFERENCE, sample), outputs_of(candidate, single, sample)
        return any(not np.array_equal(a, b) for a, b in zip(*pair, strict=True))

    value = next(value for value in values if differs(model, (value,)))
    found = reduce_check(model, REFERENCE, (value,), differs)
    assert len(found.operators) == 1
    assert differs(found.model, found.sample)
    (live,) = loads_in_litert(found)
    assert np.array_equal(live, found.expected[0])


def faulty_device(tensor: str, code: int) -> Check:
    """A device whose operator that makes `tensor` gives the next code in the place of one, and is right elsewhere."""

    def differs(model: Model, sample: tuple[np.ndarray, ...]) -> bool:
        graph = view(model)
        makers = [i for i, o in enumerate(graph.ops) if graph.tensors[o.outputs[0]].name == tensor]
        if not makers:
            return False
        values = run(make_plan(model, REFERENCE), dict(zip(graph.inputs, sample, strict=True)), keep_all=True).values
        made = graph.op(makers[0]).outputs[0]
        wrong = {**values, made: np.where(values[made] == code, code + 1, values[made]).astype(values[made].dtype)}
        rest, numbers = cut(model, range(makers[0] + 1, len(graph.ops)))
        fed = tuple(wrong[numbers[t]] for t in view(rest).inputs)
        after = dict(zip((numbers[t] for t in view(rest).outputs), outputs_of(rest, REFERENCE, fed), strict=True))
        return any(not np.array_equal(values[t], {**wrong, **after}[t]) for t in graph.outputs)

    return differs


def test_a_check_brings_mobilenet_down_to_64_elements_in_few_rounds(shared: Path) -> None:
    """Each round runs a part of the model, so that these are what it takes."""
    name = "mobilenet_v2_1.0_224_quant"
    model = load(shared / f"suites/real/models/coral/{name}.tflite")
    sample = load_golden(shared / f"suites/real/golden/coral/{name}.npz").observations[0].inputs
    graph = view(model)
    index = 30
    tensor = graph.op(index).outputs[0]
    values = run(make_plan(model, REFERENCE), dict(zip(graph.inputs, sample, strict=True)), keep_all=True).values
    differs = faulty_device(graph.tensors[tensor].name or "", int(np.median(values[tensor][values[tensor] > 0])))
    rounds = Mock(side_effect=differs)
    found = reduce_check(model, REFERENCE, sample, rounds)
    assert rounds.call_count < 100
    assert found.operators == (index,)
    assert found.expected[0].size <= 64
    assert differs(found.model, found.sample)
    (live,) = loads_in_litert(found)
    assert np.array_equal(live, found.expected[0])


def test_elements_to_try_are_those_whose_bits_differ() -> None:
    """NaN is the same in both; the zeros have other signs."""
    expected = np.array([np.nan, 0.0, 1.0, 2.0], np.float32)
    assert sorted(_elements(expected, np.array([np.nan, -0.0, 1.0, 3.0], np.float32))) == [(1,), (3,)]
