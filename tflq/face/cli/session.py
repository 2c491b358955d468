"""`tflq session`: a model run step by step with its state on two sides, compared at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_page
from tflq.face.cli.options import html_option, json_option, limit_options, python_option
from tflq.face.cli.output import say, say_document, say_written

if TYPE_CHECKING:
    pass


@click.command("session")
@click.argument("model", type=click.Path())
@click.argument("other", required=False, type=click.Path())
@click.option(
    "--between",
    nargs=2,
    metavar="A B",
    default=("litert-ref", "litert-xnnpack"),
    show_default=True,
    help="The two sides: profiles, or runtime:NAME for a real runtime.",
)
@click.option("--steps", metavar="N", type=click.IntRange(min=1), help="Steps of decode. [default: 20]")
@click.option("--prompt", metavar="TEXT", help="The text that prefill reads. [default: random tokens]")
@click.option(
    "--tokens", metavar="FILE", type=click.Path(), help="The prompt as token ids: .npy, or a text of integers."
)
@click.option("--text", metavar="FILE", type=click.Path(), help="A text to read to its end, for perplexities.")
@click.option(
    "--tokenizer",
    metavar="FILE",
    type=click.Path(),
    help="tokenizer.json, a SentencePiece model, or the word bytes. [default: that of the package]",
)
@click.option(
    "--inputs", metavar="FILE.npz", type=click.Path(), help="For other models: inputs whose first axis is the steps."
)
@click.option("--signature", metavar="NAME", help="The signature that --inputs are for.")
@click.option("--seed", default=0, show_default=True, help="The seed of random tokens and inputs.")
@click.option("--free", is_flag=True, help="Let each side choose its own tokens after the prompt.")
@click.option("--outputs-only", is_flag=True, help="Do not compare the results of operators: faster.")
@click.option(
    "--record", metavar="FILE", type=click.Path(), help="Also write the steps of the live side as a golden for verify."
)
@python_option
@html_option
@force_option
@limit_options
@json_option
def session_command(
    model: str,
    other: str | None,
    between: tuple[str, str],
    steps: int | None,
    prompt: str | None,
    tokens: str | None,
    text: str | None,
    tokenizer: str | None,
    inputs: str | None,
    signature: str | None,
    seed: int,
    free: bool,
    outputs_only: bool,
    record: str | None,
    python: str | None,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Run MODEL step by step with its state, twice, and compare every step.

    A decoder reads the prompt by its prefill signatures, then decodes; caches are carried over by name. Both sides read
    the same tokens, those that the first side chooses, unless --free. Any other model with state runs --inputs, or
    random ones. With OTHER, the second side runs another model, such as the quantized one; the exit code is then 0.

    \b
    tflq session decoder.tflite --between litert-ref runtime:litert-xnnpack
    tflq session gemma.litertlm --prompt "The capital" --html session.html
    tflq session float.tflite int4.tflite --text book.txt --tokenizer bytes
    """
    from tflq.comparison.sessions.tokenizers import tokenizer_of
    from tflq.face.report.verbs.session.document import session_document
    from tflq.face.report.verbs.session.report import session_report
    from tflq.verbs.session import session

    check_files([html, record], [model, other, tokens, text, inputs, tokenizer], force=force)
    words = tokenizer_of(tokenizer, model)
    found = session(
        model,
        other,
        between,
        steps=steps,
        prompt=prompt,
        tokens=tokens,
        text=text,
        tokenizer=words,
        inputs=inputs,
        signature=signature,
        seed=seed,
        free=free,
        operators=not outputs_only,
        record=record,
        python=python,
    )
    if record is not None:
        say_written(record, "golden of the steps")
    shown = session_report(found, words)
    if html is not None:
        write_page(html, shown)
    if as_json:
        say_document(session_document(found))
    else:
        say(shown)
    return exit_of_verdict(found.verdict)
