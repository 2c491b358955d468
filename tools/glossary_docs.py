"""Write docs/glossary.md from the words of tflq/face/report/wording.py.

python tools/glossary_docs.py
"""

from __future__ import annotations

from pathlib import Path

from tflq.face.report.wording import WORDS, anchor

PAGE = Path(__file__).resolve().parents[1] / "docs/glossary.md"


def page() -> str:
    """Return the text of the page."""
    rows = [f'| <a id="{anchor(word)}"></a>{word} | {meaning} |' for word, meaning in WORDS.items()]
    about = (
        "Words that tflq's output, pages and documents use with one meaning each. `tflq help words` prints them; the"
    )
    more = "pages of `--html` link to them."
    return "\n".join(["# Words", "", about, more, "", "| word | meaning |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
