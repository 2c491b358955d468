"""Quantize without starting LiteRT for the check, which a test asks for by the fixture `checked`."""

from __future__ import annotations

from typing import NoReturn

import pytest

from tflq.errors import RuntimeMissing


@pytest.fixture
def checked() -> None:
    """Let the real runtime check quantized models."""


@pytest.fixture(autouse=True)
def _unchecked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> NoReturn:
        raise RuntimeMissing("litert-ref", "the test needs no check")

    for module in () if "checked" in request.fixturenames else ("runtimes", "tails"):
        monkeypatch.setattr(f"tflq.quantization.judge.{module}.verify", missing)
