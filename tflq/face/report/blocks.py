"""Reports as blocks: the findings of a verb, as values that know nothing of how they are rendered.

Builders in `report/verbs` make a `Report`; `report/render` turns it into text for a terminal, an HTML page or a card
for a notebook. All three show the blocks in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

    from tflq.face.report.graph.colouring import Colouring
    from tflq.face.report.graph.drawing import ModelView

#: Titles of columns with their alignment: "<" left, ">" right, "=" left and never wrapped.
Columns = Sequence[tuple[str, str]]


# --- Inline values: parts of a line, cells of a table ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperatorBlock:
    """An operator of the model. A page links it to its panel."""

    index: int
    op: str

    def __str__(self) -> str:
        return self.op


@dataclass(frozen=True, slots=True)
class Badge:
    """A word with a dot in the colour of its style on a page."""

    text: str
    style: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A path, name or number, as it is typed."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Shortened:
    """A long text as it is shown, and the whole of it, which a page shows when it is pointed at."""

    text: str
    whole: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Styled:
    """Text in the colour of a style, or "strong"."""

    text: str
    style: str

    def __str__(self) -> str:
        return self.text


#: Part of a line; a tuple is rendered one part after the other.
Inline = str | OperatorBlock | Badge | CodeBlock | Shortened | Styled | tuple["Inline", ...]


def plain(value: Inline) -> str:
    """Return the text of an inline value."""
    return "".join(map(plain, value)) if isinstance(value, tuple) else str(value)


# --- Blocks ----------------------------------------------------------------------------------------------------------


class Block:
    """A part of a report. Renderers show it, or skip it if it is for other renderers only."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Headline(Block):
    """The verdict in one line. A page shows it as its headline, without the subject.

    `word` is the verdict itself, as in DIFFERS; `headline` is the page's text if it is not `text`.
    """

    text: str
    style: str = "strong"
    word: str = ""
    subject: str = ""
    headline: Inline = ""

    @property
    def line(self) -> str:
        """The word, the subject and the text."""
        return " ".join([*filter(None, [self.word, self.subject and f"{self.subject}:"]), self.text])


@dataclass(frozen=True, slots=True)
class FactLine(Block):
    """A fact about what was read or compared. A page shows it below the headline."""

    text: Inline
    style: str = ""


@dataclass(frozen=True, slots=True)
class Text(Block):
    """One statement: a line of text, a paragraph of a page."""

    text: Inline
    style: str = ""
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Note(Block):
    """A warning to read before the details."""

    text: str


@dataclass(frozen=True, slots=True)
class Gap(Block):
    """A blank line in text; nothing on a page."""


@dataclass(frozen=True, slots=True)
class Listing(Block):
    """Short statements of one kind. Text indents them."""

    values: Sequence[Inline]
    style: str = ""
    indent: int = 1


@dataclass(frozen=True, slots=True)
class TableBlock(Block):
    """Rows of cells.

    Text lists the first `most` rows, then `rest`, in which {left}, {shown} and {of} are counts of rows. A page has all
    rows, below the summary `fold` if there is one; `styles` are the classes of its rows.
    """

    columns: Columns
    rows: Sequence[Sequence[Inline]]
    most: int | None = None
    rest: str = "... and {left} more (--all shows them)"
    fold: str = ""
    styles: Sequence[str] = ()
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Next(Block):
    """Commands to type next, the most useful one first."""

    commands: Sequence[str]


@dataclass(frozen=True, slots=True)
class Section(Block):
    """Blocks below one heading on a page, with the anchor `name`. Text has the blocks without the heading."""

    name: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Fold(Block):
    """Blocks that a page folds below a summary. Text omits them."""

    summary: Inline
    blocks: Sequence[Block]
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Verbatim(Block):
    """Text whose line breaks and spaces are kept, as of a file."""

    text: str


@dataclass(frozen=True, slots=True)
class Pairs(Block):
    """Names and values. Text shows them as a table without a head, a page as a list of definitions."""

    pairs: Sequence[tuple[str, Inline]]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart: its label, a value, the text beside it, and the class of its colour."""

    label: Inline
    value: float
    text: str
    style: str = "plain"


@dataclass(frozen=True, slots=True)
class Bars(Block):
    """A chart of bars, on pages only. `full` is a value that fills the chart even if no bar reaches it.

    `key` is a style with its meaning.
    """

    title: str
    unit: str
    rows: Sequence[Bar]
    full: float = 0.0
    key: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Figures(Block):
    """Drawings side by side, on pages only."""

    drawings: Sequence[Markup]


@dataclass(frozen=True, slots=True)
class Graph(Block):
    """The model as a picture, on pages only.

    Operators are coloured by the first colouring at the start; `panels` has the blocks about each operator, by index;
    `focus` is the operator in view at the start.
    """

    colourings: Sequence[Colouring] = ()
    panels: Mapping[int, Iterable[Block]] | Callable[[int], Iterable[Block]] | None = None
    focus: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryChart(Block):
    """Bytes of activations over the operators of the model, on pages only."""


@dataclass(frozen=True, slots=True)
class OnPage(Block):
    """Blocks for pages of a model only. They are built from the model when the page is rendered."""

    build: Callable[[ModelView], Iterable[Block]]


@dataclass(frozen=True, slots=True)
class InText(Block):
    """Blocks for text only."""

    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Brief(Block):
    """The lines of a card below the verdict: where to look first, and what to do next in Python.

    `verdict` replaces the verdict's line.
    """

    where: str
    then: str
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a verb.

    `about` names what was read, in one line; `title` is that of the page's window; `headline` is that of the page, if
    the blocks have no verdict.
    """

    verb: str
    blocks: Sequence[Block]
    about: Inline = ""
    title: str = ""
    headline: str = ""

    @property
    def verdict(self) -> Headline | None:
        """The first verdict, if there is one."""
        return next((block for block in self.blocks if isinstance(block, Headline)), None)
