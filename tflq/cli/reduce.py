"""`tflq reduce`: the smallest model that still shows a difference."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from tflq.cli.exits import Exit
from tflq.cli.options import input_options, model_argument, profile_option
from tflq.cli.output import say

if TYPE_CHECKING:
    from tflq.verification.reduction import Check, Reduced, Sample


@click.command("reduce")
@model_argument
@click.option("--dump", metavar="PATH", type=click.Path(), help="Tensors that a device produced for MODEL.")
@click.option("--check", metavar="CMD", help="A command with {model} and {inputs}; exit code 1 means: still differs.")
@click.option(
    "-o", "--output", required=True, metavar="NAME", type=click.Path(), help="Writes NAME.tflite, NAME.npz ..."
)
@input_options
@profile_option
def reduce_command(
    model: str, dump: str | None, check: str | None, output: str, inputs: str | None, samples: int, seed: int,
    profile: str,
) -> int:  # fmt: skip
    """Shrink MODEL to the operators, then the element, then the values that still show a difference.

    Writes NAME.tflite; NAME.npz, a golden file with the inputs and, with --dump, the device's outputs; and
    NAME.expected.npz, with the profile's outputs.

    With --dump each operator is fed the dump's own inputs, and nothing is run but the profile.
    """
    from tflq.errors import OptionError
    from tflq.profiles import by_name
    from tflq.verification.inputs import make_inputs
    from tflq.verification.reduction import reduce_check, reduce_dump
    from tflq.verification.source import subject

    if (dump is None) == (check is None) or (dump and inputs) or samples != 1:
        raise OptionError("give either --dump or --check; --inputs goes with --check, and one sample is reduced")
    target = subject(model)
    if dump is not None:
        from tflq.verification.dump import load_dump

        found = reduce_dump(target.model, by_name(profile), load_dump(target.model, dump).tensors)
        line = f"tflq verify {quote(output + '.tflite')} --golden {quote(output + '.npz')}"
    else:
        sample = make_inputs(target.model, inputs, 1, seed).samples[0]
        found = reduce_check(target.model, by_name(profile), sample, _command(check or "", output))
        line = _filled(check or "", output)
    _write(output, found)
    from tflq.report.surgery import extract_lines

    say(extract_lines(found.model, found.operators, f"{output}.tflite", line))
    return Exit.SAME


def _filled(command: str, output: str) -> str:
    return command.replace("{model}", quote(output + ".tflite")).replace("{inputs}", quote(output + ".npz"))


def _command(command: str, output: str) -> Check:
    """Runs the command on candidates, which are written where the result will be."""

    def check(model: object, sample: Sample) -> bool:
        _save(output, model, sample, ())
        return subprocess.run(_filled(command, output), shell=True, capture_output=True, check=False).returncode == 1

    return check


def _save(output: str, model: object, sample: Sample, outputs: Sample) -> None:
    import hashlib

    from tflq.api.files import save
    from tflq.ir import Model
    from tflq.verification.golden import Golden, Observation
    from tflq.verification.results import InputFacts

    assert isinstance(model, Model)
    data = save(model, f"{output}.tflite")
    golden = Golden(
        (Observation(sample, outputs),), False, InputFacts("reduced", None, 1), {}, hashlib.sha256(data).hexdigest()
    )
    golden.save(f"{output}.npz")


def _write(output: str, found: Reduced) -> None:
    from tflq.cli.files import write_arrays

    Path(output).parent.mkdir(parents=True, exist_ok=True)
    _save(output, found.model, found.sample, found.got or ())
    write_arrays(f"{output}.expected.npz", {f"s0_out{i}": value for i, value in enumerate(found.expected)})
