"""Recipes as text to read and edit: YAML without what is true by default in nested fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from tflq.quantization.recipe.files import plain


def recipe_text(schema: str, recipe: Any) -> str:
    """Return the YAML document of a recipe, whose fields are all there; nested ones only if they are not the default.

    `--recipe FILE` reads it back as an equal recipe.
    """
    import yaml

    document = {"schema": schema, **{f.name: _brief(getattr(recipe, f.name)) for f in fields(recipe)}}
    text: str = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=100)
    return text.rstrip("\n")


def _brief(value: Any) -> Any:
    """Return a field as plain values, without fields of dataclasses that have their default."""
    if isinstance(value, tuple):
        return [_brief(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        known: Mapping[str, Any] = {f.name: getattr(value, f.name) for f in fields(value) if not _is_default(f, value)}
        return {name: _brief(item) for name, item in known.items()}
    return plain(value)


def _is_default(field: Field[Any], value: Any) -> bool:
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    return default is not MISSING and bool(getattr(value, field.name) == default)
