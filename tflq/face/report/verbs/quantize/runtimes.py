"""Statements and rows about how far the recipe's runtimes agree on a quantized model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.face.report.documents.quantize import RuntimesDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.numbers import counted
from tflq.quantization.judge.several_runtimes import Agreed
from tflq.quantization.portable.portability import OperatorDifferences, Portability


def outputs_text(portability: Portability) -> str:
    """Return how many elements of the outputs differ on each runtime from the first."""
    first, *others = portability.runtimes
    differing = ", ".join(f"{count:,} on {name}" for name, count in zip(others, portability.differing, strict=True))
    over = f"over {counted(portability.samples, 'held-out sample')}"
    return f"Other than on {first}: {differing} of {portability.elements:,} elements of the outputs, {over}"


def nudging_text(agreed: Agreed) -> str:
    """Return how many elements operators alone compute otherwise, and how many scales were nudged for it."""
    now = f"Operators on the same inputs make {agreed.portability.total:,} elements otherwise"
    if not agreed.nudges:
        return f"{now}; no scale was nudged: none within 0.5 % does better on these samples"
    return f"{now}, {agreed.before.total:,} before {counted(len(agreed.nudges), 'scale')} moved by up to 0.5 %"


def columns(portability: Portability) -> tuple[tuple[str, str], ...]:
    """Return the columns of a table of operators of the written model."""
    return ("#", ">"), ("operator", "<"), ("elements", ">"), *((name, ">") for name in portability.runtimes[1:])


def rows(operators: Sequence[OperatorDifferences]) -> Iterator[list[str]]:
    """Yield a row for each operator: how many elements each runtime has otherwise."""
    for o in operators:
        yield [str(o.index), o.op, f"{o.elements:,}", *(f"{count:,}" for count in o.differing)]


def by_difference(portability: Portability) -> list[OperatorDifferences]:
    """Return the operators that runtimes make otherwise, those with the greatest share of their elements first."""
    differing = [o for o in portability.operators if any(o.differing)]
    return sorted(differing, key=lambda o: -max(o.differing) / o.elements)


def agreement_document(agreed: Agreed) -> RuntimesDocument:
    """Return all figures; operators are those of the written model."""
    now, before = agreed.portability, agreed.before
    return {
        "runtimes": list(now.runtimes),
        "samples": now.samples,
        "elements": now.elements,
        "differing": list(now.differing),
        "operators": [fields_of(o, differing=list(o.differing)) for o in now.operators],
        "before_nudging": {"differing": list(before.differing), "operators": before.total},
        "nudges": [
            {"index": n.index, "op": n.op, "factor": n.factor, "before": n.before, "after": n.after}
            for n in agreed.nudges
        ],
    }
