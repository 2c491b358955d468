"""A comparison of two models in three lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tflq.quantization.judge.comparison import Comparison
from tflq.report.card import Card
from tflq.report.compare.lines import COLUMNS, agreement_texts, lead_text, samples_text, tensor_row, where_texts, worst
from tflq.report.render.line import Line
from tflq.report.render.text import table


def comparison_card(comparison: Comparison) -> Card:
    """Accuracy or agreement, where most is lost, and where the rest is."""

    def report() -> Iterator[Line]:
        yield from map(Line, (*agreement_texts(comparison.agreement), *where_texts(comparison)))
        yield from table(COLUMNS, map(tensor_row, worst(comparison, len(comparison.tensors))))

    return Card(
        f"Comparison over {samples_text(comparison.samples)}: {lead_text(comparison)}",
        next(where_texts(comparison), "no tensor of the same name and shape between the inputs and the outputs"),
        "Next: .agreement, .tensors, .outputs",
        report=report,
    )


CARDS: Mapping[str, Callable[[Comparison], Card]] = {"Comparison": comparison_card}
