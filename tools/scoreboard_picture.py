"""Draw docs/scoreboard.svg: who agrees with whom, and who leaves the reference kernels at which operator.

A square's colour is the share of cases with the same bits, its size the share of cases that both sides compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

#: A square: cases with the same bits, cases that both compute, all cases.
Share = tuple[int, int, int]
#: Sizes in pixels: a cell, the margin, the space for names; lines of text above a block.
CELL, MARGIN, NAMES, HEAD = 17, 14, 330, 46
#: Classes of colours with the least percentage of each, and its word in the legend.
STEPS = (
    ("s5", 100, "all bits"),
    ("s4", 95, "95 %"),
    ("s3", 85, "85 %"),
    ("s2", 65, "65 %"),
    ("s1", 35, "35 %"),
    ("s0", 0, "fewer"),
)
STYLE = """
svg { --ground: #fbfbfa; --ink: #1c2024; --soft: #5b636c; --line: #dfe2e6; }
svg { --s5: #14763d; --s4: #7cc08a; --s3: #f3d36b; --s2: #eda04f; --s1: #d9603b; --s0: #9c2230; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #131518; --ink: #e6e8ea; --soft: #9aa3ad; --line: #343a41; }
  svg { --s5: #35b86c; --s4: #2c6b45; --s3: #a48a2c; --s2: #c2742a; --s1: #d9573a; --s0: #ef8592; }
}
.ground { fill: var(--ground); stroke: var(--line); } .rule { stroke: var(--line); }
text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
.h { font-weight: 600; font-size: 14px; } .f { fill: var(--soft); } .n { text-anchor: middle; font-size: 10px; }
.e { text-anchor: end; }
"""


def step(share: Share) -> str:
    """Return the class of a square's colour; empty if there is nothing to compare."""
    same, both, _ = share
    return next(name for name, least, _ in STEPS if 100 * same >= least * both) if both else ""


def _square(x: float, y: float, share: Share) -> str:
    if not share[1]:
        return f'<circle class="f" cx="{x + CELL / 2:g}" cy="{y + CELL / 2:g}" r="1.2"/>'
    side = round((CELL - 2) * (0.4 + 0.6 * share[1] / share[2]), 1)
    at = (CELL - side) / 2
    place = f'x="{x + at:.1f}" y="{y + at:.1f}" width="{side:g}" height="{side:g}"'
    return f'<rect fill="var(--{step(share)})" {place}/>'


def _block(top: float, title: str, about: str, names: Sequence[str], rows: Sequence[Sequence[Share]]) -> Iterator[str]:
    """Yield a matrix below a title; columns have numbers, rows their names."""
    yield f'<text class="h" x="{MARGIN}" y="{top + 14}">{escape(title)}</text>'
    yield f'<text class="f" x="{MARGIN}" y="{top + 30}">{escape(about)}</text>'
    for number in range(len(rows[0])):
        x = MARGIN + NAMES + (number + 0.5) * CELL
        yield f'<text class="f n" x="{x:g}" y="{top + HEAD - 3}">{number + 1}</text>'
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        y = top + HEAD + number * CELL
        yield f'<text class="e" x="{MARGIN + NAMES - 6}" y="{y + 12.5:g}">{escape(name)}</text>'
        yield from (_square(MARGIN + NAMES + k * CELL, y, share) for k, share in enumerate(row))


def _legend(top: float) -> Iterator[str]:
    x = float(MARGIN)
    for name, _, word in STEPS:
        yield f'<rect fill="var(--{name})" x="{x:g}" y="{top}" width="13" height="13"/>'
        yield f'<text class="f" x="{x + 17:g}" y="{top + 11}">{word}</text>'
        x += 34 + 7 * len(word)
    yield f'<text class="f" x="{x:g}" y="{top + 11}">small: computes few of the cases; a dot: none</text>'


def draw(
    names: Sequence[str], pairs: Sequence[Sequence[Share]], operators: Sequence[str], parts: Sequence[Sequence[Share]]
) -> str:
    """Return the picture: systems by systems, and below it operators by the same systems."""
    wide = 2 * MARGIN + NAMES + CELL * len(names)
    second = MARGIN + 34 + HEAD + CELL * len(names) + 22
    high = second + HEAD + CELL * len(operators) + MARGIN
    numbered = [f"{name}  {number}" for number, name in enumerate(names, 1)]
    about = "Same bits, of the cases that both compute."
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">',
        "<title>Which runtimes compute the same bits</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{wide - 1}" height="{high - 1}" rx="7"/>',
        *_legend(MARGIN),
        *_block(MARGIN + 34, "Who agrees with whom", about, numbered, pairs),
        *_block(
            second,
            "Who leaves LiteRT’s reference kernels, and where",
            "Operators by the same systems.",
            operators,
            parts,
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
