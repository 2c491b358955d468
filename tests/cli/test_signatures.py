"""Verbs on models with several signatures."""

from __future__ import annotations

import pytest

from support import suites

DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"
needs_litert = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed"
)
