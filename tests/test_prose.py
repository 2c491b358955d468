"""Docstrings, comments and pages are plain technical English: no odd openings, and none of the phrases below."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: Folders and patterns of files whose prose is checked.
ROOMS = ("tflq", "tests/*.py", "tools")

#: Pages of documents.
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/how-to/*.md", "docs/questions/*.md")
#: The parts of a page that are not its prose: tables written by a tool, blocks of code, code in a line.
NOT_PROSE = re.compile(r"<!-- (\w+): made by .*?<!-- end of \1 -->|^```.*?^```|`[^`]*`", re.DOTALL | re.MULTILINE)

#: No docstring opens with these.
OPENINGS = re.compile(r"(What|Whether|Of|As|The same)\b")

#: A function's docstring opens with a verb in the imperative, so with none of these.
NOUNS = re.compile(r"(The|A|An|All|Any|Both|Each|Every|How|Its|One|Some|That|These|This|Those|Where|Which|With)\b")

#: A property's docstring is a noun phrase, so it opens with none of these.
VERBS = re.compile(r"(Return|Yield|Raise)\b")

#: A phrase, and the words to write in its place.
PHRASES = {
    r"told|tells?": "reports, describes, distinguishes",
    r"said|says?": "reports, states, is `...`",
    r"stands?|stood": "is defined in, represents, is next to",
    r"held against": "compared with",
    r"h(?:angs?|ung) on": "depends on",
    r"so many|so much|\S*manieth": "the number of, n, every n-th",
    r"but (?:for|that)": "except",
    r"(?:who|what|which)ever": "name it",
    r"made of|makes? of": "computed from, builds",
    r"it is known that|nothing is known": "state the fact",
    r"passed over": "skipped",
    r"mend(?:s|ed)?": "fix",
    r"the like|altogether|as ever|anew": "drop it",
    r"tidings": "progress messages",
    r"surely|nobody": "name the test, name the actor",
}
FORBIDDEN = re.compile("|".join(rf"(?<![\w`-])(?:{phrase})(?![\w`-])" for phrase in PHRASES), re.IGNORECASE)

#: A line with a comment that may be odd.
ODD_COMMENT = re.compile(rf"#[#: ]*{OPENINGS.pattern}|{FORBIDDEN.pattern}", re.IGNORECASE)

#: The right uses, as the text has them.
ALLOWED = (
    "/told.py`",  # a file's name
    "`tells` names profiles",  # a field of suites
    "say: Prints a line.",  # an argument's name
    "tell: Is called with the progress.",  # an argument's name
    "if nobody can write to it",
    "if nobody reads its own output",
    "hang on newer models",
    "*cannot tell*",  # a verdict
)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, each before those within it, and no expression."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from statements(node)


def prose(path: Path) -> Iterator[tuple[int, str, re.Pattern[str]]]:
    """Yield line, text on one line, and forbidden openings, of each docstring and comment."""
    text = path.read_text(encoding="utf-8")
    openings: dict[int, re.Pattern[str]] = {}
    for node in statements(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            is_property = any("property" in ast.unparse(d) for d in node.decorator_list)
            openings[id(node.body[0])] = VERBS if is_property else NOUNS
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, " ".join(node.value.value.split()), openings.get(id(node), OPENINGS)
    if not any(ODD_COMMENT.search(line) for line in re.findall("#.*", text)):
        return  # tokens would show which of them are comments
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string.lstrip("#: "), OPENINGS


def without_allowed(text: str) -> str:
    for right in ALLOWED:
        text = text.replace(right, "")
    return text


def breaches(path: Path) -> Iterator[str]:
    """Yield the odd places of a file's prose, each with its line."""
    for line, text, openings in prose(path):
        place = f"line {line}"
        if OPENINGS.match(text) or openings.match(text):
            yield f"{place} opens with {' '.join(text.split()[:2])!r}"
        yield from (f"{place} holds {found.group()!r}" for found in FORBIDDEN.finditer(without_allowed(text)))


def breaches_of_page(path: Path) -> Iterator[str]:
    """Yield the odd places of a page's prose, each with its line."""
    text = NOT_PROSE.sub(lambda found: "\n" * found.group().count("\n"), path.read_text(encoding="utf-8"))
    for line, words in enumerate(text.splitlines(), 1):
        yield from (f"line {line} holds {found.group()!r}" for found in FORBIDDEN.finditer(without_allowed(words)))


@pytest.mark.parametrize("room", ROOMS)
def test_prose_is_plain(room: str) -> None:
    files = sorted(ROOT.glob(room)) if "*" in room else sorted((ROOT / room).rglob("*.py"))
    assert files
    assert not [f"{file.relative_to(ROOT)}, {breach}" for file in files for breach in breaches(file)]


@pytest.mark.parametrize("pattern", PAGES)
def test_pages_are_plain(pattern: str) -> None:
    pages = sorted(ROOT.glob(pattern))
    assert pages
    assert not [f"{page.relative_to(ROOT)}, {breach}" for page in pages for breach in breaches_of_page(page)]


def test_odd_pages_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "A `stage` tells.\n\n```text\nwhatever\n```\n"
        "<!-- faults: made by a tool -->\nanew\n<!-- end of faults -->\n"
        "It is *cannot tell*, or `told`.\nIt hangs on x.\n",
        encoding="utf-8",
    )
    assert list(breaches_of_page(page)) == ["line 1 holds 'tells'", "line 10 holds 'hangs on'"]


@pytest.mark.parametrize(
    ("source", "odd"),
    [
        ('def f():\n    """What it returns."""', "opens with 'What it'"),
        ('def f():\n    """The number of rows."""', "opens with 'The number'"),
        ('class C:\n    """The number of rows."""', ""),
        ('def f():\n    """Return whether it is so."""', ""),
        ('class C:\n    @property\n    def f(self):\n        """Return the rows."""', "opens with 'Return the'"),
        ("x = 1  # hangs on y", "holds 'hangs on'"),
        ("x = 1  # samples held back", ""),
        ("x = 1  # each so-manieth draft", "holds 'so-manieth'"),
    ],
)
def test_odd_prose_is_found(tmp_path: Path, source: str, odd: str) -> None:
    file = tmp_path / "room.py"
    file.write_text(source + "\n", encoding="utf-8")
    assert [breach.split(" ", 2)[2] for breach in breaches(file)] == [odd][: bool(odd)]
