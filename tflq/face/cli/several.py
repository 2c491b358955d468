"""Verbs for several models: each runs by itself, and a model that fails is one row of the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import click

from tflq.face.cli.exits import Exit, exit_of, gravest
from tflq.face.cli.options import from_stdin
from tflq.face.cli.output import say, say_document

models_argument = click.argument(
    "models",
    metavar="MODEL...",
    nargs=-1,
    required=True,
    type=click.Path(),
    callback=lambda context, option, words: tuple(str(from_stdin(context, option, word)) for word in words),
)

#: The result for one model: a word for the outcome, the cells of its row, its document, its exit code.
Found = tuple[str, tuple[str, ...], Mapping[str, Any], Exit]


def each_model(
    verb: str, models: Sequence[str], columns: Sequence[tuple[str, str]], one: Callable[[str], Found], *, as_json: bool
) -> Exit:
    """Call `one` with each model and print a summary; return the gravest exit code.

    An interrupt ends the calls, and the models until then are summarized.
    """
    from tflq.face.report.several import FAILED, Outcome, summary_document, summary_report

    outcomes = []
    ended = list[Exit]()
    for model in models:
        try:
            outcomes.append(Outcome(model, *one(model)))
        except KeyboardInterrupt:
            ended = [Exit.INTERRUPTED]
            break
        except Exception as error:
            outcomes.append(Outcome(model, FAILED, (), None, exit_of(error), error))
    code = gravest([*ended, *(Exit(outcome.code) for outcome in outcomes)])
    if as_json:
        say_document(summary_document(verb, outcomes, code))
    else:
        say(summary_report(verb, columns, outcomes, code))
    return code


def only_of_one(models: Sequence[str], options: Iterable[tuple[str, object]]) -> None:
    """Refuse options for a single model if there are several, and what is no model."""
    from tflq.errors import OptionError

    _refuse_evidence(models)

    names = [name for name, value in options if value is not None and value is not False]
    if len(models) > 1 and names:
        raise OptionError(f"{', '.join(names)}: for one model only, but {len(models)} are given")


def _refuse_evidence(models: Sequence[str]) -> None:
    """Refuse a board's log or arrays beside a model: `tflq why` reads them."""
    from tflq.errors import OptionError, TflqError
    from tflq.model.storage.kinds import HEAD, is_evidence
    from tflq.model.storage.reading import open_file

    for path in models[1:]:
        try:
            with open_file(Path(path)) as file:
                head = file.read(HEAD)
        except TflqError:
            continue
        if is_evidence(head):
            again = f"tflq why {quote(models[0])} {quote(path)}"
            raise OptionError(f"{path}: is no model, but may hold its results: `{again}` compares them")


def fill(pattern: str, model: str) -> str:
    """Return a pattern with a model's name without its ending for {stem}, and its folder for {folder}."""
    path = Path(model)
    return pattern.replace("{stem}", path.stem).replace("{folder}", str(path.parent))
