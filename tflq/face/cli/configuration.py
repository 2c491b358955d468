"""`[tool.tflq]` in pyproject.toml: defaults of the verbs' options.

[tool.tflq]
profile = "litert-xnnpack"
inputs = "tests/inputs.npz"
golden = "goldens/{stem}.npz"              # verify compares with this golden file of MODEL
tolerances = { CONV_2D = 1, "12" = 2 }     # LSB or ULP, by operator or its index; "*" for all

[tool.tflq.explain]                        # options of one verb, by their long names
mode = "cumulative"
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tflq.errors import FileAccessError, OptionError, UnknownNameError

#: Options that apply to every verb that has them: key -> the option's parameter.
KEYS = {name: name for name in ("profile", "inputs", "golden", "baseline", "tolerances")}
#: Keys that apply to some verbs only: other verbs have another golden, or findings of their own.
ONLY_OF = {"golden": ("verify",), "baseline": ("verify",)}
FILE = "pyproject.toml"


def configuration(start: Path) -> tuple[dict[str, Any], str]:
    """Return the table [tool.tflq] of the nearest pyproject.toml at or above `start`, and that file's path.

    Raises:
        OptionError: The file is not TOML, or [tool.tflq] is not a table.
        FileAccessError: It cannot be read.
    """
    for folder in (start, *start.parents):
        path = folder / FILE
        if path.is_file():
            tool = _read(path).get("tool")
            table = tool.get("tflq") if isinstance(tool, dict) else None
            if table is not None:
                return _table(table, "[tool.tflq]", str(path)), str(path)
    return {}, ""


def defaults(command: click.Command, table: Mapping[str, Any], path: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    """Return the values that a configuration gives the command's parameters.

    Raises:
        UnknownNameError: A key is neither one of KEYS nor a verb, or a verb has no such option.
        OptionError: A value is not valid for its option.
    """
    options_of = {p.name: p for p in command.params if isinstance(p, click.Option)}
    parameters = set(options_of)
    own = _table(table.get(command.name or "", {}), f"[tool.tflq.{command.name}]", path)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS and key not in verbs:
            raise UnknownNameError(f"key of [tool.tflq] in {path}:", key, (*KEYS, *verbs))
        if key in KEYS and KEYS[key] in parameters and command.name in ONLY_OF.get(key, (command.name,)):
            values[KEYS[key]] = value
    for key, value in own.items():
        name = KEYS.get(key, key.replace("-", "_"))
        if name not in parameters:
            options = sorted(str(p).replace("_", "-") for p in parameters)
            raise UnknownNameError(f"option of [tool.tflq.{command.name}] in {path}:", key, options)
        values[name] = value
    if isinstance(values.get("tolerances"), Mapping):
        values["tolerances"] = [f"{name}={limit}" for name, limit in values["tolerances"].items()]
    return {name: _words(options_of[name], value, path) for name, value in values.items()}


def _table(value: object, name: str, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OptionError(f"{name} is not a table: {value!r:.80}", name=path)
    return value


def _words(option: click.Option, value: object, path: str) -> Any:
    """Return a value in the form of the command line: text, several texts for a repeatable option, or a flag."""
    if isinstance(value, bool) and option.is_flag:
        return value
    if isinstance(value, list) and option.multiple and all(_is_plain(item) for item in value):
        return [str(item) for item in value]
    if not _is_plain(value):
        raise OptionError(f"[tool.tflq]: {option.name} cannot be {value!r:.80}", name=path)
    return [str(value)] if option.multiple else str(value)


def _is_plain(value: object) -> bool:
    """Return whether a value is a number, or text that a command line can hold."""
    if isinstance(value, str):
        return "\0" not in value
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _read(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise OptionError(f"is not TOML: {error}", name=str(path)) from error
