"""Skeletons of targets in several languages: complete programs that run one operator and refuse the rest."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tflq.errors import OptionError
from tflq.model.storage.output import check_outputs, write_file

_FOLDER = Path(__file__).with_name("scripts")
#: The word of skeletons that the target's name replaces, and the names that are allowed.
_PLACEHOLDER, _NAME = "my_target", re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
#: Language -> ending of its files, how to build one, how to call it.
LANGUAGES = {
    "python": (".py", "", "python {file}"),
    "c": (".c", "cc -std=c99 -O1 -o {stem} {file}", "{stem}"),
    "node": (".mjs", "", "node {file}"),
}


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A target that was written to `path`. `build` is the command that compiles it, if it needs one."""

    path: str
    build: str
    command: str


def write_skeleton(name: str, language: str, folder: str = ".", *, replace: bool = False) -> Skeleton:
    """Write a target's skeleton into a folder that exists.

    Raises:
        OptionError: The name is not a word of letters, digits, - and _, or there is no skeleton in that language.
        FileAccessError: The file exists and `replace` is false, or it cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"{name!r:.80}: name the target by a letter, then letters, digits, - and _")
    if language not in LANGUAGES:
        raise OptionError(f"{language!r:.80} is no language of skeletons: {', '.join(LANGUAGES)}")
    ending, build, command = LANGUAGES[language]
    path = Path(folder) / f"{name}{ending}"
    check_outputs([str(path)], [], replace=replace)
    text = (_FOLDER / f"skeleton{ending}").read_text(encoding="utf-8").replace(_PLACEHOLDER, name)
    write_file(str(path), text.encode())
    stem = str(path.with_suffix("")) if path.parent != Path() else f"./{name}"
    words = {"file": shlex.quote(str(path)), "stem": shlex.quote(stem)}
    return Skeleton(str(path), build.format(**words), command.format(**words))
