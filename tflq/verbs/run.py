"""`run`: a model's outputs under a profile, with their promises. No runtime takes part."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tflq.comparison.inputs.prepare import InputPreparation, Numbers, image_paths, preparation
from tflq.comparison.inputs.read import FedSample, Feed, Feeds, from_files, input_specs, make_feeds, make_inputs
from tflq.comparison.results import InputFacts
from tflq.engine.api.files import ModelFacts, Source, Subject, subject
from tflq.engine.api.many import run_each
from tflq.engine.api.signature import Stepper
from tflq.engine.interpreter import Trace
from tflq.engine.kernels.kernel import Exactness
from tflq.engine.profiles import Profile, by_name
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import Model, Signed, TensorSpec, signed, view
from tflq.texts import Tabular, display_by, shown
from tflq.typing import Array

#: Number of classes that are listed.
_TOP = 5


@dataclass(frozen=True, slots=True)
class Top:
    """The likeliest class of an output with its value, and a line about the likeliest few."""

    label: str
    value: str
    text: str


@display_by("run:run_card", "run_document", "arrays")
@dataclass(frozen=True, slots=True, eq=False)
class Ran(Tabular):
    """One model's outputs by name, with their promises and the likeliest classes of each classifier.

    `values` are all tensors of the first sample by index, and `promised` the promises of its outputs, if they were kept
    for a page.
    """

    facts: ModelFacts
    profile: str
    inputs: InputFacts
    arrays: Mapping[str, Array]
    promises: Mapping[str, Exactness]
    tops: Sequence[Top] = ()
    values: Mapping[int, Array] = field(default_factory=dict)
    promised: Mapping[int, Exactness] = field(default_factory=dict)


def run(
    model: Source | Model,
    inputs: Feed = None,
    profile: str | Profile = "litert-ref",
    *,
    files: Mapping[str, str] | Sequence[str] = (),
    samples: int = 1,
    seed: int = 0,
    signature: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    quantize_inputs: bool = False,
    bgr: bool = False,
    labels: Sequence[str] | None = None,
    all_tensors: bool = False,
    keep_values: bool = False,
) -> Ran:
    """Run a model under a profile on every sample, and every signature if it has several.

    Arrays are named as outputs are in the model: s<k>_NAME with several samples, SIGNATURE/NAME with signatures.

    Args:
        model: A path, the bytes of a file, or a Model.
        inputs: The source of inputs, as for `verify`. None: generated from `seed`.
        profile: The arithmetic.
        files: A file for each input, by name or as "NAME=FILE"; SIGNATURE/NAME for models with signatures.
        samples: The number of samples to generate.
        seed: The seed of generated inputs.
        signature: The only signature to run. None: every one.
        mean: With `std`: inputs are stored numbers, (number - mean) / std the real values. One, or one per channel.
        std: See `mean`.
        quantize_inputs: Quantize float values that are given for integer inputs.
        bgr: Channels of images are in the order blue, green, red.
        labels: Names of classes: `tops` then lists the likeliest of every classifier, as it does for images.
        all_tensors: Also return every tensor, as t<index>.
        keep_values: Also keep all tensors of the first sample, by index: `values`.

    Raises:
        InputError: The inputs do not fit.
        UnknownNameError: There is no profile or signature of that name.
        UnsupportedError, ModelError, LimitError: See Interpreter.allocate_tensors and invoke.

    Example:
        >>> ran = tflq.run("golden/models/digits_mobilenet_int8.tflite")
        >>> [value.shape for value in ran.arrays.values()]
        [(1, 10)]
    """
    how = preparation(mean, std, quantize_inputs, bgr)
    target, chosen = subject(model), by_name(profile)
    words = [f"{name}={path}" for name, path in files.items()] if isinstance(files, Mapping) else list(files)
    parts = signed(target.model, signature)
    wanted = _Wanted(list(labels or ()), labels is not None, all_tensors, keep_values)
    if parts[0].name:
        feeds = _feeds(parts, words, inputs, samples, seed, how)
        return _run_signatures(target, parts, chosen, feeds, wanted)
    if words:
        pairs = dict(_pair(word, target.model) for word in words)
        fed = from_files(target.model, pairs, how)
    else:
        fed = make_inputs(target.model, inputs, samples, seed, how)  # type: ignore[arg-type]
    if any(image_paths(Path(path)) for path in _sources(inputs, words)):
        wanted = replace(wanted, tops=True)
    return _run_samples(target, chosen, fed.samples, fed.facts, wanted)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The results to keep besides the outputs."""

    labels: Sequence[str]
    tops: bool
    all_tensors: bool
    values: bool


def _run_samples(
    target: Subject, chosen: Profile, samples: Sequence[Sequence[Array]], facts: InputFacts, wanted: _Wanted
) -> Ran:
    """Run samples of a model without signatures, several at a time if they are large."""
    graph = view(target.model)
    arrays: dict[str, Array] = {}
    promises: dict[str, Exactness] = {}
    texts: list[Top | None] = []
    values: dict[int, Array] = {}
    promised: dict[int, Exactness] = {}
    fed = (dict(zip(graph.inputs, sample, strict=True)) for sample in samples)
    keeps_all = lambda k: wanted.all_tensors or (wanted.values and k == 0)  # noqa: E731
    for k, trace in enumerate(run_each(target.model, chosen, fed, keeps_all)):
        if wanted.values and k == 0:
            values = dict(trace.values)
            promised = {tensor: trace.promise(tensor) for tensor in graph.outputs}
        prefix = f"s{k}_" if len(samples) > 1 else ""
        outputs = _name(target.model, trace, False)
        tensors = _name(target.model, trace, True) if wanted.all_tensors else outputs
        arrays |= {prefix + name: trace.values[tensor] for name, tensor in tensors.items()}
        promises |= {prefix + name: trace.promise(tensor) for name, tensor in tensors.items()}
        if wanted.tops:
            texts += [top(prefix + n, graph.tensors[t], trace.values[t], wanted.labels) for n, t in outputs.items()]
    tops = [one for one in texts if one is not None]
    return Ran(target.facts, chosen.name, facts, arrays, promises, tops, values, promised)


