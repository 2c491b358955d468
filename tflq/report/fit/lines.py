"""The profiles that a whole dump fits in lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tflq.report.layout import Line, table


def fit_lines(ops: Sequence[str], matrix: Mapping[str, tuple[tuple[int, int] | None, ...]]) -> Iterator[Line]:
    """The best profile, the operators it does not explain, then every profile's score."""
    best = best_of(matrix)
    if not any(map(_compared, matrix.values())):
        yield Line("Nothing could be compared: the dump holds no operator's inputs and results", "warning")
        return
    left = unexplained(matrix[best])
    whole = "every operator compared" if not left else f"all but {_listed(ops, matrix[best])}"
    yield Line(f"Best: {best} explains {whole}", "good" if not left else "warning")
    equal = equal_profiles(matrix)
    if equal:
        yield Line(f"As good on this dump: {', '.join(equal)}")
    columns = (("profile", "<"), ("exact", ">"), ("compared", ">"), ("operators that differ", "<"))
    rows = ([name, str(_exact(row)), str(_compared(row)), _listed(ops, row)] for name, row in matrix.items())
    yield from table(columns, rows)


def best_of(matrix: Mapping[str, tuple[tuple[int, int] | None, ...]]) -> str:
    """The profile with most exact operators; the first of equals."""
    return max(matrix, key=lambda name: _exact(matrix[name]))


def equal_profiles(matrix: Mapping[str, tuple[tuple[int, int] | None, ...]]) -> list[str]:
    """The other profiles with as many exact operators as the best one."""
    best = best_of(matrix)
    return [name for name in matrix if name != best and _exact(matrix[name]) == _exact(matrix[best])]


def _exact(row: Sequence[tuple[int, int] | None]) -> int:
    return sum(cell is not None and cell[0] == cell[1] for cell in row)


def _compared(row: Sequence[tuple[int, int] | None]) -> int:
    return sum(cell is not None for cell in row)


def _listed(ops: Sequence[str], row: Sequence[tuple[int, int] | None]) -> str:
    return ", ".join(f"{i} {ops[i]}" for i in unexplained(row))


def unexplained(row: Sequence[tuple[int, int] | None]) -> list[int]:
    """Return the operators of which some compared elements differ."""
    return [i for i, cell in enumerate(row) if cell is not None and cell[0] != cell[1]]
