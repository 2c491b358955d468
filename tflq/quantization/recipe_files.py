"""Recipes as documents, as text to edit, and as the stamp in a model.

Recipes as documents: JSON or YAML, fields by name, enumerations by their words.

The record of a model's quantization in its metadata.

Recipes as text to read and edit: YAML without what is true by default in nested fields.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from difflib import SequenceMatcher
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from tflq.engine.profiles import by_name
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import Buffer, Model, TensorType, view, with_graph
from tflq.model.storage.documents import read_document
from tflq.quantization.recipe import PRESETS, Recipe, RecipeBudget

SCHEMA = "tflq/recipe/1"


def read_recipe(source: str | os.PathLike[str]) -> Recipe:
    """Return a preset by its name, or the recipe in a JSON or YAML file.

    Raises:
        UnknownNameError: It is neither a preset nor a file, or a field is unknown; lists the valid names, nearest
            first.
        OptionError: A value does not suit its field.
    """
    if isinstance(source, str) and source in PRESETS:
        return PRESETS[source]
    path = Path(source)
    if not path.suffix and not os.path.exists(path):
        raise UnknownNameError("preset", str(source), tuple(PRESETS))
    return recipe_from(read_document(path))


def changed_recipe(
    recipe: Recipe,
    keep_float: tuple[str, ...],
    budget: str | None,
    words: Mapping[str, str | None],
    runtimes: str | None = None,
    portable: str | None = None,
) -> Recipe:
    """Return a recipe with some fields changed: by `words` that are not None, by `budget` as in `read_budget`.

    The operators of `keep_float` stay in float, too. `runtimes` are names of profiles with commas; the first replaces
    the recipe's own profile. `portable` are such names, too, or paths of profile files, or "all".

    Raises:
        UnknownNameError: There is no such word, bound or profile.
        OptionError: A value does not suit its bound.
    """
    changed: dict[str, Any] = {name: word for name, word in words.items() if word is not None}
    if budget is not None:
        changed["budget"] = read_budget(budget)
    if runtimes is not None:
        names = [by_name(name.strip()).name for name in runtimes.split(",")]
        changed["profile"], *others = dict.fromkeys(names)
        changed["runtimes"] = tuple(others)
    if portable is not None:
        changed["portable"] = tuple(dict.fromkeys(name.strip() for name in portable.split(",")))
    return replace(recipe, keep_float=(*recipe.keep_float, *keep_float), **changed)


def read_budget(text: str) -> RecipeBudget:
    """Return a budget in words, each bound at most once.

    For example: "sqnr>=35, agreement>=0.99, bytes<=200000, share<=0.1, spared=float".

    Raises:
        UnknownNameError: There is no such bound.
        OptionError: A value does not suit its bound.
    """
    bounds: dict[str, Any] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        name = next((bound for bound in _BOUNDS if part.startswith(bound)), None)
        if name is None:
            raise UnknownNameError("bound", part, tuple(_BOUNDS))
        value = part[len(name) :].strip()
        try:
            number = value if name == "spared=" else int(value) if name == "bytes<=" else float(value)
        except ValueError:
            raise OptionError(f"{name}: expected a number, got {value!r}") from None
        bounds[_BOUNDS[name]] = number
    budget: RecipeBudget = _value(RecipeBudget, bounds, "budget")
    return budget


#: Written name of a bound -> its field.
_BOUNDS = {
    "sqnr>=": "least_sqnr",
    "agreement>=": "least_agreement",
    "bytes<=": "most_bytes",
    "share<=": "most_share",
    "spared=": "spared",
}


def document_of(recipe: Recipe) -> dict[str, Any]:
    """Return the recipe as a document: `schemas/recipe.schema.json`. Fields with default values are included."""
    return {"schema": SCHEMA, **plain(recipe)}


def recipe_from(document: Mapping[str, Any]) -> Recipe:
    """Return the inverse of `document_of`; missing fields get their defaults."""
    if not isinstance(document, Mapping):
        raise OptionError("a recipe is a mapping of fields to values")
    known = {name: value for name, value in document.items() if name != "schema"}
    if document.get("schema", SCHEMA) != SCHEMA:
        raise OptionError(f"schema {document['schema']!r}: this version reads {SCHEMA!r}")
    recipe: Recipe = _value(Recipe, known, "recipe")
    return recipe


def digest(recipe: Recipe) -> str:
    """Return the SHA-256 of the recipe's document, in hexadecimal; equal recipes have equal digests."""
    return digest_of(document_of(recipe))


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document, in hexadecimal; the order of its fields does not matter."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """Return a recipe, or a part of one, as JSON values."""
    if isinstance(value, TensorType):
        return value.label
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def _value(kind: Any, value: Any, place: str) -> Any:
    """Return `value`, read from a document, as a value of type `kind`."""
    if get_origin(kind) in (Union, UnionType):
        choices = [k for k in get_args(kind) if k is not NoneType]
        return None if value is None else _value(choices[0], value, place)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise OptionError(f"{place}: expected a list, got {value!r}")
        return tuple(_value(get_args(kind)[0], item, f"{place}[{i}]") for i, item in enumerate(value))
    if is_dataclass(kind):
        return record_from(kind, value, place)
    if get_origin(kind) is Mapping:
        return {name: _value(get_args(kind)[1], item, f"{place}.{name}") for name, item in dict(value).items()}
    if kind is TensorType:
        return _word({t.label: t for t in TensorType}, value, place)
    if issubclass(kind, Enum):
        return _word({member.value: member for member in kind}, value, place)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise OptionError(f"{place}: expected {kind.__name__}, got {value!r}")
    return value


def record_from(kind: Any, value: Any, place: str) -> Any:
    """Return a dataclass from a mapping of its fields; `place` names it in errors.

    Raises:
        UnknownNameError: It has no such field, or a word is unknown.
        OptionError: A value does not suit its field.
    """
    if not isinstance(value, Mapping):
        raise OptionError(f"{place}: expected fields and values, got {value!r}")
    types = get_type_hints(kind)
    for name in value:
        if name not in types:
            nearest = sorted(types, key=lambda known: -SequenceMatcher(None, name[:100], known).ratio())
            raise UnknownNameError("field", f"{place}.{name}", tuple(f"{place}.{known}" for known in nearest))
    missing = [f.name for f in fields(kind) if f.default is f.default_factory is MISSING and f.name not in value]
    if missing:
        raise OptionError(f"{place}: {missing[0]} is missing")
    return kind(**{name: _value(types[name], item, f"{place}.{name}") for name, item in value.items()})


def _word(words: Mapping[str, Any], word: Any, place: str) -> Any:
    if not isinstance(word, str) or word not in words:
        raise UnknownNameError(place, str(word), tuple(words))
    return words[word]


#: Name of the metadata entry: JSON with the version of tflq and the recipe's SHA-256.
ENTRY = "tflq_quantization"


def finish(model: Model, recipe: Recipe) -> Model:
    """Return the model with the recipe's hash in its metadata; names of constants go unless the recipe keeps them."""
    if not recipe.constant_names:
        graph = view(model)
        tensors = tuple(t if graph.data(i) is None else replace(t, name=None) for i, t in enumerate(graph.tensors))
        model = with_graph(model, replace(graph.record, tensors=tensors))
    return stamped(model, digest(recipe))


def stamped(model: Model, recipe_digest: str) -> Model:
    """Return the model with a recipe's hash in its metadata, in place of an earlier one."""
    text = json.dumps({"tflq": version("tflq"), "recipe": recipe_digest}, sort_keys=True)
    data = np.frombuffer(text.encode(), np.uint8)
    entries = tuple(entry for entry in model.metadata or () if entry[0] != ENTRY)
    return replace(model, buffers=(*model.buffers, Buffer(data)), metadata=(*entries, (ENTRY, len(model.buffers))))


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
