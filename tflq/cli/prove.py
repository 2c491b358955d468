"""`tflq prove`: prove that profiles give the same bits for every input."""

from __future__ import annotations

from typing import Any

import click

from tflq.cli.exits import exit_of_verdict
from tflq.cli.files import check_files, force_option, write_arrays
from tflq.cli.options import json_option, limit_options, model_argument, signature_option
from tflq.cli.output import say, say_document


@click.command("prove")
@model_argument
@click.option("--between", nargs=2, metavar="A B", required=True, help="Two profiles (`tflq profiles` lists them).")
@click.option("--and", "more", multiple=True, metavar="PROFILE", help="A further profile; every pair is compared.")
@signature_option
@click.option("--witnesses", metavar="FILE", type=click.Path(), help="Write inputs that distinguish profiles (.npz).")
@force_option
@limit_options
@json_option
def prove_command(
    model: str,
    between: tuple[str, str],
    more: tuple[str, ...],
    signature: str | None,
    witnesses: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Prove, operator by operator, that profiles give the same bits for every input, or show an input that differs.

    Every operator of MODEL, of all its subgraphs, is taken alone, with any codes as its inputs, for the shapes in the
    file. It is "equal" if that is proved, "differs" if an input was found and run under both profiles, or "not
    decided". Exit code 0: all equal; 1: some differ; 3: none differs, some are not decided.

    \b
    tflq prove model.tflite --between litert-ref tflm
    """
    from tflq.proof import prove
    from tflq.report.verbs.prove import prove_document, prove_report

    check_files([witnesses], [model], force=force)
    proof = prove(model, (*between, *more), signature)
    if witnesses is not None:
        write_arrays(witnesses, _arrays(proof))
    if as_json:
        say_document(prove_document(proof))
    else:
        say(prove_report(proof))
    return exit_of_verdict(proof.word)


def _arrays(proof: Any) -> dict[str, Any]:
    """Return inputs of all witnesses, as OPERATOR/A/B/TENSOR; OPERATOR is SUBGRAPH:INDEX beyond subgraph 0."""
    return {
        f"{operator.place}/{verdict.first}/{verdict.second}/{tensor}": values
        for operator in proof.operators
        for verdict in operator.verdicts
        if verdict.witness is not None
        for tensor, values in verdict.witness.inputs.items()
    }
