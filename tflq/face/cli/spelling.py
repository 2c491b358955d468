"""Unknown words of a command line, all at once: verbs, options, choices, names of profiles, runtimes and operators.

The words are read again only after an error of misuse, so that nothing here can refuse a command.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from itertools import islice
from typing import Any, TypeAlias

import click

from tflq.errors import TflqError, UnknownNameError
from tflq.escaping import shown
from tflq.face.cli.start import ALIASES, MODELS, with_verb

#: Number of suggestions for a word, and of files of a folder that are compared with a missing one.
_NEAR, _FILES = 3, 10_000
#: How alike words, names of files, and words for --help must be, from 0 to 1.
_LIKE, _FILE_LIKE, _HELP_LIKE = 0.6, 0.8, 0.7
#: The beginnings of names that state what they name.
_OF_PROFILE, _OF_RUNTIME = "profile:", "runtime:"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A word that is not known: its kind, its place on the command line, and the nearest known words.

    `near` has one entry if one word is nearer than all others. `number` counts the words of the command line; the text
    is the part from `start` on.
    """

    kind: str
    text: str
    near: tuple[str, ...]
    number: int
    start: int = 0

    @property
    def line(self) -> str:
        """The word with what it should be, and what may be meant."""
        meant = f"; did you mean {' or '.join(map(shown, self.near))}?" if self.near else ""
        return f"{shown(self.text)}: no such {self.kind}{meant}"


@dataclass(frozen=True, slots=True)
class Spelling:
    """The unknown words of a command line."""

    words: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    lacks_values: bool = False

    def has(self, word: str) -> bool:
        """Return whether a word is one of them; of a value that is not a choice, the word is its option."""
        texts = {text.lower() for one in self.unknown for text in (one.text, self.words[one.number])}
        return bool(word) and (
            word.lower() in texts or any(one.kind.startswith(f"value of {word} ") for one in self.unknown)
        )

    @property
    def corrected(self) -> str:
        """The command with every unknown word replaced; empty if one has no best replacement, or a value is missing."""
        if self.lacks_values:
            return ""
        words = list(self.words)
        for one in sorted(self.unknown, key=lambda one: (one.number, one.start), reverse=True):
            if len(one.near) != 1:
                return ""
            word = words[one.number]
            words[one.number] = word[: one.start] + one.near[0] + word[one.start + len(one.text) :]
        line = shlex.join(("tflq", *words))
        return line if self.unknown and line.isprintable() else ""


#: Checks a value, which begins at a place of a word, and yields the kind, text, nearest words and start of its faults.
_Fault: TypeAlias = "tuple[str, str, tuple[str, ...], int]"
_Check: TypeAlias = "Callable[[str, int], Iterator[_Fault]]"


def spelling_of(words: Sequence[str], verbs: click.Group) -> Spelling:
    """Return the unknown words among those of a command line, the verb spelled out."""
    whole = with_verb(list(words))
    reading = _Reading(tuple(whole))
    with suppress(Exception):  # a check that fails must not hide the error that is reported
        reading.read(verbs)
    return Spelling(reading.words, tuple(reading.unknown), reading.lacks_values)


def may_mean(word: str, option: str) -> bool:
    """Return whether an unknown option may be a misspelt one. --html, which some verbs lack, does not mean --help."""
    return option != "--help" or SequenceMatcher(a=option, b=word.lower()).ratio() > _HELP_LIKE


