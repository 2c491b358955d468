"""Where the shared test material is, and what lies in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
SHARED = (ROOT / os.environ.get("TFLQ_SHARED", "no-shared-material")).resolve()
SUITES = ("real", "zip", "singleop")


def missing() -> str:
    """Why the shared material cannot be used, or an empty string."""
    return "" if (SHARED / "suites").is_dir() else "TFLQ_SHARED names no folder of shared test material"


@dataclass(frozen=True)
class Case:
    """One model of a suite, with its recorded inputs and outputs and its index entry."""

    suite: str
    entry: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.suite}/{Path(self.entry['model']).relative_to('models').with_suffix('')}"

    @property
    def model(self) -> Path:
        return SHARED / "suites" / self.suite / str(self.entry["model"])

    @property
    def golden(self) -> Path:
        return SHARED / "suites" / self.suite / str(self.entry["golden"])


def suite_models(*suites: str) -> Iterator[Case]:
    """The models of the named suites (all where none is named), in index order; nothing where there is no material."""
    if missing():
        return
    for suite in suites or SUITES:
        for entry in _index(suite):
            yield Case(suite, entry)


@cache
def _index(suite: str) -> list[dict[str, Any]]:
    index: list[dict[str, Any]] = json.loads((SHARED / "suites" / suite / "index.json").read_text(encoding="utf-8"))
    return index


class Digits(NamedTuple):
    """Handwritten digits: images from 0 to 1 of float32 and the shape (count, 8, 8, 1), and their labels."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]


def digits() -> Digits:
    """The images that the models of golden/models were not trained on; a copy for each caller."""
    with np.load(ROOT / "golden" / "models" / "digits_test.npz") as file:
        return Digits((file["images"] / np.float32(16)).astype(np.float32), file["labels"])


def parameters(cases: list[Case]) -> list[Any]:
    """Test parameters, named; where the material is missing one that is skipped with the reason."""
    if missing():
        return [pytest.param(None, marks=pytest.mark.skip(reason=missing()), id="shared")]
    return [pytest.param(case, id=case.id) for case in cases]
