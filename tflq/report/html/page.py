"""Templates filled in. Everything that comes from a model or a dump is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tflq.escaping import printable
from tflq.report.html import charts


def rendered(template: str, **values: Any) -> str:
    """The page that a template of `templates/` makes of `values`; a value that is missing is an error.

    Templates see the functions of charts.py by their names.
    """
    return _environment().get_template(template).render(**values)


def _fit_to_be_shown(value: Any) -> Any:
    """Text with its lines escaped; markup and everything else as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return "\n".join(printable(line) for line in value.split("\n"))
    return value


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_fit_to_be_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(bar_chart=charts.bar_chart, heat_map=charts.heat_map, histogram=charts.histogram)
    return made