def nearest(word: str, known: Iterable[str], like: float = _LIKE) -> tuple[str, ...]:
    """Return the known word that is most like it, in any case; several if they are equally like it; none if none is."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, _NEAR, like)
    ratios = [SequenceMatcher(a=name, b=word.lower()).ratio() for name in found]
    best = max(ratios, default=0.0)
    return tuple(by_lower[name] for name, ratio in zip(found, ratios, strict=True) if ratio == best)


@dataclass(slots=True)
class _Reading:
    """A command line that is read word by word."""

    words: tuple[str, ...]
    unknown: list[Unknown] = field(default_factory=list)
    lacks_values: bool = False

    def read(self, verbs: click.Group) -> None:
        """Find the unknown words."""
        command: click.Command | None = verbs
        number = 0
        while isinstance(command, click.Group):
            if number == len(self.words) or self.words[number].startswith("-"):
                return
            command = self._command(command, number, ALIASES if command is verbs else {})
            number += 1
        if command is not None:
            self._read_options(command, number)

    def _command(self, group: click.Group, number: int, aliases: Mapping[str, str]) -> click.Command | None:
        """Return the command of a word, or the one that is meant."""
        context = click.Context(group)
        word = self.words[number]
        found = group.get_command(context, aliases.get(word, word))
        if found is not None:
            return found
        near = nearest(word, (*group.list_commands(context), *aliases))
        self.unknown.append(Unknown("command", word, near, number))
        return group.get_command(context, aliases.get(near[0], near[0])) if len(near) == 1 else None

    def _read_options(self, command: click.Command, number: int) -> None:
        """Read the words after the verb: options with their values, then arguments."""
        options = _options(command)
        arguments: list[int] = []
        faults: list[tuple[int, _Check, int]] = []  # word, its check, the start of the value
        while number < len(self.words):
            word = self.words[number]
            number += 1
            if word == "--":
                arguments += range(number, len(self.words))
                break
            if not word.startswith("-") or word == "-":
                arguments.append(number - 1)
                continue
            name, equals, _ = word.partition("=") if word.startswith("--") else (word[:2], word[2:], "")
            option = options.get(name)
            if option is None:
                option = self._meant(word.partition("=")[0], options, number - 1)
            if option is None:  # whether it has a value is not known
                is_value = not equals and number < len(self.words) and not self.words[number].startswith("-")
                number += is_value
                continue
            if option.is_flag or option.count:
                continue
            check = self._check(command, option)
            if equals:
                start = len(word.partition("=")[0]) + 1 if word.startswith("--") else 2
                faults.append((number - 1, check, start))
            else:
                for _ in range(option.nargs):
                    if number == len(self.words) or self.words[number] in options:
                        self.lacks_values |= not _is_optional(option)
                        break
                    if _is_optional(option) and self.words[number].startswith("-"):
                        break
                    faults.append((number, check, 0))
                    number += 1
        faults += [(n, check, 0) for n, check in self._arguments(command, arguments)]
        for place, check, start in faults:
            for kind, text, near, at in check(self.words[place], start):
                self.unknown.append(Unknown(kind, text, near, place, at))
        self.unknown.sort(key=lambda one: (one.number, one.start))

    def _meant(self, name: str, options: Mapping[str, click.Option], number: int) -> click.Option | None:
        """Return the option that a misspelt one means; None if that is not clear."""
        known = [n for n, option in options.items() if n.startswith("--") and not option.hidden and may_mean(name, n)]
        near = nearest(name, known)
        self.unknown.append(Unknown("option", name, near, number))
        return options[near[0]] if len(near) == 1 else None

    def _check(self, command: click.Command, option: click.Option) -> _Check:
        """Return the check of an option's values."""
        if isinstance(option.type, click.Choice):
            return _of_choices(option.opts[0], option.type)
        name = option.opts[0]
        if name == "--keep-float":
            return self._operators(command)
        if name == "--between" and command.name == "prove":
            return _profile
        return _CHECKS.get(name, _nothing)

    def _arguments(self, command: click.Command, places: Sequence[int]) -> Iterator[tuple[int, _Check]]:
        """Yield the arguments with their checks."""
        left = list(places)
        for argument in (p for p in command.params if isinstance(p, click.Argument)):
            count = len(left) if argument.nargs < 0 else argument.nargs
            check: _Check = _nothing
            if isinstance(argument.type, click.Path):
                check = _model
            elif argument.name == "operators":
                check = self._operators(command)
            elif argument.name == "evidence":
                check = _side
            elif argument.name in {"names", "further"}:
                check = _profile
                left = left[1:] if left and self.words[left[0]] == "show" else left
            yield from ((n, check) for n in left[:count])
            left = left[count:]

    def _operators(self, command: click.Command) -> _Check:
        """Return the check of operators of the model that the command names."""

        def check(word: str, start: int) -> Iterator[_Fault]:
            from tflq.engine.api.subject import subject
            from tflq.model.ir.signatures import is_plain
            from tflq.model.surgery.cut import operators_named

            path = next((w for w in self.words if w.lower().endswith(MODELS) and os.path.exists(w)), None)
            if path is None:
                return
            model = subject(path).model
            if not is_plain(model) and command.name == "quantize":
                return  # parts of decoders have other names
            yield from _resolved(
                word[start:], start, "operator of the model", lambda name: operators_named(model, [name])
            )

        return check


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by each of their names."""
    options = [p for p in command.params if isinstance(p, click.Option)]
    helping = command.get_help_option(click.Context(command))
    options += [helping] if isinstance(helping, click.Option) else []
    return {name: option for option in options for name in (*option.opts, *option.secondary_opts)}


def _is_optional(option: click.Option) -> bool:
    """Return whether the option may come without its value."""
    return bool(getattr(option, "_flag_needs_value", False))


# --- values -----------------------------------------------------------------------------------------------------------


def _nothing(_word: str, _start: int) -> Iterator[_Fault]:
    yield from ()


def _of_choices(option: str, type_: click.Choice[Any]) -> _Check:
    """Return the check of a choice."""
    choices = [str(choice) for choice in type_.choices]

    def check(word: str, start: int) -> Iterator[_Fault]:
        if word[start:] not in choices and (type_.case_sensitive or word[start:].lower() not in choices):
            kind = f"value of {option} ({', '.join(choices)})"
            yield kind, word[start:], nearest(word[start:], choices), start

    return check


def _profile(word: str, start: int) -> Iterator[_Fault]:
    from tflq.engine.profiles import by_name
    from tflq.engine.profiles.table import ALIASES as OTHERS

    yield from _resolved(word[start:], start, "profile", by_name, tuple(OTHERS))


def _profiles(word: str, start: int) -> Iterator[_Fault]:
    for part in word[start:].split(","):
        if part.strip() and part != "all":
            at = start + len(part) - len(part.lstrip())
            yield from _profile(word[: start + len(part.rstrip())], at)
        start += len(part) + 1


def _runtime(word: str, start: int) -> Iterator[_Fault]:
    from tflq.engine.runtimes import named

    if word[start:].lower() != "none":
        start += len(_OF_RUNTIME) if word[start:].lower().startswith(_OF_RUNTIME) else 0
        yield from _resolved(word[start:], start, "runtime", named)


def _side(word: str, start: int) -> Iterator[_Fault]:
    """Check `profile:NAME` and `runtime:NAME`; other words are commands or files."""
    for beginning, check in ((_OF_PROFILE, _profile), (_OF_RUNTIME, _runtime)):
        if word[start:].startswith(beginning):
            yield from check(word, start + len(beginning))


def _side_or_profile(word: str, start: int) -> Iterator[_Fault]:
    yield from (_side if ":" in word[start:] else _profile)(word, start)


def _learned(word: str, start: int) -> Iterator[_Fault]:
    """Check operators that can be learned, with commas."""
    from tflq.devices.learning.subjects import known_operators

    for part in word[start:].split(","):
        name = part.strip()
        if name and name.upper() not in known_operators():
            yield "operator that can be learned", name, nearest(name, known_operators()), start + part.index(name)
        start += len(part) + 1


def _model(word: str, start: int) -> Iterator[_Fault]:
    """Check a model's file; only those are missing that have a similar name beside them."""
    if not word.lower().endswith(MODELS) or "://" in word or os.path.lexists(word):
        return
    folder, name = os.path.split(word)
    with suppress(OSError), os.scandir(folder or ".") as entries:
        models = [os.path.splitext(e.name) for e in islice(entries, _FILES) if e.name.lower().endswith(MODELS)]
        stem = os.path.splitext(name)[0]
        near = nearest(stem, [other for other, _ in models], _FILE_LIKE)
        whole = tuple("".join(parts) for parts in models if parts[0] in near)
        if whole:
            yield "file", name, whole, start + len(word) - len(name)


def _resolved(
    name: str, start: int, kind: str, resolve: Callable[[str], Any], others: tuple[str, ...] = ()
) -> Iterator[_Fault]:
    """Yield a name that cannot be resolved, with the nearest of the known ones."""
    try:
        resolve(name)
    except UnknownNameError as error:
        if error.kind == kind.partition(" ")[0]:
            known = (*map(str, error.known), *others)
            yield kind, name, nearest(name, [one for one in known if " " not in one]), start
    except TflqError:
        return


#: The checks of options' values, by the first name of the option.
_CHECKS: Mapping[str, _Check] = {
    "--profile": _profile,
    "--and": _profile,
    "--runtimes": _profiles,
    "--portable": _profiles,
    "--between": _side_or_profile,
    "--against": _runtime,
    "--target": _side,
    "--operators": _learned,
}
