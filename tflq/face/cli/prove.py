"""`tflq prove`, `court` and `session`: profiles and runtimes side by side.

`tflq prove --check`: prove the statements of a certificate again.

`tflq prove`: prove that profiles give the same bits for every input.

`tflq court`: every profile and installed runtime on one model.

`tflq session`: a model run step by step with its state on two sides, compared at every step.
"""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.answer import Delivery, Exit, delivery_options, is_quiet, say_text, say_written, write_arrays
from tflq.face.cli.options import (
    input_options,
    limit_options,
    model_argument,
    python_option,
    signature_option,
    words_of,
)


def say_check(model: str, path: str, out: Delivery) -> Exit:
    """Check a certificate, print the result, and return the exit code."""
    from tflq.face.report.verbs.prove import check_document, check_report
    from tflq.proof import check_certificate, read_certificate

    check = check_certificate(model, read_certificate(path))
    return out.give(check.word, check_report(check), lambda: check_document(check))


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
@limit_options
@delivery_options
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
    out: Delivery,
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
    from tflq.face.report.verbs.prove import answer_text, prove_document, prove_report
    from tflq.face.report.wording import counted
    from tflq.proof import ALL, prove

    if check is not None:
        if between or further or more or every or signature or certificate or witnesses or answer or out.html:
            raise click.UsageError("--check FILE goes with MODEL and --json only: the certificate names its profiles")
        return say_check(model, check, out)
    if not between and not every:
        raise click.UsageError("name two profiles or more with --between A B, or give --all")
    out.check(certificate, witnesses, answer)
    proof = prove(model, [*(between or ()), *further, *more, *([ALL] if every else ())], signature)
    if certificate is not None:
        proof.certificate().write(certificate)
        say_written(certificate, "certificate")
    if witnesses is not None:
        arrays = _arrays(proof)
        write_arrays(witnesses, arrays)
        say_written(witnesses, f"inputs of witnesses, {counted(len(arrays), 'array')}")
    searched = None if answer is None else _search_answer(model, proof, signature, answer)
    drawn = (model, next(iter(proof.profiles), "litert-ref"), signature)
    code = out.give(proof.word, prove_report(proof), lambda: prove_document(proof, searched, answer), drawn)
    if searched is not None and not out.as_json:
        say_text(answer_text(searched))
    return code


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


@click.command("court")
@model_argument
@click.option(
    "--with",
    "systems",
    metavar="A,B",
    callback=words_of,
    help="Only these profiles, runtime:NAME and ready targets. [default: all profiles, and the installed runtimes]",
)
@input_options
@signature_option
@python_option
@limit_options
@delivery_options
def court_command(
    model: str, systems: tuple[str, ...], inputs: str | None, signature: str | None, out: Delivery, **options: Any
) -> int:
    """Run MODEL under all profiles and runtimes: who gives the same bits, who parts from whom, and at which operator.

    Systems part at an operator if they have the same inputs there and give other outputs. The number of systems in a
    group decides nothing; groups are compared with litert-ref. Exit code 1: there are several groups; 3: fewer than two
    systems ran.

    \b
    tflq court model.tflite
    tflq court model.tflite --with litert-ref,runtime:tflm,openvino --samples 8
    """
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.court import court_document, court_report
    from tflq.verbs.court import court

    out.check()
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        found = court(model, systems, inputs, signature=signature, **options, progress=progress)
    drawn = (model, "litert-ref", signature)
    return out.give(found.verdict, court_report(found), lambda: court_document(found), drawn)


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
@limit_options
@delivery_options
def session_command(
    model: str,
    other: str | None,
    between: tuple[str, str],
    tokenizer: str | None,
    outputs_only: bool,
    record: str | None,
    out: Delivery,
    **options: Any,
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
    from tflq.comparison.sessions.text import tokenizer_of
    from tflq.face.report.verbs.session import session_document, session_report
    from tflq.verbs.session import session

    out.check(record)
    words = tokenizer_of(tokenizer, model)
    found = session(model, other, between, tokenizer=words, operators=not outputs_only, record=record, **options)
    if record is not None:
        say_written(record, "golden of the steps")
    return out.give(found.verdict, session_report(found, words), lambda: session_document(found))
