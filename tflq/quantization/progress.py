"""How work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Called as progress(what, done, total) while work goes on; total 0 where nobody knows it.
Progress: TypeAlias = "Callable[[str, int, int], None]"
