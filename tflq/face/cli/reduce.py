"""`tflq reduce`: the smallest model that still shows a difference."""

from __future__ import annotations

import os
import subprocess
from shlex import quote
from typing import TYPE_CHECKING

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_arrays
from tflq.face.cli.options import (
    json_option,
    limit_options,
    model_argument,
    optional_dump_option,
    profile_option,
    sample_option,
    signature_option,
)
from tflq.face.cli.output import say, say_document

if TYPE_CHECKING:
    from tflq.diagnosis.reduction import Check, Reduced, Sample
    from tflq.model.ir import Model

#: Endings of the output files.
_WRITTEN = (".tflite", ".npz", ".expected.npz")
#: Exit codes of a check by which the difference remains: those of `tflq verify`.
_REMAINS = (Exit.DIFFERS, Exit.EXPLAINED)


@click.command("reduce")
@model_argument
@optional_dump_option
@click.option(
    "--check",
    metavar="CMD",
    help="A command with {model} and {inputs} in it; its exit code 1 or 6 means that the difference remains.",
)
@click.option(
    "-o", "--output", required=True, metavar="NAME", type=click.Path(), help="Writes NAME.tflite, NAME.npz ..."
)
@force_option
@sample_option
@signature_option
@click.option("--inputs", metavar="SOURCE", help="The model's inputs; with --check as for `tflq run`.")
@click.option("--seed", default=0, show_default=True, help="Seed of generated inputs.")
@profile_option
@limit_options
@json_option
def reduce_command(
    model: str,
    dump: str | None,
    check: str | None,
    output: str,
    force: bool,
    sample: int | None,
    signature: str | None,
    inputs: str | None,
    seed: int,
    profile: str,
    as_json: bool,
) -> int:
    """Shrink MODEL to the operators, then the element, then the values that still show a difference.

    Writes NAME.tflite; NAME.npz, a golden file with the inputs and, with --dump, the device's outputs; and
    NAME.expected.npz, with the profile's outputs.

    With --dump each operator gets the dump's own inputs, and only the profile is run.

    \b
    tflq reduce model.tflite --dump device.npz -o small
    """
    from tflq.engine.api.subject import subject
    from tflq.engine.runtimes.children import temporary_folder
    from tflq.errors import FileAccessError, OptionError
    from tflq.face.report.verbs.reduce import reduce_document, reduce_report
    from tflq.model.ir import only_signed
    from tflq.verbs.reduce import reduce

    if not os.path.basename(output):
        raise FileAccessError(output, "is a folder; name a file")
    check_files([output + ending for ending in _WRITTEN], [model, dump, inputs], force=force)
    target = subject(model)
    if dump is not None and check is None:
        reduced = reduce(model, dump, profile, inputs=inputs, sample=sample, signature=signature)
        line = f"tflq verify {quote(output + '.tflite')} --golden {quote(output + '.npz')}"
        line += "" if profile == "litert-ref" else f" --profile {quote(profile)}"
    elif check is not None and dump is None:
        if "{model}" not in check:
            raise OptionError(f"--check {check!r}: needs {{model}} in place of the candidate's path")
        with temporary_folder() as folder:
            whole = only_signed(target.model, signature).model
            runs = _command(check, os.path.join(folder, "part"), whole)
            reduced = reduce(whole, None, profile, check=runs, inputs=inputs, sample=sample, seed=seed)
        line = _filled(check, output)
    else:
        raise OptionError("give either --dump or --check")
    _write(output, reduced)
    if as_json:
        say_document(reduce_document(target.facts, reduced, output, line))
    else:
        say(reduce_report(reduced, output, line))
    return Exit.SAME


def _filled(command: str, name: str) -> str:
    return command.replace("{model}", quote(name + ".tflite")).replace("{inputs}", quote(name + ".npz"))


def _command(command: str, name: str, whole: Model) -> Check:
    """Return a check that runs the command on candidates, which are written to NAME.tflite and NAME.npz.

    A candidate on which the command fails shows no difference; for the whole model it must work.
    """
    from tflq.engine.runtimes.children import started
    from tflq.errors import OptionError

    def check(model: Model, sample: Sample) -> bool:
        _save(name, model, sample, ())
        nothing = subprocess.DEVNULL
        with started(
            _filled(command, name), shell=True, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE
        ) as child:
            _, printed = child.communicate()
        if model is whole and child.returncode not in (Exit.SAME, *_REMAINS):
            said = printed.decode(errors="replace").strip().rpartition("\n")[2]
            raise OptionError(
                f"--check {command!r}: exit code", expected="0, 1 or 6", got=f"{child.returncode} ({said})"
            )
        return child.returncode in _REMAINS

    return check


def _save(output: str, model: Model, sample: Sample, outputs: Sample) -> None:
    import hashlib

    from tflq.comparison.verification.golden import Golden, Observation
    from tflq.comparison.verification.results import InputFacts
    from tflq.engine.api.files import save
    from tflq.model.storage.output import write_file

    data = save(model)
    write_file(f"{output}.tflite", data)
    golden = Golden(
        (Observation(sample, outputs),), False, InputFacts("reduced", None, 1), {}, hashlib.sha256(data).hexdigest()
    )
    golden.save(f"{output}.npz")


def _write(output: str, reduced: Reduced) -> None:
    _save(output, reduced.model, reduced.sample, reduced.got or ())
    write_arrays(f"{output}.expected.npz", {f"s0_out{i}": value for i, value in enumerate(reduced.expected)})
