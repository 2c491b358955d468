"""Verbs on models with several signatures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from support import suites
from support.running import tflq

DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"
needs_litert = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed"
)