def _run_signatures(target: Subject, parts: Sequence[Signed], chosen: Profile, feeds: Feeds, wanted: _Wanted) -> Ran:
    """Run steps of the signatures; arrays are named s<step>_SIGNATURE/OUTPUT, SIGNATURE/OUTPUT if there is one step."""
    arrays: dict[str, Array] = {}
    promises: dict[str, Exactness] = {}
    texts: list[Top | None] = []
    values: dict[int, Array] = {}
    promised: dict[int, Exactness] = {}
    steps = 0
    for sequence in feeds.sequences():
        stepper = Stepper(target.model, chosen)
        for fed in sequence:
            graph = target.model.subgraphs[fed.part.root.subgraph]
            is_kept = wanted.values and not values and fed.part is parts[0]
            result = stepper.run(fed.step(), keep_all=wanted.all_tensors or is_kept)
            named = {name: (value, result.promises[name]) for name, value in result.outputs.items()}
            if wanted.all_tensors:
                named |= {f"t{t}": (value, result.trace.promise(t)) for t, value in sorted(result.tensors.items())}
            prefix = f"s{steps}_" * (len(feeds.steps) > 1) + f"{fed.part.name}/"
            arrays |= {prefix + name: value for name, (value, _) in named.items()}
            promises |= {prefix + name: promise for name, (_, promise) in named.items()}
            if wanted.tops:
                pairs = result.named.items()
                texts += [top(prefix + n, graph.tensors[t], result.outputs[n], wanted.labels) for n, t in pairs]
            if is_kept:
                values = dict(result.tensors)
                promised = {t: result.trace.promise(t) for t in graph.outputs}
            steps += 1
    tops = [one for one in texts if one is not None]
    return Ran(target.facts, chosen.name, feeds.facts, arrays, promises, tops, values, promised)


def top(name: str, spec: TensorSpec, value: Array, labels: Sequence[str]) -> Top | None:
    """Return the classes with the largest values of an output [1, N], in real units; None for other outputs."""
    if value.size < 2 or value.size != value.shape[-1] or value.dtype.kind not in "iuf":
        return None
    real, q = value.ravel().astype(np.float64), spec.quantization
    if q is not None and len(q.scale) == 1 and value.dtype.kind != "f":
        real = (real - int(q.zero_point[0] if len(q.zero_point) else 0)) * float(q.scale[0])
    best = np.argsort(-real, kind="stable")[:_TOP]
    names = [labels[k] if k < len(labels) else str(k) for k in map(int, best)]
    texts = (f"{label} {real[k]:.4g}" for label, k in zip(names, map(int, best), strict=True))
    return Top(names[0], f"{real[best[0]]:.4g}", f"top {len(best)} of {shown(name)}: {', '.join(texts)}")


def _feeds(
    parts: Sequence[Signed], words: Sequence[str], inputs: Feed, samples: int, seed: int, how: InputPreparation
) -> Feeds:
    """Return the steps: generated, from a file, or from a file for each input."""
    if not words:
        return make_feeds(parts, inputs, samples, seed, how)
    steps, sources = [], []
    for name, files in _by_signature(parts, words).items():
        part = next(part for part in parts if part.name == name)
        made = from_files(part.model, files, how)
        steps += [FedSample(part, sample) for sample in made.samples]
        sources.append(made.facts)
    facts = replace(sources[0], source=", ".join(one.source for one in sources), samples=len(steps))
    return Feeds(facts, tuple(steps))


def _by_signature(parts: Sequence[Signed], words: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return files by input and signature, from words SIGNATURE/INPUT=FILE; one signature needs no name."""
    names = [part.name for part in parts]
    found: dict[str, dict[str, str]] = {}
    for word in words:
        name, equals, path = word.rpartition("=")
        signature, slash, rest = name.partition("/")
        if not equals:
            raise OptionError(f"--inputs {word}: write {names[0]}/NAME=FILE")
        if len(parts) == 1 and signature != names[0]:
            signature, rest, slash = names[0], name, "/"
        if not slash:
            raise OptionError(f"--inputs {word}: name the signature, {names[0]}/{name}=FILE, or give --signature")
        if signature not in names:
            raise UnknownNameError("signature", signature, names)
        found.setdefault(signature, {})[rest] = path
    return found


def _sources(inputs: Feed, words: Sequence[str]) -> Iterator[str]:
    """Yield the paths that inputs are read from."""
    if isinstance(inputs, (str, os.PathLike)):
        yield os.fspath(inputs)
    yield from (word.rpartition("=")[2] for word in words)


def _pair(word: str, model: Model) -> tuple[str, str]:
    """Return NAME=FILE as a pair; a model of one input needs no name."""
    name, equals, path = word.rpartition("=")
    specs = input_specs(model)
    if equals:
        return name, path
    if len(specs) != 1:
        raise OptionError(f"--inputs {word}: the model has {len(specs)} inputs; write NAME=FILE")
    return specs[0].name or "", word


def _name(model: Model, trace: Trace, all_tensors: bool) -> dict[str, int]:
    """Return tensors by the names of their arrays: the outputs' own, or indices in a form without collisions."""
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
