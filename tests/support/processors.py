"""Which processor the tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

_TEXT = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""

#: Whether it is of the kind that `litert-xnnpack` stands for: AVX2, and nothing beyond.
IS_PLAIN_AVX2 = "avx2" in _TEXT and "avx512f" not in _TEXT and "avx_vnni" not in _TEXT

on_plain_avx2 = pytest.mark.skipif(not IS_PLAIN_AVX2, reason="the order of sums is that of AVX2 and nothing beyond")
