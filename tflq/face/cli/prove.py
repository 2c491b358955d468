"""`tflq prove`: prove that profiles give the same bits for every input."""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.certificate import say_check
from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_arrays, write_page
from tflq.face.cli.options import html_option, json_option, limit_options, model_argument, signature_option
from tflq.face.cli.output import is_quiet, say, say_document, say_text, say_written


@click.command("prove")
@model_argument
@click.argument("further", metavar="[PROFILE]...", nargs=-1)
@click.option("--between", nargs=2, metavar="A B", help="Two profiles or more (`tflq profiles` lists them).")
@click.option("--and", "more", multiple=True, metavar="PROFILE", help="A further profile.")
@click.option("--all", "every", is_flag=True, help="Every profile of a runtime that takes the model.")
@signature_option
@click.option("-o", "--certificate", metavar="FILE", type=click.Path(), help="Write a certificate (.json).")
@click.option("--check", metavar="FILE", type=click.Path(), help="Prove what this certificate states again.")
@click.option("--witnesses", metavar="FILE", type=click.Path(), help="Write inputs that distinguish profiles (.npz).")
@click.option(
    "--answer",
    metavar="FILE",
    type=click.Path(),
    help="Also search an input of the whole model that changes an arg-max, and write it (.npz).",
)
@html_option
@force_option
@limit_options
@json_option
def prove_command(
    model: str,
    further: tuple[str, ...],
    between: tuple[str, str] | None,
    more: tuple[str, ...],
    every: bool,
    signature: str | None,
    certificate: str | None,
    check: str | None,
    witnesses: str | None,
    answer: str | None,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Prove, operator by operator, that profiles give the same bits for every input, or show an input that differs.

    Every operator of MODEL, of all its subgraphs, is taken alone, with any codes as its inputs, for the shapes in the
    file. It is "equal" if that is proved for all profiles, "differs" if an input was found and run under two of them,
    or "not decided". Exit code 0: all equal; 1: some differ; 3: none differs, some are not decided.

    PROFILEs are names or YAML files. With --all, profiles that refuse the model are listed as not covered, and do not
    count: a runtime that refuses a model gives no bits. A profile that is named and refuses it is "not decided".

    --check FILE proves again what `tflq prove -o FILE` stated. Exit code 0: the certificate holds; 1: it is void, for
    the given reason.

    \b
    tflq prove model.tflite --between litert-ref tflm
    tflq prove model.tflite --between litert-ref litert-xnnpack tflm mine.yaml
    tflq prove model.tflite --all -o certificate.json
    tflq prove model.tflite --check certificate.json
    """
    from tflq.face.report.numbers import counted
    from tflq.face.report.verbs.prove.document import answer_text, prove_document
    from tflq.face.report.verbs.prove.report import prove_report
    from tflq.proof import ALL, prove

    if check is not None:
        if between or further or more or every or signature or certificate or witnesses or answer or html:
            raise click.UsageError("--check FILE goes with MODEL and --json only: the certificate names its profiles")
        return say_check(model, check, as_json=as_json)
    if not between and not every:
        raise click.UsageError("name two profiles or more with --between A B, or give --all")
    check_files([certificate, witnesses, answer, html], [model], force=force)
    proof = prove(model, [*(between or ()), *further, *more, *([ALL] if every else ())], signature)
    if certificate is not None:
        proof.certificate().write(certificate)
        say_written(certificate, "certificate")
    if witnesses is not None:
        arrays = _arrays(proof)
        write_arrays(witnesses, arrays)
        say_written(witnesses, f"inputs of witnesses, {counted(len(arrays), 'array')}")
    searched = None if answer is None else _search_answer(model, proof, signature, answer)
    shown = prove_report(proof)
    if html is not None:
        write_page(html, shown, model, next(iter(proof.profiles), "litert-ref"), signature)
    if as_json:
        say_document(prove_document(proof, searched, answer))
    else:
        say(shown)
        if searched is not None:
            say_text(answer_text(searched))
    return exit_of_verdict(proof.word)


def _search_answer(model: str, proof: Any, signature: str | None, path: str) -> Any:
    """Search an input that changes the answer under the first two profiles; write it if there is one."""
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.proof.answers import search_answer

    if len(proof.profiles) < 2:
        raise OptionError("--answer needs two profiles that take the model")
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        found = search_answer(model, proof.profiles[:2], signature=signature, progress=progress)
    if found.found is not None:
        write_arrays(path, found.named_inputs)
        say_written(path, "an input that changes the answer")
    return found


def _arrays(proof: Any) -> dict[str, Any]:
    """Return inputs of all witnesses, as OPERATOR/A/B/TENSOR; OPERATOR is SUBGRAPH:INDEX beyond subgraph 0."""
    return {
        f"{operator.place}/{verdict.first}/{verdict.second}/{tensor}": values
        for operator in proof.operators
        for verdict in operator.verdicts
        if verdict.witness is not None
        for tensor, values in verdict.witness.inputs.items()
    }
