"""`tflq learn`: an unknown device's arithmetic, learned by questions, as a profile that executes it."""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_page, write_text
from tflq.face.cli.options import html_option, json_option, python_option
from tflq.face.cli.output import is_quiet, say, say_document

TYPES = ("int8", "uint8", "int16")


def _words(_context: Any, _option: Any, text: str | None) -> tuple[str, ...]:
    """Return A,B as words."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


@click.command("learn")
@click.option(
    "--target", metavar="CMD", help="A command that is run with a folder of cases, runtime:NAME or profile:NAME."
)
@click.option(
    "--dump", "dumps", metavar="PATH", multiple=True, help="Instead of a target: a device's dump; may repeat."
)
@click.option("--model", "models", metavar="FILE", multiple=True, help="The model of each dump, in their order.")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The profile to write (.yaml).")
@click.option("--operators", metavar="A,B", callback=_words, help="Only these operators. [default: all]")
@click.option("--types", metavar="A,B", callback=_words, default="int8", show_default=True, help="Types of codes.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all questions.")
@click.option(
    "--fresh", type=click.IntRange(1, 1000), default=32, show_default=True, help="Fresh models for each operator."
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Models after which nothing is asked.",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=600.0, show_default=True, help="Seconds allowed for a call."
)
@click.option(
    "--work",
    metavar="FOLDER",
    help="Keep the device's answers here; a later run goes on from them. [default: FILE.answers, until it ends]",
)
@html_option
@force_option
@python_option
@json_option
def learn_command(
    target: str | None,
    dumps: tuple[str, ...],
    models: tuple[str, ...],
    output: str,
    operators: tuple[str, ...],
    types: tuple[str, ...],
    seed: int,
    fresh: int,
    most: int,
    timeout: float,
    work: str | None,
    html: str | None,
    force: bool,
    python: str | None,
    as_json: bool,
) -> int:
    """Ask a device thousands of questions, and write its arithmetic as a profile that runs, verifies and quantizes.

    Each question is a model of one operator; docs/target-protocol.md describes what the target receives. The profile
    refuses operators that were not learned. Ctrl-C ends the questions, and what is known by then is written; the same
    command with --force goes on and asks nothing twice. Exit code 1: some operator is not known; 3: nothing was
    learned.

    \b
    tflq learn --target ./my_npu.sh -o my-npu.yaml --html my-npu.html
    """
    from tflq.devices.learning.profile import text_of
    from tflq.errors import OptionError
    from tflq.face.report.verbs.learn.document import learn_document
    from tflq.face.report.verbs.learn.report import learn_report

    check_files([output, html], [*dumps, *models], force=force)
    if not output.lower().endswith((".yaml", ".yml")):
        raise OptionError(f"-o {output}: name a .yaml file; --profile knows profiles by that ending")
    if (target is None) == (not dumps) or len(dumps) != len(models):
        raise OptionError("expected --target CMD, or --dump PATH and --model FILE once for each dump")
    if target is None:
        found = _from_dumps(dumps, models)
    else:
        found = _from_target(target, python, timeout, operators, types, seed, fresh, most, work, f"{output}.answers")
    write_text(output, text_of(found))
    shown = learn_report(found, output)
    if html is not None:
        write_page(html, shown)
    if as_json:
        say_document(learn_document(found, output))
    else:
        say(shown)
    if found.reason == "interrupted":
        return Exit.INTERRUPTED
    if found.reason:
        return Exit.RUNTIME_FAILED
    states = [one.state.value for one in found.operators]
    if not any(one.is_executed for one in found.operators):
        return Exit.UNSUPPORTED
    return Exit.SAME if all(state in ("learned", "table", "refused") for state in states) else Exit.DIFFERS


def _from_dumps(dumps: tuple[str, ...], models: tuple[str, ...]) -> Any:
    from tflq.devices.learning.passive import learn_from_dumps
    from tflq.diagnosis.signatures import only_dumps
    from tflq.engine.api.subject import subject

    sources = []
    for dump, model in zip(dumps, models, strict=True):
        part, samples = only_dumps(subject(model).model, dump, None, None, None)
        sources.append((part.model, samples))
    return learn_from_dumps(sources, ", ".join(dumps))


def _from_target(
    target: str,
    python: str | None,
    timeout: float,
    operators: tuple[str, ...],
    types: tuple[str, ...],
    seed: int,
    fresh: int,
    most: int,
    work: str | None,
    beside: str,
) -> Any:
    from tflq.devices.conformance.targets import target_of
    from tflq.devices.learning.kept import Kept
    from tflq.devices.learning.learner import learn
    from tflq.devices.learning.operators import Effort
    from tflq.devices.learning.subjects import known_operators, subjects
    from tflq.errors import OptionError, UnknownNameError
    from tflq.face.report.progress import progress_bar

    for word in types:
        if word not in TYPES:
            raise UnknownNameError("type of codes", word, TYPES)
    operators = tuple(word.upper() for word in operators)
    for word in operators:
        if word not in known_operators():
            raise UnknownNameError("operator that can be learned", word, known_operators())
    system = target_of(target, python, timeout)
    wanted = subjects(types or ("int8",), operators)
    if not wanted:
        raise OptionError(f"no operator named has the types {', '.join(types)}")
    kept = Kept(work or beside, system.identity())
    with progress_bar(lines=True, quiet=is_quiet()) as told:
        found = learn(system, wanted, Effort(fresh=fresh, seed=seed), most=most, progress=told, kept=kept)
    if work is None and not found.is_partial:
        kept.remove()
    return found
