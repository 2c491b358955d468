"""What a golden holds, and how two of them differ, as documents: `schemas/golden-diff.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.diagnosis.drift import Drift
from tflq.inspection.difference import Difference
from tflq.report.documents import runtime_document
from tflq.report.golden.lines import causes_of
from tflq.verification.bundle import manifest_of
from tflq.verification.golden import Golden


def golden_document(golden: Golden, path: str, arrays: tuple[int, int]) -> dict[str, Any]:
    """The manifest that the golden has as a bundle, its path, and how many arrays it has, and different ones."""
    said = manifest_of(golden, len(golden.observations))
    return {
        "schema": "tflq/golden-show/1",
        "golden": path,
        "arrays": arrays[0],
        "different": arrays[1],
        "manifest": said,
    }


def drift_document(drift: Drift) -> dict[str, Any]:
    """Every operator with what became of it."""
    return {
        "schema": "tflq/golden-diff/1",
        "first": {"golden": drift.first, "runtime": runtime_document(drift.runtimes[0])},
        "second": {"golden": drift.second, "runtime": runtime_document(drift.runtimes[1])},
        "profile": drift.profile,
        "samples": drift.samples,
        "differs": drift.differs,
        "verdict": drift.verdict.value,
        "operators": [
            {
                "index": o.index,
                "op": o.op,
                "drifted": o.drifted.value,
                "samples": o.samples,
                "difference": _difference(o.difference),
            }
            for o in drift.operators
        ],
        "outputs": [_difference(d) for d in drift.outputs],
        "output_samples": list(drift.output_samples),
        "causes": list(causes_of(drift)),
    }


def _difference(d: Difference | None) -> dict[str, Any] | None:
    if d is None:
        return None
    first = None if d.first is None else asdict(d.first)
    return {
        "elements": d.elements,
        "differing": d.differing,
        "unit": d.unit,
        "largest": d.largest,
        "first": first,
        "problem": d.problem or None,
    }
