"""`tflq reduce`: the smallest model that still shows a difference."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from tflq.cli.exits import Exit
from tflq.cli.options import json_option, model_argument, profile_option, sample_option
from tflq.cli.output import say, say_document

if TYPE_CHECKING:
    from tflq.ir import Model
    from tflq.profiles import Profile
    from tflq.verification.reduction import Check, Reduced, Sample


@click.command("reduce")
@model_argument
@click.option("--dump", metavar="PATH", type=click.Path(), help="Tensors of a device, as for `tflq explain`.")
@click.option("--check", metavar="CMD", help="A command with {model} and {inputs}; exit code 1 means: still differs.")
@click.option(
    "-o", "--output", required=True, metavar="NAME", type=click.Path(), help="Writes NAME.tflite, NAME.npz ..."
)
@sample_option
@click.option("--inputs", metavar="SOURCE", help="What the model was fed; with --check as for `tflq run`.")
@click.option("--seed", default=0, show_default=True, help="Seed of generated inputs.")
@profile_option
@json_option
def reduce_command(
    model: str, dump: str | None, check: str | None, output: str, sample: int | None, inputs: str | None, seed: int,
    profile: str, as_json: bool,
) -> int:  # fmt: skip
    """Shrink MODEL to the operators, then the element, then the values that still show a difference.

    Writes NAME.tflite; NAME.npz, a golden file with the inputs and, with --dump, the device's outputs; and
    NAME.expected.npz, with the profile's outputs.

    With --dump each operator is fed the dump's own inputs, and nothing is run but the profile.
    """
    from tflq.errors import OptionError
    from tflq.profiles import by_name
    from tflq.report.surgery import reduce_document, reduce_lines
    from tflq.verification.source import subject

    target = subject(model)
    if dump is not None and check is None:
        found = _from_dump(target.model, by_name(profile), dump, sample, inputs)
        line = f"tflq verify {quote(output + '.tflite')} --golden {quote(output + '.npz')}"
        line += "" if profile == "litert-ref" else f" --profile {quote(profile)}"
    elif check is not None and dump is None:
        found = _from_check(target.model, by_name(profile), check, output, sample, inputs, seed)
        line = _filled(check, output)
    else:
        raise OptionError("give either --dump or --check")
    _write(output, found)
    if as_json:
        say_document(reduce_document(target.facts, found, output, line))
    else:
        say(reduce_lines(found, output, line))
    return Exit.SAME


def _from_dump(model: Model, profile: Profile, path: str, sample: int | None, inputs: str | None) -> Reduced:
    """The first sample of the dump that shows a difference, reduced."""
    from tflq.errors import InputError
    from tflq.verification.dump import load_dumps
    from tflq.verification.reduction import reduce_dump

    dumps = load_dumps(model, path, sample, inputs)
    for dump in dumps[:-1]:
        try:
            return reduce_dump(model, profile, dump)
        except InputError:
            continue
    return reduce_dump(model, profile, dumps[-1])


def _from_check(
    model: Model, profile: Profile, check: str, output: str, sample: int | None, inputs: str | None, seed: int
) -> Reduced:
    from tflq.errors import OptionError
    from tflq.verification.inputs import make_inputs
    from tflq.verification.reduction import reduce_check

    if "{model}" not in check:
        raise OptionError(f"--check {check!r}: names no {{model}}, where the candidate's path goes")
    made = make_inputs(model, inputs, 1, seed).samples
    if not 0 <= (sample or 0) < len(made):
        raise OptionError(f"sample {sample}: there are samples 0 to {len(made) - 1}")
    return reduce_check(model, profile, made[sample or 0], _command(check, output, model))


def _filled(command: str, output: str) -> str:
    return command.replace("{model}", quote(output + ".tflite")).replace("{inputs}", quote(output + ".npz"))


def _command(command: str, output: str, whole: Model) -> Check:
    """Runs the command on candidates, which are written where the result will be.

    A candidate on which it fails shows no difference; for the whole model it has to work.
    """
    from tflq.errors import OptionError

    def check(model: Model, sample: Sample) -> bool:
        _save(output, model, sample, ())
        done = subprocess.run(_filled(command, output), shell=True, capture_output=True, check=False)
        if model is whole and done.returncode not in (0, 1):
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise OptionError(f"--check {command!r}: exit code", expected="0 or 1", got=f"{done.returncode} ({said})")
        return done.returncode == 1

    return check


def _save(output: str, model: Model, sample: Sample, outputs: Sample) -> None:
    import hashlib

    from tflq.api.files import save
    from tflq.verification.golden import Golden, Observation
    from tflq.verification.results import InputFacts

    Path(output).parent.mkdir(parents=True, exist_ok=True)
    data = save(model, f"{output}.tflite")
    golden = Golden(
        (Observation(sample, outputs),), False, InputFacts("reduced", None, 1), {}, hashlib.sha256(data).hexdigest()
    )
    golden.save(f"{output}.npz")


def _write(output: str, found: Reduced) -> None:
    from tflq.cli.files import write_arrays

    _save(output, found.model, found.sample, found.got or ())
    write_arrays(f"{output}.expected.npz", {f"s0_out{i}": value for i, value in enumerate(found.expected)})
