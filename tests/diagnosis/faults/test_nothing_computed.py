"""Constants, results of another sample, unsteady results and skipped operators are causes of their own."""

from __future__ import annotations

import numpy as np

from support.convolved import REF, alone, defect, network, result, runs
from tflq.comparison.evidence.dumps import dump_of
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import DefectKind
from tflq.diagnosis.findings import investigate


def test_a_constant_is_named_and_no_arithmetic_that_gives_it() -> None:
    samples = alone(lambda _, right: np.full_like(right[0], -128))
    model = network()
    explanation = investigate(model, [dump_of(model, one) for one in samples], REF).explanation
    assert explanation is not None
    assert explanation.causes == ()
    assert explanation.defect is not None
    assert explanation.defect.kind == DefectKind.NOTHING
    assert "constant -128 (the zero point) in all 3 samples" in explanation.defect.name
    assert explanation.certainty == Certainty.LIKELY


def test_one_result_for_all_samples_is_stale() -> None:
    found = defect(alone(lambda _, right: right[0]))
    assert found is not None
    assert "same in all 3 samples, the right one of sample 0" in found.name


def test_results_of_the_sample_before_are_stale() -> None:
    found = defect(alone(lambda k, right: right[k - 1] if k else np.zeros_like(right[0])))
    assert found is not None
    assert "the sample before" in found.name
    assert found.certainty == Certainty.CERTAIN


def test_results_that_change_between_equal_runs_are_uninitialized() -> None:
    model, draw = network(), np.random.default_rng(1)
    (values,) = runs(model, 1)
    tensor = next(t for t in values if values[t].shape == (1, 16, 16, 16))
    noise = [draw.integers(-128, 128, values[tensor].shape).astype(np.int8) for _ in range(2)]
    found = defect([{**values, tensor: noise[0]}, {**values, tensor: noise[1]}], model)
    assert found is not None
    assert "changes between equal runs: uninitialized memory" in found.name
    assert "samples 0 and 1" in found.place


def test_a_constant_at_an_end_of_its_type_may_have_saturated() -> None:
    found = defect(alone(lambda _, right: np.full_like(right[0], 127)))
    assert found is not None
    assert found.name.endswith("nothing was computed, or every result saturates")
    assert found.certainty == Certainty.NONE


def test_readers_of_a_tensor_that_the_dump_lost_are_not_unsteady() -> None:
    model = network()
    tensor = result(model)
    samples = [{**one, tensor: np.full_like(one[tensor], 7)} if k % 2 else one for k, one in enumerate(runs(model, 4))]
    found = defect(samples)
    assert found is not None
    assert found.name == f"tensor {tensor} holds the constant 7, not what operator 2 read"
    assert found.place == "in samples 1, 3 of 4"
