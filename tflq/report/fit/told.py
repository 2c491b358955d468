"""How profiles fit a dump, in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.diagnosis.profile_fit import Fit
from tflq.report.card import Card
from tflq.report.fit.lines import STYLES, fit_lines, verdict_text


def fit_card(fit: Fit) -> Card:
    """The verdict, how many profiles fit or a mix of them, and where the rest is."""
    mix = "; ".join(f"as {name}: {', '.join(ops)}" for name, ops in fit.parts.items())
    how_many = f"{len(fit.fitting)} of {len(fit.matrix)} profiles fit the {len(fit.compared)} operators compared"
    return Card(
        verdict_text(fit),
        how_many if fit.fitting or not mix else mix,
        "Next: .fitting, .mix, .matrix; tflq.explain(model, dump, profile) where none fits",
        STYLES[fit.verdict],
        lambda: fit_lines(fit),
    )


CARDS: Mapping[str, Callable[[Fit], Card]] = {"Fit": fit_card}
