"""The changes of kernels that `conform diff` is measured with: well formed, and made where they say."""

from __future__ import annotations

import re
from collections import Counter

import plant_changes
import pytest

from tflq.engine.kernels.facts import OPERATORS


def test_changes_are_well_formed_and_of_every_kind() -> None:
    changes = plant_changes.changes()
    assert len(changes) >= 30
    assert len({one["name"] for one in changes}) == len(changes)
    assert set(Counter(one["kind"] for one in changes)) == {"rounding", "order", "table", "clamp", "index"}
    for one in changes:
        assert one["op"] in OPERATORS
        re.compile(one["truth"])


def test_a_change_ignores_white_space_and_comments() -> None:
    change = {"name": "n", "file": "f", "old": "Scale( acc, m); return", "new": "Other(acc); return"}
    text = "acc = Scale(\n    acc, m);\n// as documented\nreturn acc;"
    assert plant_changes.planted(text, change) == "acc = Other(acc); return acc;"


def test_a_change_that_has_no_place_is_refused() -> None:
    with pytest.raises(ValueError, match="has no"):
        plant_changes.planted("nothing", {"name": "n", "file": "f", "old": "acc", "new": ""})
