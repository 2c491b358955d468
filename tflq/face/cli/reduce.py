"""`tflq reduce`: the smallest model that still shows a difference."""

from __future__ import annotations

import os
import subprocess
from shlex import quote
from typing import TYPE_CHECKING

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_arrays
from tflq.face.cli.inputs import optional_dump_option, sample_option
from tflq.face.cli.options import json_option, limit_options, model_argument, profile_option, signature_option
from tflq.face.cli.output import say, say_document, say_written

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
    "-o",
    "--output",
    metavar="NAME",
    type=click.Path(),
    help="Writes NAME.tflite, NAME.npz ...; NAME may be the model's.",
)
@click.option(
    "--bundle",
    metavar="FILE.zip",
    type=click.Path(),
    help="One archive for a vendor: model, inputs, outputs, a test in C, a page in Markdown.",
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
    output: str | None,
    bundle: str | None,
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
    tflq reduce model.tflite --dump device.npz --bundle vendor.zip
    """
    from tflq.engine.api.subject import subject
    from tflq.engine.runtimes.children import temporary_folder
    from tflq.errors import OptionError
    from tflq.face.report.verbs.reduce import reduce_document, reduce_report
    from tflq.model.ir import only_signed
    from tflq.model.storage.output import write_file
    from tflq.verbs.reduce import reduce

    name, files = _files(output, bundle)
    check_files(files.values(), [model, dump, inputs], force=force)
    target = subject(model)
    if dump is not None and check is None:
        reduced = reduce(model, dump, profile, inputs=inputs, sample=sample, signature=signature)
        line = f"tflq verify {quote(name + '.tflite')} --golden {quote(name + '.npz')}"
        line += "" if profile == "litert-ref" else f" --profile {quote(profile)}"
    elif check is not None and dump is None:
        if "{model}" not in check:
            raise OptionError(f"--check {check!r}: needs {{model}} in place of the candidate's path")
        with temporary_folder() as folder:
            whole = only_signed(target.model, signature).model
            runs = _command(check, os.path.join(folder, "part"), whole)
            reduced = reduce(whole, None, profile, check=runs, inputs=inputs, sample=sample, seed=seed)
        line = _fill(check, name)
    else:
        raise OptionError("give either --dump or --check")
    if output is not None:
        _write(name, reduced)
    if bundle is not None:
        from tflq.face.report.verbs.reduce_bundle import bundle as bundled

        write_file(bundle, bundled(reduced, target.facts, profile, check))
        line = line if output is not None else _unpack(line, name, bundle)
    if as_json:
        say_document(reduce_document(target.facts, reduced, files, line))
    else:
        say(reduce_report(reduced, next(iter(files.values())), line))
        if bundle is not None and output is not None:
            say_written(bundle, "archive for the vendor")
    return Exit.SAME


def _files(output: str | None, bundle: str | None) -> tuple[str, dict[str, str]]:
    """Return the name before the endings of files, and the files by what they hold."""
    from tflq.errors import FileAccessError, OptionError

    if output is None and bundle is None:
        raise OptionError("give -o NAME, --bundle FILE.zip, or both")
    if bundle is not None and not bundle.lower().endswith(".zip"):
        raise OptionError(f"--bundle {bundle!r}: name a file that ends in .zip")
    files: dict[str, str] = {}
    name = bundle[:-4] if bundle is not None else ""
    if output is not None:
        name = output[:-7] if output.lower().endswith(".tflite") else output
        if not os.path.basename(name):
            raise FileAccessError(output, "is a folder; name a file")
        files = dict(zip(("model", "golden", "expected"), (name + ending for ending in _WRITTEN), strict=True))
    elif not os.path.basename(name):
        raise FileAccessError(str(bundle), "has no name")
    return name, files | ({} if bundle is None else {"bundle": bundle})


def _unpack(line: str, name: str, bundle: str) -> str:
    """Return a command that unpacks the archive, and shows the difference with its files."""
    line = line.replace(quote(name + ".tflite"), quote(os.path.join(name, "model.tflite")))
    line = line.replace(quote(name + ".npz"), quote(os.path.join(name, "device.npz")))
    return f"python3 -m zipfile -e {quote(bundle)} {quote(name)} && {line}"


def _fill(command: str, name: str) -> str:
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
        with started(_fill(command, name), shell=True, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE) as child:
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
