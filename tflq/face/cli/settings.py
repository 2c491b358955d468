"""Defaults from `[tool.tflq]`, and `--watch`.

`[tool.tflq]` in pyproject.toml: defaults of the verbs' options.

[tool.tflq]
profile = "litert-xnnpack"
inputs = "tests/inputs.npz"
golden = "goldens/{stem}.npz"              # verify compares with this golden file of MODEL
tolerances = { CONV_2D = 1, "12" = 2 }     # LSB or ULP, by operator or its index; "*" for all

[tool.tflq.explain]                        # options of one verb, by their long names
mode = "cumulative"

`--watch`: run the same command again whenever a file that it reads has changed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from tflq.errors import FileAccessError, OptionError, UnknownNameError
from tflq.face.cli.answer import Exit

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


#: Seconds between two polls of the files.
INTERVAL = 0.5
#: Maximum number of files and folders that are watched below a folder.
_MOST = 10_000
#: Options of files and folders that commands write.
_OUTPUTS = ("-o", "--output", "--html", "--junit", "--sarif", "--overlay", "--work")

State = dict[str, tuple[int, int] | None]


def files_of(words: Sequence[str]) -> list[str]:
    """Return the words, and parts after their "=", that name input files or folders."""
    outputs = {words[i + 1] for i, word in enumerate(words[:-1]) if word in _OUTPUTS}
    outputs |= {word.partition("=")[2] for word in words if word.partition("=")[0] in _OUTPUTS}
    outputs |= {word[2:] for word in words if word.startswith("-o")}
    candidates = (part for word in words for part in (word, word.rpartition("=")[2]))
    return [path for path in dict.fromkeys(candidates) if path not in outputs and os.path.exists(path)]


def state_of(paths: Sequence[str], outputs: frozenset[str] = frozenset()) -> State:
    """Return time and size of each input file, also of those in folders; None for a missing one."""
    state: State = {}
    for path in paths:
        if os.path.realpath(path) in outputs:
            continue
        for file in _files(path, outputs):
            state[file] = _stat(file)
            if len(state) > _MOST:
                return state
    return state


def watch(
    run: Callable[[], int],
    paths: Sequence[str],
    say: Callable[[str], None],
    *,
    look: Callable[[Sequence[str], frozenset[str]], State] = state_of,
    pause: Callable[[], None] = lambda: time.sleep(INTERVAL),
) -> int:
    """Run, and again after each change of a file, until a signal ends it; then return the exit code.

    Args:
        run: Runs the command once and returns its exit code.
        paths: The files and folders to watch. Files that a run wrote are ignored.
        say: Prints a line.
        look: Returns the state of the files.
        pause: Waits for the time between two polls.
    """
    from tflq.model.storage.output import recorded_outputs

    with recorded_outputs() as written:  # a later run may replace what an earlier one wrote
        while True:
            before = look(paths, frozenset(written))
            code = run()
            if code in (Exit.INTERRUPTED, Exit.TERMINATED):
                return code
            outputs = frozenset(written)
            before = {path: seen for path, seen in before.items() if not _is_below(path, outputs)}
            say(f"tflq: exit code {code}; watching {', '.join(paths)} (Ctrl-C ends)")
            _wait_for_change(before, partial(look, paths, outputs), pause)


def _wait_for_change(before: State, look: Callable[[], State], pause: Callable[[], None]) -> None:
    """Return when the files differ from before, none is missing, and two polls in a row are equal."""
    now = look()
    while True:
        pause()
        last, now = now, look()
        if now == last != before and None not in now.values():
            return


def _files(path: str, outputs: frozenset[str]) -> Iterator[str]:
    """Yield a file, or the input files in a folder."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(one for one in folders if os.path.realpath(os.path.join(folder, one)) not in outputs)
        for file in sorted(files):
            if not file.startswith(".tflq-") and os.path.realpath(os.path.join(folder, file)) not in outputs:
                yield os.path.join(folder, file)


def _is_below(path: str, outputs: frozenset[str]) -> bool:
    """Return whether a path is an output or lies in one."""
    place = os.path.realpath(path)
    return any(place == output or place.startswith(output + os.sep) for output in outputs)


def _stat(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
