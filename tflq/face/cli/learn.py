"""`tflq learn`: an unknown device's arithmetic, learned by questions, as a profile that executes it."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_page, write_text
from tflq.face.cli.options import html_option, json_option, python_option, words_of
from tflq.face.cli.output import is_quiet, say, say_document
from tflq.face.cli.targets import target_option, timeout_option


@click.command("learn")
@target_option()
@click.option(
    "--dump", "dumps", metavar="PATH", multiple=True, help="Instead of a target: a device's dump; may repeat."
)
@click.option("--model", "models", metavar="FILE", multiple=True, help="The model of each dump, in their order.")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The profile to write (.yaml).")
@click.option("--operators", metavar="A,B", callback=words_of, help="Only these operators. [default: all]")
@click.option("--types", metavar="A,B", callback=words_of, default="int8", show_default=True, help="Types of codes.")
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
@timeout_option
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
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.learn.document import learn_document
    from tflq.face.report.verbs.learn.report import learn_report
    from tflq.verbs.learn import learn

    check_files([output, html], [*dumps, *models], force=force)
    if not output.lower().endswith((".yaml", ".yml")):
        raise OptionError(f"-o {output}: name a .yaml file; --profile knows profiles by that ending")
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        found = learn(
            target,
            dumps=dumps,
            models=models,
            operators=operators,
            types=types,
            seed=seed,
            fresh=fresh,
            most=most,
            work=work or f"{output}.answers",
            keep=work is not None,
            python=python,
            timeout=timeout,
            progress=progress,
        )
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
