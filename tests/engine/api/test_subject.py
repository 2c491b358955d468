"""The digest of a model's file is computed when it is needed, and is a plain text elsewhere."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace

import pytest

from support import suites
from tflq.comparison.inspection.operators import inspect
from tflq.engine.api import files as module
from tflq.engine.api.files import subject
from tflq.face.report.verbs.inspect import size_text

MODEL = suites.ROOT / "golden" / "singleop" / "models" / "leaky_relu_01.tflite"
EXPECTED = hashlib.sha256(MODEL.read_bytes()).hexdigest()


def test_the_digest_is_that_of_the_file() -> None:
    facts = subject(MODEL).facts
    assert facts.sha256 == facts.sha256 == EXPECTED
    assert replace(facts, path="other").sha256 == EXPECTED
    assert pickle.loads(pickle.dumps(subject(MODEL).facts)).sha256 == EXPECTED


def test_inspect_shows_no_digest_of_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = inspect(MODEL).model
    assert size_text(facts) == f"{facts.size:,} bytes, SHA-256 {EXPECTED}"
    monkeypatch.setattr(module, "_MAPPED_FROM", 1)
    monkeypatch.setattr(hashlib, "sha256", None)
    assert size_text(inspect(MODEL).model) == f"{facts.size:,} bytes, SHA-256 not computed (--json has it)"
