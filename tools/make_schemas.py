"""Write schemas/*.schema.json from the types of documents.

    python tools/make_schemas.py [--check]

A document is a TypedDict with a key `schema: Literal["tflq/NAME/1"]`, a recipe is a dataclass. The texts in `Annotated`
become descriptions, pairs keywords. `--check` writes nothing and exits with 1 if a file is stale.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from tflq.face.report import documents
from tflq.face.report.documents.filling import Of
from tflq.quantization.recipe import EDGES, Recipe

FOLDER = Path(__file__).resolve().parents[1] / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: Modules with documents that other rooms than the reports write.
MODULES = ("tflq.proof.certificate", "tflq.comparison.goldens.manifest")
#: Objects that may have further keys: facts of runtimes that later versions write.
OPEN = ("RuntimeDocument", "RecordedInputsDocument")
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
LENGTH = 110


class Schema:
    """One file: the definitions that its types need, by name."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.types: dict[str, Any] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type."""
        origin, parts = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            known = self.of(parts[0])
            for extra in (part for part in parts[1:] if not isinstance(part, Of)):
                added = {"description": extra} if isinstance(extra, str) else {extra[0]: _plain(extra[1])}
                known = added if "enum" in added else {**known, **added}
            return known
        if origin in (typing.Union, types.UnionType):
            return _joined([self.of(part) for part in parts])
        if origin is typing.Literal:
            return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
        if origin in (list, tuple) and (origin is list or parts[1:] == (...,)):
            return {"type": "array", "items": self.of(parts[0])}
        if origin is tuple:
            items = [self.of(part) for part in parts]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(parts[1])}
        if kind is Any:
            return {}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [one.name.lower() if isinstance(one.value, int) else one.value for one in kind]}
        return {"type": PLAIN[kind]} if kind in PLAIN else self._referred(kind)

    def _referred(self, kind: Any) -> dict[str, Any]:
        name = kind.__name__.removesuffix("Document")
        if self.types.setdefault(name, kind) is not kind:
            name = "".join((kind.__module__.rpartition(".")[2].title().replace("_", ""), name))
            self.types.setdefault(name, kind)
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.object(kind)
        return {"$ref": f"#/$defs/{name}"}

    def object(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a TypedDict or a dataclass; fields of a dataclass may be left out."""
        hints = typing.get_type_hints(kind, localns={"NotRequired": typing.NotRequired}, include_extras=True)
        required, properties = [], {}
        for key, hint in hints.items():
            is_optional = typing.get_origin(hint) is typing.NotRequired or _is_left_out(kind, key)
            if not is_optional:
                required.append(key)
            inner = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.NotRequired else hint
            properties[key] = self.of(inner)
        text = (kind.__doc__ or "").split("\n\n")[0].strip()
        has_text = not is_dataclass(kind) and text and not text.startswith("dict(")
        return {
            "type": "object",
            **({"description": " ".join(text.split())} if has_text else {}),
            "properties": properties,
            **({"required": sorted(required)} if required else {}),
            "additionalProperties": kind.__name__ in OPEN,
        }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _is_left_out(kind: Any, key: str) -> bool:
    """Return whether a key is one of a dataclass, or of a TypedDict that is not total."""
    return is_dataclass(kind) or key in kind.__optional_keys__


def _joined(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the union: types in one list where they have nothing else, values in one enumeration."""
    if all(set(kind) == {"type"} for kind in kinds):
        return {"type": [kind["type"] for kind in kinds]}
    null = {"type": "null"}
    first, *rest = kinds
    if rest == [null] and "enum" in first:
        return {"enum": [*first["enum"], None]}
    return {"anyOf": kinds}


def documents_by_name() -> dict[str, list[Any]]:
    """Return the types of each document, by the name of its schema."""
    modules = [m.name for m in pkgutil.iter_modules(documents.__path__, f"{documents.__name__}.")]
    found: dict[str, list[Any]] = {}
    for name in (*modules, *MODULES):
        for kind in vars(importlib.import_module(name)).values():
            is_own = typing.is_typeddict(kind) and kind.__module__ == name
            if is_own and "schema" in kind.__annotations__:
                schema = typing.get_type_hints(kind, localns={"NotRequired": typing.NotRequired})["schema"]
                found.setdefault(typing.get_args(schema)[0].split("/")[1], []).append(kind)
    return {**found, "recipe": [Recipe]}


def schema_of(kinds: list[Any]) -> dict[str, Any]:
    """Return the schema of a document that has one of some types."""
    made = Schema()
    roots = [made.object(kind) for kind in kinds] if len(kinds) == 1 else [made.of(kind) for kind in kinds]
    root = roots[0] if len(roots) == 1 else {"oneOf": roots}
    title = root.pop("description", None)
    if kinds == [Recipe]:
        title = "A recipe of `tflq quantize`: a preset, written out; fields that are left out have their defaults"
        edges = {name: {"enum": [kind.name.lower() for kind in kinds] + [None]} for name, kinds in EDGES.items()}
        root["properties"] = {"schema": {"const": "tflq/recipe/1"}, **root["properties"], **edges}
    return {
        "$schema": DIALECT,
        **({"title": title} if title else {}),
        **root,
        **({"$defs": dict(sorted(made.definitions.items()))} if made.definitions else {}),
    }


def text_of(value: Any, indent: int = 0, used: int = 0) -> str:
    """Return JSON in which everything that fits is on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent + used <= LENGTH or not isinstance(value, (dict, list)) or not value:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {text_of(v, indent + 2, len(k) + 4)}" for k, v in value.items()]
        return "{\n" + ",\n".join(pad + part for part in parts) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + text_of(v, indent + 2) for v in value) + "\n" + " " * indent + "]"


def files() -> Iterator[tuple[Path, str]]:
    """Yield every file and its text."""
    for name, kinds in documents_by_name().items():
        yield FOLDER / f"{name}.schema.json", text_of(schema_of(kinds)) + "\n"


def main() -> int:
    """Write the files, or report the stale ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="report stale files; write nothing")
    is_check = parser.parse_args().check
    stale = [(path, text) for path, text in files() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(f"{'stale' if is_check else 'wrote'}: {path.name}")
        if not is_check:
            path.write_text(text)
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
