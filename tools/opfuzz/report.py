"""The printed and saved results of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from opfuzz.case import Case
from opfuzz.compare import Outcome, Verdict
from opfuzz.edges import Edge
from opfuzz.session import Judged, Tally, undrawn
from tflq.engine.profiles import by_name

X = TypeVar("X")

COLUMNS = {
    "same": Verdict.SAME,
    "different": Verdict.DIFFERENT,
    "both ref.": Verdict.BOTH_REFUSED,
    "tflq ref.": Verdict.TFLQ_REFUSED,
    "live ref.": Verdict.LIVE_REFUSED,
    "undefined": Verdict.UNDEFINED,
    "aborted": Verdict.LIVE_ENDED,
    "failed": Verdict.TFLQ_FAILED,
}


def progress(judged: Iterator[Judged], count: int) -> Iterator[Judged]:
    """Pass the cases on, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield from judged
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(judged, "models", count, console=Console(stderr=True), transient=True)


def described(case: Case, outcome: Outcome, line: str) -> str:
    """Return a case and its outcome."""
    return f"{line}: {outcome.verdict.value}: {outcome.note}\n{case}\n"


def described_edge(edge: Edge, line: str) -> str:
    """Return an edge, its changes and the answer on it."""
    return f"{line}\n  changed: {', '.join(edge.changes)}\n{edge.case}\n"


def table(tally: Tally, seed: int) -> str:
    """Return the counts by operator."""
    rows = [["operator", "models", *COLUMNS, "constant"]]
    for op, counts in sorted(tally.verdicts.items()):
        cells = [counts[verdict] for verdict in COLUMNS.values()]
        rows.append([op, str(sum(cells)), *(str(n or ".") for n in (*cells, tally.constant[op]))])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    lines.append("")
    missing = undrawn(by_name("litert-ref").kernels)
    if missing:
        lines.append(f"never drawn: {' '.join(missing)}")
    lines.append(
        f"seed {seed}: {tally.models} models, {tally.elements} elements compared, {100 * tally.varied:.1f} % ran with "
        f"outputs that vary, {len(tally.wrong)} unexplained differences"
    )
    return "\n".join(lines)


def as_json(tally: Tally, seed: int) -> str:
    """Return the counts as JSON."""
    return json.dumps(
        {
            "seed": seed,
            "models": tally.models,
            "elements": tally.elements,
            "varied": round(tally.varied, 4),
            "operators": {
                op: {verdict.value: n for verdict, n in counts.items()} | {"constant": tally.constant[op]}
                for op, counts in sorted(tally.verdicts.items())
            },
            "unexplained": [
                {
                    "case": one.number,
                    "op": one.case.op,
                    "types": one.case.types,
                    "verdict": one.outcome.verdict.value,
                    "note": one.outcome.note,
                }
                for one in tally.wrong
            ],
        },
        indent=1,
    )


def save(folder: Path, name: str, case: Case, outcome: Outcome, line: str) -> None:
    """Save a case as a model, its inputs and a note."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.tflite").write_bytes(case.model())
    inputs = {f"sample{s}_input{i}": v for s, sample in enumerate(case.samples) for i, v in enumerate(sample)}
    np.savez(folder / f"{name}.npz", **inputs)  # type: ignore[arg-type]
    (folder / f"{name}.txt").write_text(described(case, outcome, line), encoding="utf-8")
