"""Parts of prepared data: every kernel's zero points, clamps and multipliers are values that are found by their types.

Operators are drawn as the fuzzer draws them, for every row of every profile that they reach.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import pytest

from opfuzz.case import Case
from opfuzz.draw import CODES, Draw
from opfuzz.families import SPECS
from support import running, suites
from support.running import samples_of
from tflq.comparison.inspection.operators import prepare_alone
from tflq.comparison.inspection.prepared import parts_of
from tflq.engine.interpreter import Step
from tflq.engine.kernels.families.activation import code_range
from tflq.engine.numerics.codes import Clamp, Shift, ZeroPoint, ZeroPoints
from tflq.engine.numerics.multiplier import FixedMultiplier, Multiplier, ShortMultiplier
from tflq.engine.numerics.stages import OutputStage
from tflq.engine.profiles import PROFILES
from tflq.errors import TflqError
from tflq.model.flatbuf import read
from tflq.model.ir import CARRIER

pytestmark = pytest.mark.slow

#: Zero points that nothing else is likely to be, by operand; two sets, so that what follows them is told from chance.
MARKS: tuple[Mapping[str, list[int]], ...] = (
    {"int8": [101, -93, 87, -79, 103, -97, 89, -83] * 3, "uint8": [201, 163, 187, 139, 197, 167, 191, 149] * 3},
    {"int8": [-67, 61, -71, 59, -109, 113, -73, 53] * 3, "uint8": [43, 229, 57, 219, 47, 233, 61, 211] * 3},
)
CASES = 4
#: Operands (outputs after inputs) whose zero points the reference kernels take off or add where they are run; those of
#: all others are part of tables that are made when the operator is prepared, or move along with the codes.
CENTRED: Mapping[str, tuple[int, ...]] = {
    "ABS": (0, 1),
    "ADD": (2,),
    "CONV_2D": (0, 3),
    "DEPTHWISE_CONV_2D": (0, 3),
    "DEQUANTIZE": (0,),
    "DIV": (0, 1, 2),
    "FULLY_CONNECTED": (0, 3),
    "HARD_SWISH": (0, 1),
    "L2_NORMALIZATION": (0,),
    "LEAKY_RELU": (0, 1),
    "MEAN": (0, 2),
    "MUL": (0, 1, 2),
    "PRELU": (0, 1, 2),
    "REDUCE_PROD": (0, 2),
    "RELU": (0, 1),
    "RELU_N1_TO_1": (0, 1),
    "RSQRT": (0,),
    "SQRT": (0, 1),
    "SQUARED_DIFFERENCE": (2,),
    "SUB": (2,),
    "SVDF": (0, 5),
    "TRANSPOSE_CONV": (2, 4),
}
#: Operators with a fused activation.
FUSED = (
    "ADD",
    "AVERAGE_POOL_2D",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DIV",
    "FULLY_CONNECTED",
    "MAX_POOL_2D",
    "MUL",
    "SUB",
)
#: Operators whose codes are scaled by fixed-point multipliers where they are run.
SCALED = (
    "ADD",
    "BATCH_MATMUL",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DIV",
    "FULLY_CONNECTED",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOG_SOFTMAX",
    "MEAN",
    "MUL",
    "PRELU",
    "REDUCE_PROD",
    "RELU",
    "SQUARED_DIFFERENCE",
    "SUB",
    "SVDF",
    "TRANSPOSE_CONV",
)
MULTIPLIERS = (OutputStage, Multiplier, ShortMultiplier, FixedMultiplier)


@cache
def drawn(op: str) -> tuple[Case, ...]:
    """Some cases on 8-bit codes, none of them empty; of operators without such forms fewer, or none."""
    draws = (SPECS[op](Draw(np.random.default_rng([number, 1])), op) for number in range(12 * CASES))
    return tuple(islice(filter(_computes_codes, draws), CASES))


def _computes_codes(case: Case) -> bool:
    """Whether a case goes from 8-bit codes to codes of the same type, or to floats or back."""
    operands = [t for t in (*case.inputs, *case.outputs) if t is not None]
    codes = [t.type for t in operands if t.scale is not None and t.type in CODES]
    made = case.outputs[0].type if case.outputs else ""
    return codes[:1] in (["int8"], ["uint8"]) and made in (codes[0], "float32") and all(all(t.shape) for t in operands)


def marked(case: Case, marks: Mapping[str, list[int]], operand: int | None) -> tuple[Case, dict[int, int]]:
    """A case whose 8-bit operands (or just one, outputs after inputs) have those zero points, by operand."""
    points: dict[int, int] = {}
    tensors = []
    for position, tensor in enumerate((*case.inputs, *case.outputs)):
        per_tensor = tensor is not None and tensor.scale is not None and not np.ndim(tensor.scale)
        if per_tensor and tensor.type in marks and operand in (None, position):
            points[position] = marks[tensor.type][position]
            tensor = replace(tensor, zero_point=points[position])
        tensors.append(tensor)
    count = len(case.inputs)
    return replace(case, inputs=tuple(tensors[:count]), outputs=tuple(tensors[count:])), points


def prepared(case: Case, profile: str) -> Step | None:
    try:
        step = prepare_alone(read(case.model()), 0, PROFILES[profile])
    except TflqError:
        return None
    return step if step.prepared is not None else None


Pair = tuple[Case, tuple[Step, Step], tuple[dict[int, int], dict[int, int]]]


def pairs(case: Case, profile: str) -> Iterator[Pair]:
    """The case under a profile with both sets of marks: all operands at once or, where that is refused, one by one."""
    for operand in (None, *range(len(case.inputs) + len(case.outputs))):
        (one, points), (other, others) = (marked(case, marks, operand) for marks in MARKS)
        first = prepared(one, profile) if points else None
        second = prepared(other, profile) if first is not None else None
        if first is not None and second is not None:
            yield one, (first, second), (points, others)
            if operand is None:
                break


def of_all_profiles(op: str) -> Iterator[Pair]:
    """Drawn cases under every profile that prepares them in another way than those before it."""
    for case in drawn(op):
        seen: set[object] = set()
        for profile in PROFILES:
            for pair in pairs(case, profile) if op in PROFILES[profile].kernels else ():
                prepare = pair[1][0].kernel.prepare
                if prepare in seen:
                    break
                seen.add(prepare)
                yield pair


def plain_integers(data: Any) -> dict[str, int]:
    """Integers of prepared data that are no constants of codes, by place."""
    values = ((part.place, part.value) for part in parts_of(data, (int, np.integer)))  # type: ignore[arg-type]
    return {place: int(value) for place, value in values if type(value) in (int, np.int32, np.int64)}


@pytest.mark.parametrize("op", SPECS)
def test_no_zero_point_or_multiplier_is_a_plain_integer(op: str) -> None:
    for case, (first, second), (points, others) in of_all_profiles(op):
        one, other = (plain_integers(step.prepared.data) for step in (first, second) if step.prepared is not None)
        for place, value in one.items():
            assert abs(value) < 1 << 24, (str(case), place, value)
            for position, point in points.items():
                follows = (value, other.get(place)) in ((point, others[position]), (-point, -others[position]))
                assert not follows or place.endswith("span[0]"), (str(case), place, value)  # the span of centred codes


@pytest.mark.parametrize("op", CENTRED)
def test_zero_points_are_found_by_their_type(op: str) -> None:
    found: set[int] = set()
    for case in drawn(op):
        for _, (step, _), (points, _) in pairs(case, "litert-ref"):
            assert step.prepared is not None
            values = [int(part.value) for part in parts_of(step.prepared.data, ZeroPoint)]
            values += [int(code) for part in parts_of(step.prepared.data, ZeroPoints) for code in part.value.codes]
            for position in points.keys() & {*CENTRED[op]}:
                assert any(v and v % points[position] == 0 for v in values), (str(case), position, values)
                found.add(position)
    assert found == {*CENTRED[op]}


@pytest.mark.parametrize("op", FUSED)
def test_clamps_are_found_by_their_type(op: str) -> None:
    count = 0
    for case, (step, _), _ in of_all_profiles(op):
        assert step.prepared is not None
        y = step.node.outputs[0]
        wanted = code_range(step.node, y, CARRIER[y.type]) if y.is_quantized else None
        clamps = [part.value for part in parts_of(step.prepared.data, Clamp)]
        near = [max(map(abs, np.subtract(clamp, wanted))) <= 1 for clamp in clamps if wanted]  # XNNPACK rounds to even
        assert wanted is None or any(near), (str(case), wanted, clamps)
        count += wanted is not None
    assert count >= CASES


@pytest.mark.parametrize("op", SCALED)
def test_multipliers_are_found_by_their_type(op: str) -> None:
    steps = [step for case in drawn(op) for step in [prepared(case, "litert-ref")] if step is not None]
    quantized = [s for s in steps if s.node.outputs[0].is_quantized and s.node.outputs[0].type.label != "float32"]
    for step in quantized:
        assert step.prepared is not None
        assert any(next(parts_of(step.prepared.data, kind), None) for kind in MULTIPLIERS), step.node
    assert quantized


def test_the_leaky_relu_of_xnnpack_has_its_multipliers_and_zero_points() -> None:
    path = suites.ROOT / "golden" / "singleop" / "models" / "leaky_relu_01.tflite"
    step = prepare_alone(read(path.read_bytes()), 0, PROFILES["litert-xnnpack"])
    assert step.prepared is not None
    names = {part.name for kind in (FixedMultiplier, ZeroPoint, Clamp) for part in parts_of(step.prepared.data, kind)}
    assert names == {"positive", "negative", "input_zero_point", "output_zero_point", "clamp"}


def test_a_part_is_changed_in_its_place_and_nothing_else() -> None:
    path = suites.ROOT / "golden" / "singleop" / "models" / "hard_swish_i8_0.tflite"
    step = prepare_alone(read(path.read_bytes()), 0, PROFILES["litert-ref"])
    assert step.prepared is not None
    (output, _) = parts_of(step.prepared.data, ShortMultiplier)
    changed = output.rebuild(ShortMultiplier(1, -2))
    assert (output.owner, output.name, output.place) == ("data", "output", "data.output")
    assert changed.data.output == (1, -2)
    assert changed.data.reluish == step.prepared.data.data.reluish
    assert not np.array_equal(changed.table, step.prepared.data.table)  # it is made of the data


@pytest.mark.parametrize("profile", ["litert-ref", "litert-opt", "litert-xnnpack", "tflm", "tf-1.15-opt"])
def test_compiled_code_takes_plain_integers(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another type would cost each call more than the work of a small operator."""
    module: Any = import_module("tflq.engine.jit.compiled")
    honest = module.Compiled.__call__

    def call(self: Any, *arguments: Any) -> Any:
        kinds = (ZeroPoint, ZeroPoints, Shift, Clamp, Multiplier, ShortMultiplier, FixedMultiplier)
        assert not [one for one in arguments if isinstance(one, kinds)], self
        return honest(self, *arguments)

    folder = suites.ROOT / "golden" / "singleop"
    monkeypatch.setattr(module.Compiled, "__call__", call)
    for entry in json.loads((folder / "index.json").read_text(encoding="utf-8"))[::3]:
        ((inputs, _), *_) = samples_of(np.load(folder / entry["golden"], allow_pickle=False))
        try:
            running.run((folder / entry["model"]).read_bytes(), inputs, profile)
        except TflqError:
            continue
