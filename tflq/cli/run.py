"""`tflq run`: compute a model's outputs under a profile. No runtime takes part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli.exits import Exit
from tflq.cli.files import check_files, force_option, read_words, write_arrays, write_text
from tflq.cli.options import (
    html_option,
    input_options,
    json_option,
    limit_options,
    model_argument,
    preparation_options,
    profile_option,
)
from tflq.cli.output import say, say_document

if TYPE_CHECKING:
    from tflq.interpreter import Plan, Trace
    from tflq.ir import Model
    from tflq.kernels.exactness import Exactness
    from tflq.profiles import Profile
    from tflq.verification.inputs import Inputs


@click.command("run")
@model_argument
@click.option("--input", "given", multiple=True, metavar="NAME=FILE", help="An input: .npy, raw or image; repeatable.")
@input_options
@preparation_options
@click.option("--labels", metavar="FILE", type=click.Path(), help="Names of the classes, one a line; lists the top 5.")
@click.option(
    "-o", "--output", metavar="OUT.npz", type=click.Path(), help="Where to write the outputs; - for standard output."
)
@click.option("--all-tensors", is_flag=True, help="Write every tensor, as t<index>, beside the outputs.")
@html_option
@force_option
@profile_option
@limit_options
@json_option
def run_command(
    model: str,
    given: tuple[str, ...],
    inputs: str | None,
    samples: int,
    seed: int,
    mean: list[float] | None,
    std: list[float] | None,
    quantize_inputs: bool,
    labels: str | None,
    output: str | None,
    all_tensors: bool,
    html: str | None,
    force: bool,
    profile: str,
    as_json: bool,
) -> int:
    """Run MODEL and write its outputs, named as in the model, to an .npz file.

    With several samples the names are preceded by s<k>_. Of images, or with --labels, the 5 likeliest
    classes are listed.

    \b
    tflq run model.tflite
    tflq run model.tflite --input x=x.npy -o out.npz
    tflq run model.tflite --profile tflm --inputs samples.npz -o out.npz
    tflq run model.tflite --inputs cat.jpg --mean 127.5 --std 127.5 --labels labels.txt
    """
    from tflq.api.subject import subject
    from tflq.errors import OptionError
    from tflq.interpreter import make_plan, run
    from tflq.profiles import by_name
    from tflq.report.run.document import run_document
    from tflq.report.run.lines import run_lines, top_line
    from tflq.verification.inputs import from_files, make_inputs
    from tflq.verification.preparation import image_paths, preparation

    if given and inputs:
        raise OptionError("give either --input or --inputs")
    to_stdout = output == "-"
    check_files(
        [None if to_stdout else output, html],
        [model, inputs, *(word.rpartition("=")[2] for word in given)],
        force=force,
    )
    target, how = subject(model), preparation(mean, std, quantize_inputs)
    if given:
        made = from_files(target.model, dict(_pair(word, target.model) for word in given), how)
    else:
        made = make_inputs(target.model, inputs, samples, seed, how)
    words = [] if labels is None else read_words(labels)
    tops = labels is not None or any(image_paths(Path(part)) for part in _sources(inputs, given))
    lines = []
    chosen = by_name(profile)
    graph = target.model.subgraphs[0]
    page = ""
    arrays: dict[str, Any] = {}
    promises: dict[str, Exactness] = {}
    plans: dict[Any, Plan] = {}
    for k, sample in enumerate(made.samples):
        shapes = {tensor: value.shape for tensor, value in zip(graph.inputs, sample, strict=True)}
        drawn = html is not None and k == 0
        key = tuple(shapes.items())
        plan = plans[key] = plans.get(key) or make_plan(target.model, chosen, input_shapes=shapes)
        trace = run(plan, dict(zip(graph.inputs, sample, strict=True)), keep_all=all_tensors or drawn)
        if drawn:
            page = _page(model, chosen, made, sample, trace)
        prefix = f"s{k}_" if len(made.samples) > 1 else ""
        outputs = _named(target.model, trace, False)
        tensors = _named(target.model, trace, True) if all_tensors else outputs
        arrays |= {prefix + name: trace.values[tensor] for name, tensor in tensors.items()}
        promises |= {prefix + name: trace.promise(tensor) for name, tensor in tensors.items()}
        if tops:
            lines += [top_line(prefix + n, graph.tensors[t], trace.values[t], words) for n, t in outputs.items()]
    if html is not None:
        write_text(html, page)
    if output:
        write_arrays(output, arrays)
    if as_json and not to_stdout:
        say_document(run_document(target.facts, chosen.name, made.facts, output or "", arrays, promises))
    elif not to_stdout:
        found = run_lines(chosen.name, made.facts, arrays, promises, output or "")
        say([*(line for line in lines if line is not None), *found])
    return Exit.SAME


def _sources(inputs: str | None, given: Sequence[str]) -> list[str]:
    """The paths that inputs are read from."""
    return [path for path in (inputs, *(word.rpartition("=")[2] for word in given)) if path]


def _page(model: str, profile: Profile, made: Inputs, sample: Sequence[Any], trace: Trace) -> str:
    from tflq.report.graph.standard import view_of
    from tflq.report.run.page import run_page

    view = view_of(model, profile)
    graph = view.model.subgraphs[0]
    values = {**dict(zip(graph.inputs, sample, strict=True)), **trace.values}
    promises = {tensor: trace.promise(tensor) for tensor in graph.outputs}
    return run_page(view, profile.name, made.facts, values, promises)


def _pair(word: str, model: Model) -> tuple[str, str]:
    """NAME=FILE; a model of one input needs no name."""
    from tflq.errors import OptionError
    from tflq.verification.inputs import input_specs

    name, equals, path = word.rpartition("=")
    specs = input_specs(model)
    if equals:
        return name, path
    if len(specs) != 1:
        raise OptionError(f"--input {word}: the model has {len(specs)} inputs; write NAME=FILE")
    return specs[0].name or "", word


def _named(model: Model, trace: Trace, all_tensors: bool) -> dict[str, int]:
    """Tensors by the names of their arrays: the outputs' own, and indices in a form that is no other tensor's name."""
    graph = model.subgraphs[0]
    names = [graph.tensors[tensor].name or f"t{tensor}" for tensor in graph.outputs]
    counts = Counter(names)
    tensors: dict[str, int] = {}
    for i, (name, tensor) in enumerate(zip(names, graph.outputs, strict=True)):
        unique = name if counts[name] == 1 else f"{name}#{i}"
        while unique in tensors:
            unique += "#"
        tensors[unique] = tensor
    if all_tensors:
        meant = {spec.name: tensor for tensor, spec in enumerate(graph.tensors)} | tensors
        for tensor in sorted(trace.values):
            key = f"t{tensor}"
            while meant.get(key, tensor) != tensor:
                key = f"tensor_{tensor}" if key == f"t{tensor}" else f"{key}#"
            tensors[key] = tensor
    return tensors
