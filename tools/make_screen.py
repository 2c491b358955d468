"""Draw docs/screen.svg, the terminal session of README.md, from a real run of its commands.

python tools/make_screen.py           draw it
python tools/make_screen.py --check   only check whether it shows what the commands print
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/screen.svg"
MODEL = "digits.tflite"
#: The commands of the session, in a folder that holds the model. A profile replaces the board.
SESSION = (
    f"tflq run {MODEL} --inputs random --profile litert-opt --all-tensors -o board.npz --quiet",
    f"tflq why {MODEL} board.npz",
    f"tflq prove {MODEL} --between litert-ref tflm",
)
COLUMNS = 96
#: Size of a character cell, and the margin, in pixels.
WIDE, HIGH, MARGIN = 8.0, 19, 20
#: Classes by the parameters of ANSI's colours.
_CLASSES = {"1": "b", "2": "f", "38;5;28": "good", "38;5;196": "bad", "38;5;130": "warn"}
_ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
STYLE = """
svg { --ground: #fbfbfa; --ink: #1c2024; --soft: #5b636c; --line: #dfe2e6; }
svg { --good: #14763d; --bad: #b3261e; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #131518; --ink: #e6e8ea; --soft: #9aa3ad; --line: #343a41; }
  svg { --good: #5fd08d; --bad: #ff8a80; --warn: #f0b44c; }
}
rect { fill: var(--ground); stroke: var(--line); }
text { font: 13.3px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
text { fill: var(--ink); white-space: pre; }
.b { font-weight: 600; } .f { fill: var(--soft); }
.good { fill: var(--good); } .bad { fill: var(--bad); } .warn { fill: var(--warn); }
"""


def session() -> Iterator[str]:
    """Yield the lines of the session, with the escape sequences of its colours."""
    variables = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "golden/models/digits_mobilenet_int8.tflite", Path(folder) / MODEL)
        for command in SESSION:
            yield f"\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m"
            words = [sys.executable, "-m", *command.split()]
            done = subprocess.run(
                words, cwd=folder, env=inherited | variables, capture_output=True, text=True, check=False
            )
            if done.returncode not in (0, 1):
                raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stderr}")
            yield from done.stdout.rstrip("\n").split("\n")
            yield ""


def picture() -> str:
    """Return the picture."""
    lines = list(session())[:-1]
    width, height = COLUMNS * WIDE + 2 * MARGIN, len(lines) * HIGH + 2 * MARGIN
    title = escape("; ".join(SESSION))
    places = (MARGIN + HIGH * (row + 0.75) for row in range(len(lines)))
    texts = (f'<text x="{MARGIN}" y="{y:g}">{spans(line)}</text>' for y, line in zip(places, lines, strict=True))
    drawn = "\n".join(texts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n"
        f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="10"/>\n{drawn}\n</svg>\n'
    )


def spans(line: str) -> str:
    """Return a line as spans with the classes of its colours."""
    written, classes = [], list[str]()
    for position, part in enumerate(_ESCAPE.split(line)):
        if position % 2:
            classes = [name for code, name in _CLASSES.items() if re.search(rf"(?:^|;){code}(?:;|$)", part)]
        elif part:
            text = escape(part, quote=False)
            written.append(f'<tspan class="{" ".join(classes)}">{text}</tspan>' if classes else text)
    return "".join(written)


def main() -> int:
    """Draw the picture or check it; return 1 if it is not up to date."""
    drawn = picture()
    if "--check" in sys.argv[1:]:
        return int(PICTURE.read_text(encoding="utf-8") != drawn)
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
