"""A run as a document: `schemas/run.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tflq.api.subject import ModelFacts
from tflq.kernels.exactness import Exactness
from tflq.report.documents import RUN, model_document, promise_document
from tflq.verification.results import InputFacts


def run_document(
    model: ModelFacts,
    profile: str,
    inputs: InputFacts,
    path: str,
    arrays: Mapping[str, Any],
    promises: Mapping[str, Exactness],
) -> dict[str, Any]:
    """A run: `schemas/run.schema.json`. `arrays` are the entries of the file at `path`, with what each is promised."""
    return {
        "schema": RUN,
        "model": model_document(model),
        "profile": profile,
        "inputs": asdict(inputs),
        "file": path or None,
        "arrays": [
            {
                "name": name,
                "dtype": str(value.dtype),
                "shape": list(value.shape),
                "promise": promise_document(promises[name]),
            }
            for name, value in arrays.items()
        ],
    }
