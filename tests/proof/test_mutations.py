"""One number of a portable model changes: the proof finds an input that shows it, or the change alters no bit.

The model is portable by construction: even weights, odd biases, multipliers just below a power of two. Changes that
alter no bit are shown to be harmless without the prover: both stages are evaluated on every sum that can be reached.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import tflq
from support.portable import portable
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read
from tflq.model.ir import Model, view
from tflq.proof import OperatorProof, Word, prove
from tflq.proof.operator import BoundOperator, bind
from tflq.proof.products import ReachedSums, sums_of

FEW = ("litert-ref", "litert-opt", "litert-xnnpack", "tflite-2.14-ref", "tflm-cmsis-nn-single", "litert-js")


def mutated(model: Model, rng: np.random.Generator) -> tuple[Model, int, str]:
    """One odd weight, one even bias, or one scale a float32 step up or down; also the operator, and the kind."""
    graph = view(model)
    index, kind = int(rng.integers(3)), str(rng.choice(["weight", "bias", "scale up", "scale down"]))
    _, w, b = graph.op(index).inputs
    if kind.startswith("scale"):
        quantization = graph.tensor(w).quantization
        assert quantization is not None
        scale = quantization.scale.copy()
        channel = int(rng.integers(len(scale)))
        scale[channel] = np.nextafter(scale[channel], np.float32(np.inf if kind == "scale up" else 0))
        tensors = list(graph.tensors)
        tensors[w] = replace(tensors[w], quantization=replace(quantization, scale=scale))
        return replace(model, subgraphs=(replace(graph.record, tensors=tuple(tensors)),)), index, kind
    tensor = w if kind == "weight" else b
    codes = np.array(graph.constant(tensor))
    codes.reshape(-1)[rng.integers(codes.size)] += 1
    buffers = list(model.buffers)
    number = graph.tensor(tensor).buffer
    buffers[number] = replace(buffers[number], data=np.frombuffer(codes.tobytes(), np.uint8))
    return replace(model, buffers=tuple(buffers)), index, kind


def reachable(sums: ReachedSums, channel: int) -> np.ndarray:
    """Every sum of one channel that some place reaches, by adding one tap after the other."""
    reached = np.zeros(int(sums.high[channel] - sums.low[channel]) + 1, bool)
    for field in sums.fields(channel):
        here, low = np.ones(1, bool), 0
        for weight in sums.weights[channel][field.taps].tolist():
            ends = sorted((weight * sums.span[0], weight * sums.span[1]))
            wider = np.zeros(len(here) + ends[1] - ends[0], bool)
            for value in range(ends[0], ends[1] + 1, max(1, abs(weight))):
                wider[value - ends[0] : value - ends[0] + len(here)] |= here
            here, low = wider, low + ends[0]
        start = low - int(sums.low[channel])
        reached[start : start + len(here)] |= here
    return np.flatnonzero(reached) + int(sums.low[channel])


def harmless(model: Model, index: int, names: tuple[str, ...]) -> bool:
    """Return whether all profiles give the same code for every sum that a channel can reach."""
    bound = [bind(model, index, by_name(name)) for name in names]
    sums = [sums_of(one) for one in bound if isinstance(one, BoundOperator)]
    first = sums[0]
    assert first is not None
    for channel in range(len(first.weights)):
        at = reachable(first, channel)
        table = np.ascontiguousarray(np.repeat(at[:, None], len(first.weights), 1).astype(np.int32))
        codes = []
        for one in sums:
            assert one is not None
            codes.append(np.empty(table.shape, one.output.pipeline.dtype))
            one.output.into(table, codes[-1])
        if any((a[:, channel] != b[:, channel]).any() for a, b in combinations(codes, 2)):
            return False
    return True


def run(model: Model, profile: str, inputs: object) -> list[np.ndarray]:
    """By the drop-in interpreter, which knows nothing of proofs."""
    interpreter = tflq.Interpreter(model_content=tflq.save(model), profile=profile)
    interpreter.allocate_tensors()
    for tensor, value in dict(inputs).items():  # type: ignore[call-overload]
        interpreter.set_tensor(tensor, value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def alone(model: Model, index: int) -> Model:
    """One operator with the tensors of the whole model."""
    graph = view(model)
    op = graph.op(index)
    record = replace(graph.record, operators=(op.record,), inputs=op.inputs[:1], outputs=op.outputs)
    return replace(model, subgraphs=(record,), signature_defs=None)


def judged(number: int, names: tuple[str, ...]) -> str:
    """Mutate, prove, and check the verdict; return the kind and what it was."""
    rng = np.random.default_rng([number, 7])
    model, index, kind = mutated(portable(number // 10), rng)
    operators = prove(read(tflq.save(model)), names).operators
    found: OperatorProof = operators[index]
    assert all(o.word == Word.EQUAL for o in operators if o.index != index)
    assert found.word != Word.UNDECIDED, found.methods
    if found.word == Word.EQUAL:
        assert harmless(model, index, names), (number, kind, found.methods)
        return f"{kind}: harmless"
    for verdict in found.verdicts:
        if verdict.word == Word.DIFFERS:
            assert verdict.witness is not None
            part = alone(model, index)
            one, other = (run(part, name, verdict.witness.inputs) for name in (verdict.first, verdict.second))
            assert (one[0] != other[0]).any()
    return f"{kind}: shown"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_model_is_portable(seed: int) -> None:
    proof = prove(portable(seed), "all")
    assert proof.word == Word.EQUAL, [(o.op, o.methods) for o in proof.operators if o.word != Word.EQUAL]
    assert {"tflm", "litert-xnnpack", "tflm-cmsis-nn-single", "tf-2.5-opt"} <= set(proof.profiles)
    assert proof.coverage[0].is_whole


def test_mutations_are_shown_or_harmless() -> None:
    found = Counter(judged(number, FEW) for number in range(16))
    assert sum(count for word, count in found.items() if word.endswith("shown")) >= 4, found


@pytest.mark.slow
def test_three_hundred_mutations() -> None:
    found = Counter(judged(number, FEW) for number in range(300))
    assert found["weight: harmless"] + found["bias: harmless"] == 0, found
    assert found["weight: shown"] > 40, found
    assert found["bias: shown"] > 40, found
    assert found["scale up: shown"] > 40, found  # a multiplier that is no longer below the power of two
