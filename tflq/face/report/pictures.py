"""Blocks that are pictures of many operators: profiles against them, or a square for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.face.report.blocks import Block


@dataclass(frozen=True, slots=True)
class Mark:
    """A cell of a matrix: one character, and the style of its colour."""

    text: str
    style: str


@dataclass(frozen=True, slots=True)
class MatrixColumn:
    """Operators of one type with the same marks, by their places."""

    op: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """Profiles with the same marks, one for each column."""

    names: tuple[str, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Matrix(Block):
    """Profiles against operators, with the meaning of each mark in `key`. `title` names what a row has in common.

    Text lists the first `most` rows.
    """

    title: str
    columns: Sequence[MatrixColumn]
    rows: Sequence[MatrixRow]
    key: Sequence[tuple[Mark, str]]
    most: int = 12


@dataclass(frozen=True, slots=True)
class Strip(Block):
    """A square for each operator in the colour of its style, on cards only. `title` states what they show."""

    title: str
    styles: Sequence[str]
