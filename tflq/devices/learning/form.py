"""A form of an operator: what a profile's file may state of it.

A form is the rows of a file. So the profile that is written computes exactly what was compared with the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tflq.devices.learning.subjects import Subject
from tflq.engine.numerics.requantizer import Requantizer, stated
from tflq.engine.profiles import by_name
from tflq.engine.profiles.values import names

#: The profile whose rows a file changes.
BASE = "litert-ref"
#: Keys of a file that take a profile's whole arithmetic, which rows do not bring along.
_WITH_ARITHMETIC = ("", "floats", "arithmetic")


@dataclass(frozen=True, slots=True)
class Form:
    """Rows of a file without operator and types: `like` names the rows that are taken, `point` what changes them.

    `more` are further changes, made in this order.
    """

    like: str = BASE
    kind: str = ""  # a key of the file; empty if nothing is changed
    fields: tuple[tuple[str, Any], ...] = ()
    more: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    def rows(self, subject: Subject, types: str = "") -> list[dict[str, Any]]:
        """Return the rows of a file for an operator."""
        head = {"op": subject.op, "types": types or subject.types}
        rows: list[dict[str, Any]] = []
        if self.like != BASE or not self.kind:
            rows.append({**head, "like": self.like})
        beside = _arithmetic_beside(self.like) if self.kind in _WITH_ARITHMETIC else {}
        if beside:
            rows.append({**head, "arithmetic": beside})
        if self.kind:
            rows.append({**head, self.kind: dict(self.fields)})
        rows += [{**head, kind: dict(fields)} for kind, fields in self.more]
        return rows

    def changed(self, kind: str, **fields: Any) -> Form:
        """Return the form with one more change."""
        return replace(self, more=(*self.more, (kind, tuple(fields.items()))))

    @property
    def point(self) -> dict[str, Any]:
        """The fields that change the rows."""
        return dict(self.fields)


def requantizing(point: Requantizer, like: str = BASE) -> Form:
    """Return the form whose output stages compute as a point."""
    return Form(like, "requantizer", tuple(stated(point).items()))


@cache
def _arithmetic_beside(name: str) -> dict[str, Any]:
    """Return the fields of a profile's arithmetic that differ from the base's, which rows do not bring along."""
    base = names(by_name(BASE).arithmetic)
    return {field: value for field, value in names(by_name(name).arithmetic).items() if value != base[field]}
