from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "tools"))

import suites


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared test material; skips the test where there is none."""
    reason = suites.missing()
    if reason:
        pytest.skip(reason)
    return suites.SHARED
