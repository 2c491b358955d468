"""Parts that several documents have: the model, the runtime, constants, promises; and the names of schemas."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from tflq.comparison.inspection.constants import Constants
from tflq.comparison.inspection.difference import Difference
from tflq.engine.api.subject import ModelFacts
from tflq.engine.kernels.exactness import Exactness

VERIFY, INSPECT, RECORD, RUN, ERROR = (f"tflq/{kind}/1" for kind in ("verify", "inspect", "record", "run", "error"))


def model_document(facts: ModelFacts) -> dict[str, Any]:
    """Return where the model came from, its size in bytes and its SHA-256."""
    return {"path": facts.path or None, "size": facts.size, "sha256": facts.sha256}


def facts_document(facts: ModelFacts) -> dict[str, Any]:
    """Return the same, with an empty path for a model that is in no file, and the converter that made the model."""
    converter = {"converter": facts.converter} if facts.converter else {}
    return {"path": facts.path, "size": facts.size, "sha256": facts.sha256, **converter}


def converter_texts(facts: ModelFacts) -> list[str]:
    """Return which converter made the float model, if one did."""
    return [f"{facts.path} converted by {facts.converter}"] if facts.converter else []


def runtime_document(runtime: Any) -> dict[str, Any]:
    """Return the facts of a runtime: of a description, or of a golden file."""
    return dict(asdict(runtime) if is_dataclass(runtime) and not isinstance(runtime, type) else runtime)


def promise_document(promise: Exactness | None) -> dict[str, Any] | None:
    """Return the promise of a result; None if nothing was run."""
    return None if promise is None else {"word": promise.word, "ulp": promise.ulp, "reason": promise.reason or None}


def constants_document(constants: Constants | None) -> dict[str, Any] | None:
    """Return the output stages, zero points and limits that an operator was prepared with."""
    if constants is None:
        return None
    return {"stages": [asdict(stage) for stage in constants.stages], "scalars": dict(constants.scalars)}


def difference_document(difference: Difference) -> dict[str, Any]:
    """Return a difference with every field; `kinds` by name."""
    return {**asdict(difference), "problem": difference.problem or None, "kinds": dict(difference.kinds)}
