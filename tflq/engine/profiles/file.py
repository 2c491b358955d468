"""Profiles as files: YAML or JSON with a base and what differs from it (`schemas/profile.schema.json`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

import yaml

from tflq.engine.kernels.validity import CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, MICRO, OPT, REF, RELEASES, SPEC, XNNPACK
from tflq.engine.profiles import VARIANTS, by_name
from tflq.engine.profiles.building import NOT_MEASURED, profile_from
from tflq.engine.profiles.changes import GRAMMARS, KINDS, Change, apply, signature_of
from tflq.engine.profiles.profile import Profile, Source
from tflq.engine.profiles.table import ALIASES, ROWS, Row
from tflq.engine.profiles.values import names, value_of
from tflq.errors import OptionError, UnknownNameError
from tflq.model.storage.documents import read_document

SCHEMA = "tflq/profile/1"
#: Files that are kept as profiles.
_KEPT = 64
_KEYS = (
    "schema",
    "base",
    "about",
    "source",
    "runtime",
    "arithmetic",
    "figures",
    "variants",
    "rows",
    "others",
    "learned",
)
#: Values of `others`: the treatment of operators and types that no row names.
_AS_BASE, _REFUSED = "as the base", "refused"
#: The words that each coordinate of a runtime takes.
_RUNTIME: Mapping[str, tuple[object, ...]] = {
    "release": RELEASES,
    "resolver": (REF, OPT, XNNPACK),
    "cpu": ("x86-64", "arm64", "arm64-a53", "wasm", "any"),
    "vectors": (True, False),
    "library": ("", MICRO, CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, SPEC),
}


def load_profile(path: str) -> Profile:
    """Return the profile that a file states. Its name is the path, by which `by_name` finds it again.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: It is no YAML or JSON.
        UnknownNameError: It names a key, field, value, operator or profile that does not exist.
        OptionError: A value does not suit its key.
    """
    try:
        status = os.stat(path)
        version = status.st_mtime_ns, status.st_size, status.st_ino
    except (OSError, ValueError):
        version = None  # reading it raises, with the reason
    return _load(path, version)


@lru_cache(maxsize=_KEPT)
def _load(path: str, _version: object) -> Profile:
    document = read_document(path)
    try:
        return _profile(path, document)
    except UnknownNameError as error:
        raise UnknownNameError(f"{path}: {error.kind}", error.name, error.known) from error
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from error


def _profile(path: str, document: Any) -> Profile:
    known = _mapping(document, "a profile", _KEYS)
    if known.get("schema", SCHEMA) != SCHEMA:
        raise OptionError(f"schema {known['schema']!r:.80}: this version reads {SCHEMA!r}")
    base = _text(known.get("base", "litert-ref"), "base")
    if base not in ROWS:
        raise UnknownNameError("base", base, tuple(ROWS))
    figures = _text(known.get("figures", ""), "figures")
    if figures and figures != NOT_MEASURED and figures not in ROWS:
        raise UnknownNameError("profile of figures", figures, tuple(ROWS))
    arithmetic = _mapping(known.get("arithmetic", {}), "arithmetic")
    row = Row(
        path,
        _text(known.get("about", ""), "about"),
        base,
        {key: _text(text, f"source.{key}") for key, text in _source(known).items()},
        _runtime(_mapping(known.get("runtime", {}), "runtime", tuple(_RUNTIME))),
        arithmetic,
        figures,
    )
    stated = known.get("rows", [])
    changes = [_change(item, i) for i, item in enumerate(_list(stated, "rows"))]
    others = _text(known.get("others", _AS_BASE), "others")
    if others not in (_AS_BASE, _REFUSED):
        raise UnknownNameError("value of others", others, (_AS_BASE, _REFUSED))
    profile = profile_from(row)
    if changes or others == _REFUSED:
        profile = _with_changes(profile, changes, stated, alone=others == _REFUSED)
    learned = _mapping(known.get("learned", {}), "learned")
    if learned:
        profile = profile.stating({"learned": learned})
    for word in _list(known.get("variants", []), "variants"):
        if not isinstance(word, str) or f"+{word}" not in VARIANTS:
            raise UnknownNameError("variant", str(word), tuple(ending[1:] for ending in VARIANTS))
        profile = VARIANTS[f"+{word}"](profile)
    return profile.derive(path)


def with_rows(profile: Profile, stated: Sequence[Mapping[str, Any]]) -> Profile:
    """Return the profile with the rows that `stated` gives as a file does.

    Raises:
        UnknownNameError, OptionError: As `load_profile`.
    """
    return _with_changes(profile, [_change(item, i) for i, item in enumerate(stated)], stated, alone=False)


def _with_changes(profile: Profile, changes: Sequence[Change], stated: Sequence[Any], *, alone: bool) -> Profile:
    changed = profile.within(lambda table: apply(table, changes, lambda name: by_name(name).kernels, alone=alone))
    return changed.stating({**({"others": _REFUSED} if alone else {}), "rows": stated})


def _change(item: Any, number: int) -> Change:
    place = f"rows[{number}]"
    stated = _mapping(item, place, ("op", "types", *KINDS))
    kinds = [kind for kind in KINDS if kind in stated]
    if "op" not in stated or len(kinds) != 1:
        raise OptionError(f"{place}: expected op and one of {', '.join(KINDS)}")
    (kind,) = kinds
    types = _text(stated.get("types", ""), f"{place}.types")
    if types:
        signature_of(types)
    value = stated[kind]
    if kind == "refused" and value is not True:
        raise OptionError(f"{place}.refused: expected true, not {value!r:.80}")
    if kind == "like":
        _check_like(_text(value, f"{place}.like"))
    if kind == "arithmetic":
        for field, name in _mapping(value, f"{place}.arithmetic").items():
            value_of(field, name)
    if kind in GRAMMARS:
        GRAMMARS[kind].read(_mapping(value, f"{place}.{kind}"))
    if kind == "table":
        _list(value, f"{place}.table")
    if kind == "tables":
        for number, one in enumerate(_list(value, f"{place}.tables")):
            _check_table(one, f"{place}.tables[{number}]")
    return Change(_text(stated["op"], f"{place}.op"), types, kind, value)


def _check_table(one: Any, place: str) -> None:
    """Require codes and the scale and zero point of input and output."""
    known = _mapping(one, place, ("input", "output", "options", "codes"))
    for key in ("input", "output"):
        pair = _list(known.get(key), f"{place}.{key}")
        if len(pair) != 2 or type(pair[0]) not in (int, float) or type(pair[1]) is not int:
            raise OptionError(f"{place}.{key}: expected scale and zero point, not {pair!r:.80}")
    _list(known.get("codes"), f"{place}.codes")
    _mapping(known.get("options", {}), f"{place}.options")


def _check_like(name: str) -> None:
    """Require a profile by name: a file that named files could name itself."""
    if name.partition("+")[0] not in {*ROWS, *ALIASES}:
        raise UnknownNameError("profile", name, tuple(ROWS))
    by_name(name)


def _source(known: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(known.get("source", {}), "source", tuple(field.name for field in fields(Source)))


def _runtime(stated: Mapping[str, Any]) -> Mapping[str, str | bool]:
    for key, value in stated.items():
        if not any(type(value) is type(known) and value == known for known in _RUNTIME[key]):
            raise UnknownNameError(f"runtime.{key}", value, _RUNTIME[key])
    return stated


def _mapping(value: Any, place: str, known: Sequence[str] = ()) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise OptionError(f"{place}: expected keys and values, not {value!r:.80}")
    unknown = next((key for key in value if known and key not in known), None)
    if unknown is not None:
        raise UnknownNameError(f"key of {place}", unknown, tuple(known))
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{place}: expected text, not {value!r:.80}")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise OptionError(f"{place}: expected a list, not {value!s:.80}")
    return value


def document_of(profile: Profile) -> dict[str, Any]:
    """Return the document that states the profile; loaded again, it gives the same arithmetic and the same kernels."""
    return {
        "schema": SCHEMA,
        "base": "litert-ref",
        "about": profile.about,
        "source": {key: value for key, value in asdict(profile.source).items() if value},
        "runtime": asdict(profile.runtime),
        "arithmetic": names(profile.arithmetic),
        "figures": profile.figures or NOT_MEASURED,
        **profile.stated,
    }


def text_of(profile: Profile) -> str:
    """Return the YAML file that states the profile."""
    return yaml.safe_dump(document_of(profile), sort_keys=False, allow_unicode=True, width=110)
