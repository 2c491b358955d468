"""`tflq run`: compute a model's outputs under a profile. No runtime takes part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, read_words, write_arrays, write_page
from tflq.face.cli.options import (
    html_option,
    json_option,
    limit_options,
    named_input_options,
    preparation_options,
    profile_option,
    signature_option,
)
from tflq.face.cli.output import say, say_document
from tflq.face.cli.run_steps import run_signatures
from tflq.face.cli.several import Found, each_model, filled, models_argument, only_of_one

if TYPE_CHECKING:
    from tflq.engine.interpreter import Plan, Trace
    from tflq.engine.kernels.exactness import Exactness
    from tflq.face.report.verbs.run import Ran
    from tflq.model.ir import Model


@click.command("run")
@models_argument
@named_input_options
@signature_option
@preparation_options
@click.option(
    "--labels",
    metavar="FILE",
    type=click.Path(),
    help="Names of the classes, one per line; the 5 likeliest are listed.",
)
@click.option(
    "-o", "--output", metavar="OUT.npz", type=click.Path(), help="Where to write the outputs; - for standard output."
)
@click.option("--all-tensors", is_flag=True, help="Also write every tensor, as t<index>.")
@html_option
@force_option
@profile_option
@limit_options
@json_option
def run_command(
    models: tuple[str, ...], output: str | None, html: str | None, force: bool, as_json: bool, **options: Any
) -> int:
    """Run MODEL and write its outputs, named as in the model, to an .npz file.

    With several samples, names begin with s<k>_. For images, or with --labels, the 5 likeliest classes are listed.
    Of a model with several signatures, every one runs, and its outputs are named as in decode/logits. Several models
    get a row each; --output then names a file for each by {stem} or {folder}.

    \b
    tflq run model.tflite
    tflq run model.tflite --inputs x=x.npy -o out.npz
    tflq run model.tflite --profile tflm --inputs samples.npz -o out.npz
    tflq run model.tflite --inputs cat.jpg --std 255 --labels labels.txt
    tflq run decoder.tflite --signature decode --inputs decode.npz
    tflq run models/*.tflite -o 'out/{stem}.npz'
    """
    from tflq.errors import OptionError
    from tflq.face.report.verbs.run import run_document, run_report

    files, inputs = options["files"], options["inputs"]
    to_stdout = output == "-"
    only_of_one(models, (("--html", html), ("--output -", to_stdout), ("--inputs NAME=FILE", files or None)))
    outputs = [None if output is None or to_stdout else filled(output, model) for model in models]
    if output is not None and len(set(outputs)) < len(models):
        raise OptionError("--output names one file for several models; write {stem} or {folder} in it", got=output)
    check_files([*outputs, html], [*models, inputs, *(word.rpartition("=")[2] for word in files)], force=force)
    if len(models) > 1:
        paths = dict(zip(models, outputs, strict=True))
        return each_model("run", models, _COLUMNS, lambda model: _row(model, paths[model], options), as_json=as_json)
    ran = _run(models[0], options, drawn=html is not None)
    written = outputs[0] or ""
    if html is not None:
        write_page(html, run_report(ran, written), models[0], options["profile"], options["signature"])
    if output:
        write_arrays(output if to_stdout else written, ran.arrays)
    if as_json and not to_stdout:
        say_document(run_document(ran, written))
    elif not to_stdout:
        say(run_report(ran, written))
    return Exit.SAME


#: Columns of the summary of several models.
_COLUMNS = (("samples", ">"), ("outputs", ">"), ("promise", "<"), ("written to", "<"))


def _row(model: str, output: str | None, options: Mapping[str, Any]) -> Found:
    from tflq.face.report.verbs.run import run_document

    ran = _run(model, options, drawn=False)
    if output:
        write_arrays(output, ran.arrays)
    samples = ran.inputs.samples
    words = ", ".join(dict.fromkeys(promise.word for promise in ran.promises.values()))
    cells = (str(samples), str(len(ran.arrays) // max(samples, 1)), words, output or "")
    return "done", cells, run_document(ran, output or ""), Exit.SAME


def _run(model: str, options: Mapping[str, Any], *, drawn: bool) -> Ran:
    from tflq.comparison.verification.inputs import from_files, make_inputs
    from tflq.comparison.verification.preparation import image_paths, preparation
    from tflq.engine.api.subject import subject
    from tflq.engine.interpreter import make_plan, run
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.run import Ran, Top, top
    from tflq.model.ir import signed, view

    files, inputs, labels = options["files"], options["inputs"], options["labels"]
    all_tensors = options["all_tensors"]
    target, how = (
        subject(model),
        preparation(options["mean"], options["std"], options["quantize_inputs"], options["bgr"]),
    )
    words = [] if labels is None else read_words(labels)
    parts = signed(target.model, options["signature"])
    if parts[0].name:
        return run_signatures(target, parts, options, words=words, drawn=drawn)
    if files:
        fed = from_files(target.model, dict(_pair(word, target.model) for word in files), how)
    else:
        fed = make_inputs(target.model, inputs, options["samples"], options["seed"], how)
    tops = labels is not None or any(image_paths(Path(part)) for part in _sources(inputs, files))
    texts: list[Top | None] = []
    chosen = by_name(options["profile"])
    graph = view(target.model)
    values: dict[int, Any] = {}
    promised: dict[int, Exactness] = {}
    arrays: dict[str, Any] = {}
    promises: dict[str, Exactness] = {}
    plans: dict[Any, Plan] = {}
    for k, sample in enumerate(fed.samples):
        shapes = {tensor: value.shape for tensor, value in zip(graph.inputs, sample, strict=True)}
        on_page = drawn and k == 0
        key = tuple(shapes.items())
        plan = plans[key] = plans.get(key) or make_plan(target.model, chosen, input_shapes=shapes)
        trace = run(plan, dict(zip(graph.inputs, sample, strict=True)), keep_all=all_tensors or on_page)
        if on_page:
            values = {**dict(zip(graph.inputs, sample, strict=True)), **trace.values}
            promised = {tensor: trace.promise(tensor) for tensor in graph.outputs}
        prefix = f"s{k}_" if len(fed.samples) > 1 else ""
        outputs = _named(target.model, trace, False)
        tensors = _named(target.model, trace, True) if all_tensors else outputs
        arrays |= {prefix + name: trace.values[tensor] for name, tensor in tensors.items()}
        promises |= {prefix + name: trace.promise(tensor) for name, tensor in tensors.items()}
        if tops:
            texts += [top(prefix + n, graph.tensors[t], trace.values[t], words) for n, t in outputs.items()]
    shown = [one for one in texts if one is not None]
    return Ran(target.facts, chosen.name, fed.facts, arrays, promises, shown, values, promised)


def _sources(inputs: str | None, files: Sequence[str]) -> list[str]:
    """Return the paths that inputs are read from."""
    return [path for path in (inputs, *(word.rpartition("=")[2] for word in files)) if path]


def _pair(word: str, model: Model) -> tuple[str, str]:
    """Return NAME=FILE as a pair; a model of one input needs no name."""
    from tflq.comparison.verification.inputs import input_specs
    from tflq.errors import OptionError

    name, equals, path = word.rpartition("=")
    specs = input_specs(model)
    if equals:
        return name, path
    if len(specs) != 1:
        raise OptionError(f"--inputs {word}: the model has {len(specs)} inputs; write NAME=FILE")
    return specs[0].name or "", word


def _named(model: Model, trace: Trace, all_tensors: bool) -> dict[str, int]:
    """Return tensors by the names of their arrays: the outputs' own, or indices in a form without collisions."""
    from tflq.model.ir import view

    graph = view(model)
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
