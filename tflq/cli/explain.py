"""`tflq explain`: where a device's dump parts from a profile, and which arithmetic reproduces it."""

from __future__ import annotations

import click

from tflq.cli.exits import Exit
from tflq.cli.options import dump_option, json_option, model_argument, profile_option, sample_option
from tflq.cli.output import say, say_document


@click.command("explain")
@model_argument
@dump_option
@sample_option
@click.option("--op", type=int, help="Explain this operator. [default: the first that differs]")
@click.option("--mode", type=click.Choice(["isolated", "cumulative"]), default="isolated", show_default=True)
@profile_option
@json_option
def explain_command(
    model: str, dump: str, sample: int | None, op: int | None, mode: str, profile: str, as_json: bool
) -> int:
    """Find the first operator of MODEL whose results in the dump differ, and the arithmetic that reproduces them.

    isolated: each operator is fed the dump's own inputs, so that one fault neither hides nor spreads.
    cumulative: the whole model, end to end. The cause is always sought with the dump's own inputs.
    """
    from tflq.errors import OptionError
    from tflq.profiles import by_name
    from tflq.report.explain import explain_document, explain_lines, verdict_of
    from tflq.verification.dump import load_dumps
    from tflq.verification.explain import explain_operator
    from tflq.verification.localize import trusted
    from tflq.verification.samples import localize_samples, most_telling, over_samples
    from tflq.verification.source import subject

    chosen = by_name(profile)
    target = subject(model).model
    samples = load_dumps(target, dump, sample)
    if op is not None and not 0 <= op < len(target.subgraphs[0].operators):
        raise OptionError(f"--op {op}: the model has operators 0 to {len(target.subgraphs[0].operators) - 1}")
    by_sample = localize_samples(target, samples, chosen, mode)
    found = over_samples(by_sample)
    index = op if op is not None else next((o.index for o in found if o.differs), None)
    telling = 0 if index is None else most_telling(by_sample, index)
    read = trusted(samples[telling], by_sample[telling])
    explanation = (
        None if index is None or not found[index].differences else explain_operator(target, read, index, chosen)
    )
    if as_json:
        say_document(explain_document(model, dump, found, explanation, read.unknown))
    else:
        say(explain_lines(model, dump, found, explanation, read.unknown))
    return {"same": Exit.SAME, "differs": Exit.DIFFERS}.get(verdict_of(found), Exit.UNSUPPORTED)
