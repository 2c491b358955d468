"""Sentences for people that carry what they state as fields for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict


class Statement(str):
    """A sentence, its kind for programs, and the values that it states.

    `kind` names all sentences of one meaning, and stays if their wording changes. `facts` has plain values.
    """

    kind: str
    facts: dict[str, Any]

    def __new__(cls, text: str, kind: str = "note", **facts: Any) -> Statement:
        """Return the sentence with its values."""
        made = super().__new__(cls, text)
        made.kind, made.facts = kind, facts
        return made

    def of(self, place: str) -> Statement:
        """Return this sentence with the place that it is about before it; itself if there is none."""
        return Statement(f"{place}: {self}", self.kind, **{**self.facts, "place": place}) if place else self


def subject_of(sentence: str) -> tuple[str, str]:
    """Return what a sentence is about: its kind and the name in its values; its text if it names nothing."""
    named = isinstance(sentence, Statement) and sentence.facts.get("name")
    return (sentence.kind, str(named)) if isinstance(sentence, Statement) and named else ("", str(sentence))


class FactDocument(TypedDict):
    """A sentence as an entry of a document."""

    kind: str
    message: str
    values: dict[str, Any]


def facts_of(sentences: Iterable[str]) -> list[FactDocument]:
    """Return a row for each sentence: its kind, its text and its values. A plain text is a note without values."""
    rows: list[FactDocument] = []
    for sentence in sentences:
        stated = sentence if isinstance(sentence, Statement) else Statement(sentence)
        rows.append({"kind": stated.kind, "message": str(stated), "values": dict(stated.facts)})
    return rows
