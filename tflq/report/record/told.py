"""A golden in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.report.card import Card
from tflq.report.numbers import counted
from tflq.report.runtimes import runtime_text
from tflq.verification.golden import Golden


def golden_card(golden: Golden) -> Card:
    """What was recorded, from what, and how it is used."""
    kept = "all tensors" if golden.tensors else "outputs"
    seed = "" if golden.inputs.seed is None else f", seed {golden.inputs.seed}"
    return Card(
        f"Golden: {kept} of {counted(len(golden.observations), 'sample')}, {runtime_text(golden.runtime)}",
        f"inputs {golden.inputs.source}{seed}; of the model with SHA-256 {golden.model_sha256 or 'unknown'}",
        "Next: tflq.verify(model, golden); .observations, .notes",
    )


CARDS: Mapping[str, Callable[[Golden], Card]] = {"Golden": golden_card}
