"""A known fault of a runtime is named as that, not as another runtime's arithmetic."""

from __future__ import annotations

import make_questions
import numpy as np

from support.devices import T, one
from tflq.comparison.evidence.dumps import dump_of
from tflq.diagnosis.why import DeviceEvidence, Party, answer
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.face.report.verbs.why import Asked, advice, headline


def test_a_constant_that_a_release_is_known_for() -> None:
    """TensorFlow 2.5 never prepares the constants of LOG_SOFTMAX: every code is the lowest one."""
    model = one("LOG_SOFTMAX", [T("int8", (4, 10), 0.1, 3)], T("int8", (4, 10), 16 / 256, 127))
    samples = []
    for seed in range(3):
        x = np.random.default_rng(seed).integers(-128, 128, (4, 10)).astype(np.int8)
        values = run(make_plan(model, by_name("tf-2.5-ref")), {0: x}, keep_all=True).values
        samples.append({0: x, 1: np.array(values[1])})
    found = answer(model, DeviceEvidence(tuple(samples), tuple(dump_of(model, one) for one in samples)), "litert-ref")
    assert found.fault == Party.KNOWN
    assert "the bits of tf-2.5-ref" in headline(found)
    assert "a known fault of 2.5" in headline(found)
    assert "the constant -128" in headline(found)
    assert "nothing was computed" not in headline(found)
    assert "from now on" not in advice(found, Asked())


def test_zeros_that_a_release_is_known_for_were_computed() -> None:
    """XNNPACK in ai-edge-litert 1.0.1 to 2.1.6 reads no tap: without a bias, all codes are zeros."""
    content, given = make_questions.same_padding(np.random.default_rng(make_questions.SEED))
    model = load(content)
    sample = {0: given, 3: np.zeros((1, 2, 2, 4), np.float32)}
    found = answer(model, DeviceEvidence((sample,), (dump_of(model, sample),)), "litert-ref")
    assert found.fault == Party.KNOWN
    assert "SAME padding that is negative" in headline(found)
    assert headline(found).endswith("; the output is the constant 0")
