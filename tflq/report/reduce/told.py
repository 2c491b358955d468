"""A reduced difference in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.diagnosis.reduction import Reduced
from tflq.report.card import Card
from tflq.report.numbers import counted
from tflq.report.reduce.lines import remaining_texts


def reduced_card(reduced: Reduced) -> Card:
    """What is left, where it differs, and how to keep it."""
    sizes = ", ".join(str(list(value.shape)) for value in reduced.sample)
    kept = ", ".join(map(str, reduced.operators))
    return Card(
        f"Reduced to {counted(len(reduced.operators), 'operator')} of the original ({kept}), with inputs {sizes}",
        next(remaining_texts(reduced), "the check still shows the difference; what the device gives is not known"),
        "Next: tflq.save(reduced.model, path); .sample, .expected, .got",
    )


CARDS: Mapping[str, Callable[[Reduced], Card]] = {"Reduced": reduced_card}
