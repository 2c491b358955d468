"""`[tool.tflq]` in pyproject.toml: what the options of the verbs are where the command line does not say.

[tool.tflq]
profile = "litert-xnnpack"
inputs = "tests/inputs.npz"
baseline = "goldens/{stem}.npz"            # verify compares with this golden file of MODEL
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

#: What holds for every verb that has such an option: key -> the option's parameter.
KEYS = {"profile": "profile", "inputs": "inputs", "baseline": "baseline", "tolerances": "tolerances"}
#: Keys of verbs whose option of that name means something else elsewhere: a baseline of `lint` is a list of findings.
ONLY_OF = {"baseline": ("verify",)}
FILE = "pyproject.toml"


def configuration(start: Path) -> tuple[dict[str, Any], str]:
    """The table [tool.tflq] of the nearest pyproject.toml at or above `start` that has one, and that file's path.

    Raises:
        OptionError: The file is no TOML.
        FileAccessError: It cannot be read.
    """
    for folder in (start, *start.parents):
        path = folder / FILE
        if path.is_file():
            table = _read(path).get("tool", {}).get("tflq")
            if table is not None:
                return table, str(path)
    return {}, ""


def defaults(command: click.Command, table: Mapping[str, Any], path: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    """The values that a configuration gives the command's parameters.

    Raises:
        UnknownNameError: A key is neither one of KEYS nor a verb, or a verb has no such option.
    """
    parameters = {parameter.name for parameter in command.params if isinstance(parameter, click.Option)}
    own = table.get(command.name or "", {})
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
    return values


def _read(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"is no TOML: {error}", name=str(path)) from error
