"""Inputs of a model: generated, from files, or from the caller; always checked against the model's inputs.

Inputs of a model, step by step: its signatures in turn, with state that lives from step to step.

A model has state if a subgraph holds variables, or if an output has the name of an input, such as a cache of keys and
values. Generated inputs then are sequences of steps in one interpreter: every signature once, in the file's order, and
the last one again. Inputs that are state begin as zeros and take the output of that name afterwards.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from tflq.comparison.inputs.generate import GENERATORS, bind_of, generate
from tflq.comparison.inputs.prepare import PLAIN, InputPreparation, image, image_paths
from tflq.comparison.results import InputFacts
from tflq.engine.interpreter.evaluation import fits, open_shape
from tflq.engine.runtimes import Invocation, Sample
from tflq.engine.runtimes.runtime import unpack
from tflq.errors import FileAccessError, InputError, UnknownNameError, UnsupportedError, memory_named
from tflq.model.ir import CARRIER, Model, Signed, TensorSpec, TensorType, input_names, output_names, view
from tflq.model.ir.signatures import reach
from tflq.model.storage.arrays import load_array, opened
from tflq.model.storage.kinds import read_bytes
from tflq.typing import Array

T = TypeVar("T")
#: One sample: arrays by input name, or in input order.
SampleSource: TypeAlias = "Mapping[str, ArrayLike] | Sequence[ArrayLike]"
#: A generator's name, a path, the array of the only input, one sample, a list of samples (dicts, lists or tuples), or
#: None for the random generator. Arrays may have a row for each sample, as in files.
InputSource: TypeAlias = "str | os.PathLike[str] | Array | SampleSource | Sequence[SampleSource] | None"


@dataclass(frozen=True, slots=True, eq=False)
class InputSamples:
    """Samples in the order of the graph's inputs, and their source."""

    facts: InputFacts
    samples: tuple[Sample, ...]


def make_inputs(
    model: Model, source: InputSource = None, samples: int = 1, seed: int = 0, how: InputPreparation = PLAIN
) -> InputSamples:
    """Return inputs for the first subgraph of `model`; `how` prepares values that do not come from a generator.

    A path is an `.npz` with entries named after the inputs, each of one sample or with a row for each, or
    `s<k>_in<i>`; an image; or a folder of images. For a model with one input, it may also be an `.npz` with one array
    or one named `x`, an `.npy` or a file of raw little-endian elements, each with one or more samples. Rows are
    samples, even if the batch is open. A `.log` or `.txt` is what a board printed.
    """
    if samples < 1:
        raise InputError("number of samples", expected="at least 1", got=samples)
    if seed < 0:
        raise InputError("seed", expected="at least 0", got=seed)
    with memory_named("the inputs"):
        return _made(model, source, samples, seed, how)


def _made(model: Model, source: InputSource, samples: int, seed: int, how: InputPreparation) -> InputSamples:
    if source is None or (isinstance(source, str) and source in GENERATORS):
        name = source or "random"
        generated = generate(model, GENERATORS[name], samples, seed)
        return InputSamples(InputFacts(name, seed, samples), generated)
    if isinstance(source, (str, os.PathLike)):
        read = _from_file(model, Path(source), how)
        return InputSamples(InputFacts(os.fspath(source), None, len(read)), read)
    if isinstance(source, np.ndarray):
        source = {"x": source} if len(input_specs(model)) == 1 else list(source)
    sequence = source if _is_many(source) else (cast(SampleSource, source),)
    read = tuple(
        sample
        for one in sequence
        for sample in (_rows(model, one, how) if isinstance(one, Mapping) else (_by_position(model, one, how),))
    )
    return InputSamples(InputFacts("arrays", None, len(read)), read)


def _is_many(source: SampleSource | Sequence[SampleSource]) -> TypeGuard[Sequence[SampleSource]]:
    """Return whether this is a list of samples: its elements are then dicts, lists or tuples, never arrays."""
    if isinstance(source, Mapping) or len(source) == 0:  # an empty list is one sample for a model without inputs
        return False
    return all(isinstance(one, (Mapping, list, tuple)) for one in source)


def from_files(
    model: Model, paths: Mapping[str, str | os.PathLike[str]], how: InputPreparation = PLAIN
) -> InputSamples:
    """Return one sample, each input by name from an `.npy` file, a raw file or an image."""
    names = input_names(model)
    specs = {spec.name or "": spec for spec in input_specs(model)} | dict(zip(names, input_specs(model), strict=True))
    for name in paths:
        if name not in specs:
            raise UnknownNameError("input", name, names)
    arrays = {}
    for name, path in paths.items():
        samples = _samples(specs[name], Path(path), how)
        if len(samples) != 1:
            raise InputError("number of samples", name=os.fspath(path), expected=1, got=len(samples))
        arrays[name] = samples[0]
    source = ", ".join(f"{name}={os.fspath(path)}" for name, path in paths.items())
    return InputSamples(InputFacts(source, None, 1), (_by_name(model, arrays, PLAIN),))


def input_specs(model: Model) -> tuple[TensorSpec, ...]:
    """Return the graph inputs of the first subgraph, in order."""
    graph = view(model)
    return tuple(graph.tensors[tensor] for tensor in graph.inputs)


def _by_name(model: Model, arrays: Mapping[str, ArrayLike], how: InputPreparation) -> Sample:
    """Return a sample from arrays by the signature's names of inputs, or by their tensors' names."""
    specs = input_specs(model)
    return tuple(how.checked(spec, value) for spec, value in zip(specs, _in_order(model, arrays), strict=True))


def _in_order(model: Model, arrays: Mapping[str, T]) -> list[T]:
    """Return arrays that are given by the names of inputs, in the order of the inputs."""
    specs, names = input_specs(model), input_names(model)
    known = {**{spec.name: i for i, spec in enumerate(specs) if spec.name}, **{n: i for i, n in enumerate(names)}}
    given: dict[int, T] = {}
    for name in arrays:
        if name not in known:
            raise UnknownNameError("input", name, names)
        if known[name] in given:
            raise InputError("is given twice, by the signature's name and by the tensor's", name=names[known[name]])
        given[known[name]] = arrays[name]
    missing = [name for i, name in enumerate(names) if i not in given]
    if missing:
        raise InputError("no value is given", name=missing[0])
    return [given[i] for i in range(len(specs))]


def _by_position(model: Model, arrays: Sequence[ArrayLike], how: InputPreparation) -> Sample:
    specs = input_specs(model)
    if len(arrays) != len(specs):
        raise InputError("number of inputs", expected=len(specs), got=len(arrays))
    return tuple(how.checked(spec, value) for spec, value in zip(specs, arrays, strict=True))


def _from_file(model: Model, path: Path, how: InputPreparation) -> tuple[Sample, ...]:
    specs = input_specs(model)
    images = image_paths(path)
    if images:
        if len(specs) != 1:
            raise InputError("images are for a model of one input", name=str(path), expected=1, got=len(specs))
        return tuple((how.checked(specs[0], image(one, specs[0], how)),) for one in images)
    if not path.is_file():
        if path.is_dir():
            raise FileAccessError(path, "is a folder without images")
        if path.exists():
            raise FileAccessError(path, "is not a file")
        raise UnknownNameError("file or input generator", str(path), tuple(GENERATORS))
    if path.suffix == ".npz":
        return _from_npz(model, path, how)
    if path.suffix in (".log", ".txt"):
        return _from_log(model, path)
    if len(specs) != 1:
        raise InputError("needs an .npz file, one entry an input", name=str(path), expected="1 input", got=len(specs))
    return tuple((sample,) for sample in _samples(specs[0], path, how))


def _from_log(model: Model, path: Path) -> tuple[Sample, ...]:
    """Return the inputs in the text that a board printed, one sample for each time that it printed them."""
    from tflq.comparison.evidence.dumps import load_dumps

    inputs = view(model).inputs
    samples = tuple(
        tuple(d.tensors[t] for t in inputs) for d in load_dumps(model, path) if all(t in d.tensors for t in inputs)
    )
    if not samples:
        raise InputError("holds no inputs of the model", name=str(path), expected=" and ".join(input_names(model)))
    return samples


def _samples(spec: TensorSpec, path: Path, how: InputPreparation) -> list[Array]:
    """Return the samples of one input in an `.npy` or raw file, or an image."""
    if image_paths(path) == [path]:
        return [how.checked(spec, image(path, spec, how))]
    return _split(spec, load_array(path) if path.suffix == ".npy" else _raw(path, spec), how)


def _from_npz(model: Model, path: Path, how: InputPreparation) -> tuple[Sample, ...]:
    specs = input_specs(model)
    with opened(path) as archive:
        count = len(numbered(archive))
        if count:
            return tuple(_number_sample(specs, archive, k, path, how) for k in range(count))
        return _rows(model, archive, how, str(path))


def _rows(
    model: Model, arrays: Mapping[str, ArrayLike], how: InputPreparation, path: str | None = None
) -> tuple[Sample, ...]:
    """Return the samples in arrays by name, each of one sample or with a row for each.

    The only array of a file may have any name; the caller's arrays have those of inputs, or `x`.
    """
    specs = input_specs(model)
    if not specs and not arrays:
        return ((),)
    name = only_array(tuple(arrays), (*input_names(model), *(spec.name for spec in specs)))
    is_only = len(specs) == 1 and (name == "x" or (name is not None and path is not None))
    given = [arrays[name or ""]] if is_only else _in_order(model, arrays)
    rows = [_split(spec, np.asarray(value), how) for spec, value in zip(specs, given, strict=True)]
    if len(set(map(len, rows))) > 1:
        raise InputError("has rows for other numbers of samples", name=path or "inputs", got=list(map(len, rows)))
    return tuple(zip(*rows, strict=True))


def only_array(present: Sequence[str], names: Sequence[str | None]) -> str | None:
    """Return the array for a model's only input: one of its names, else the only array, or `x`; None if none is."""
    if len(present) == 1:
        return present[0]
    return "x" if "x" in present and not set(present).intersection(names) else None


def numbered(names: Iterable[str]) -> list[int]:
    """Return the sample numbers k = 0, 1, ... with entries `s<k>_...`; a gap is refused."""
    present = {name[1:].partition("_")[0] for name in names if name.startswith("s") and "_" in name}
    numbers: list[int] = []
    while str(len(numbers)) in present:
        numbers.append(len(numbers))
    beyond = sorted(name for name in present if name.isdecimal() and name not in set(map(str, numbers)))
    if numbers and beyond:
        raise InputError(f"holds entries of sample {beyond[0]:.20}, but none of sample {len(numbers)}", name="samples")
    return numbers


def _number_sample(
    specs: Sequence[TensorSpec], entries: Mapping[str, Array], k: int, path: Path, how: InputPreparation
) -> Sample:
    values = []
    for i, spec in enumerate(specs):
        value = unpack(f"s{k}_in{i}", entries)
        if value is None:
            raise InputError(f"has no entry s{k}_in{i}", name=str(path))
        values.append(how.checked(spec, value))
    return tuple(values)


#: Endings of files that hold text, of any size.
_TEXT = frozenset((".csv", ".json", ".tsv", ".txt", ".yaml", ".yml"))


def _raw(path: Path, spec: TensorSpec) -> Array:
    """Return the raw elements of one input, for one or more consecutive samples."""
    if not isinstance(spec.type, TensorType) or CARRIER[spec.type] == np.dtype(object):
        raise UnsupportedError("raw input file", reason=f"input {spec.name!r} has no plain elements")
    if path.suffix.lower() in _TEXT:
        raise InputError("kind of file", name=str(path), expected=".npz, .npy, an image or raw bytes", got=path.suffix)
    carrier = CARRIER[spec.type]
    data = read_bytes(path)
    size = math.prod(spec.shape) * carrier.itemsize
    if not size or not data or len(data) % size:
        raise InputError("size of the raw file", name=str(path), expected=f"a multiple of {size} bytes", got=len(data))
    return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier).reshape(-1, *spec.shape)


def _fits(spec: TensorSpec, shape: tuple[int, ...]) -> bool:
    declared = open_shape(spec)
    return declared is None or fits(declared, shape)


def _split(spec: TensorSpec, value: Array, how: InputPreparation) -> list[Array]:
    """Return one sample, or several stacked along a new first axis or along a first axis of size 1, open or not."""
    if len(value.shape) > 1 and value.shape[0] > 1 and spec.shape[:1] == (1,) and _fits(spec, (1, *value.shape[1:])):
        return [how.checked(spec, part[None]) for part in value]
    if _fits(spec, value.shape):
        return [how.checked(spec, value)]
    if value.ndim and len(value) and _fits(spec, value.shape[1:]):
        return [how.checked(spec, part) for part in value]
    return [how.checked(spec, value)]


#: Inputs of one signature by its name, or a list of such mappings, one for each step; or inputs of any other form.
Feed: TypeAlias = "InputSource | Mapping[str, InputSource] | Sequence[Mapping[str, InputSource]]"
_HANDLES = frozenset({"VAR_HANDLE", "CALL_ONCE"})


@dataclass(frozen=True, slots=True, eq=False)
class FedSample:
    """The inputs of one step, in the order of the signature's graph.

    Those at the positions `carried` take the latest output of the same name instead. If it `continues`, it runs in the
    interpreter of the step before it.
    """

    part: Signed
    sample: Sample
    carried: tuple[int, ...] = ()
    continues: bool = False

    def step(self) -> Invocation:
        """Return the step as runtimes take it."""
        if self.part.signature is None:
            return Invocation(None, {str(i): value for i, value in enumerate(self.sample)})
        names = input_names(self.part.model)
        kept = {
            name: value for i, (name, value) in enumerate(zip(names, self.sample, strict=True)) if i not in self.carried
        }
        return Invocation(self.part.signature, kept, tuple(names[i] for i in self.carried))


@dataclass(frozen=True, slots=True, eq=False)
class Feeds:
    """Steps in order, and their source."""

    facts: InputFacts
    steps: tuple[FedSample, ...]

    def sequences(self) -> list[list[FedSample]]:
        """Return the steps by the interpreter that runs them."""
        found: list[list[FedSample]] = []
        for fed in self.steps:
            if fed.continues and found:
                found[-1].append(fed)
            else:
                found.append([fed])
        return found


def make_feeds(
    parts: Sequence[Signed], source: Feed = None, samples: int = 1, seed: int = 0, how: InputPreparation = PLAIN
) -> Feeds:
    """Return the steps for some signatures of a model, from a generator, a file or the caller's arrays.

    Files and arrays for several signatures name them: `{"decode": {...}}`, or entries `decode/tokens` of an `.npz`.

    Raises:
        InputError: The inputs do not fit, or do not name the signatures that they are for.
    """
    generated = source is None or (isinstance(source, str) and source in GENERATORS)
    if generated and (len(parts) > 1 or has_state(parts)):
        name = cast("str | None", source) or "random"
        every = [make_inputs(part.model, name, samples * _times(parts, part), seed, how).samples for part in parts]
        return _number(InputFacts(name, seed, 0), list(_sequences(parts, every, samples)))
    if len(parts) == 1:
        made = make_inputs(parts[0].model, _own(parts[0], source), samples, seed, how)
        return Feeds(made.facts, tuple(FedSample(parts[0], sample) for sample in made.samples))
    if isinstance(source, (str, os.PathLike)):
        return _number(InputFacts(os.fspath(source), None, 0), list(_feeding_from_file(parts, Path(source), how)))
    steps = source if isinstance(source, (list, tuple)) else (source,)
    fed = [one for step in steps for one in _by_signature(parts, step, how)]
    return _number(InputFacts("arrays", None, 0), fed)


def has_state(parts: Sequence[Signed]) -> bool:
    """Return whether results of a step may depend on the steps before it."""
    return any(has_variables(part.model) or carried_names(part.model) for part in parts)


def carried_names(model: Model) -> tuple[str, ...]:
    """Return the inputs of the first subgraph that have the name, type and shape of an output: state."""
    graph = view(model)
    if not model.signature_defs:
        return ()  # names of tensors mean nothing
    outputs = dict(zip(output_names(model), graph.outputs, strict=True))
    pairs = ((n, graph.tensors[t], outputs.get(n)) for n, t in zip(input_names(model), graph.inputs, strict=True))
    return tuple(n for n, spec, t in pairs if t is not None and _alike(spec, graph.tensors[t]))


def _alike(one: TensorSpec, other: TensorSpec) -> bool:
    return one.type == other.type and one.shape == other.shape


def has_variables(model: Model) -> bool:
    """Return whether the first subgraph, or one that it runs, has variable tensors or handles."""
    graphs = [view(model, k) for k in reach(model, (0,))]
    return any(t.is_variable for g in graphs for t in g.tensors) or any(
        op.builtin in _HANDLES for g in graphs for op in g.ops
    )


def _times(parts: Sequence[Signed], part: Signed) -> int:
    """Return how often a sequence runs a signature."""
    return 1 + (has_state(parts) and part is parts[-1])


def _sequences(parts: Sequence[Signed], every: Sequence[Sequence[Sample]], samples: int) -> Iterator[FedSample]:
    state = has_state(parts)
    for k in range(samples):
        known: dict[str, TensorSpec] = {}
        position = 0
        order = [*range(len(parts)), *([len(parts) - 1] if state else [])]
        for step, p in enumerate(order):
            part, again = parts[p], int(step >= len(parts))
            fed = _with_state(part, every[p][k * _times(parts, part) + again], known)
            fed, position = _moved(fed, position)
            graph = view(part.model)
            known |= {n: graph.tensors[t] for n, t in zip(output_names(part.model), graph.outputs, strict=True)}
            yield replace(fed, continues=state and step > 0)


def _with_state(part: Signed, sample: Sample, known: Mapping[str, TensorSpec]) -> FedSample:
    """Return a step whose state is that of the steps before it, or zeros."""
    names = input_names(part.model)
    state = [i for i, name in enumerate(names) if name in carried_names(part.model)]
    values = tuple(np.zeros_like(value) if i in state else value for i, value in enumerate(sample))
    graph = view(part.model)
    there = (i for i in state if names[i] in known and _alike(known[names[i]], graph.tensors[graph.inputs[i]]))
    return FedSample(part, values, tuple(there))


def _moved(fed: FedSample, position: int) -> tuple[FedSample, int]:
    """Return the step with its positions in a cache after those of the steps before it, and the next position."""
    graph, values, after = view(fed.part.model), list(fed.sample), position
    for i, tensor in enumerate(graph.inputs):
        spec = graph.tensors[tensor]
        bound = bind_of(fed.part.model, tensor) if spec.type in (TensorType.INT32, TensorType.INT64) else None
        if bound is not None and bound.start is not None:
            start = min(position, bound.start)
            values[i] = (values[i] + start).astype(CARRIER[TensorType(spec.type)])
            after = max(after, start + values[i].size)
    return replace(fed, sample=tuple(values)), after


def _number(facts: InputFacts, fed: list[FedSample]) -> Feeds:
    return Feeds(replace(facts, samples=len(fed)), tuple(fed))


def _own(part: Signed, source: Feed) -> InputSource:
    """Return the inputs of the only signature, also if they are given by its name."""
    key = part.root.signature
    if isinstance(source, Mapping) and set(source) == {key} and key not in input_names(part.model):
        return cast(InputSource, source[key])  # type: ignore[index]
    return cast(InputSource, source)


def _by_signature(parts: Sequence[Signed], step: object, how: InputPreparation) -> Iterator[FedSample]:
    """Yield the steps of one mapping from signatures to inputs."""
    known = {part.name: part for part in parts}
    if not isinstance(step, Mapping) or not step:
        raise _unnamed(parts)
    for name, inputs in step.items():
        if name not in known:
            if any(name in input_names(part.model) for part in parts):
                raise _unnamed(parts)
            raise UnknownNameError("signature", name, tuple(known))
        for sample in make_inputs(known[name].model, inputs, how=how).samples:
            yield FedSample(known[name], sample)


def _unnamed(parts: Sequence[Signed]) -> InputError:
    names = ", ".join(part.name for part in parts)
    return InputError(
        "the model has several signatures: name the one that inputs are for, as in decode/tokens, or choose one with "
        "--signature (signature=)",
        expected=f"inputs of {names}",
        got="inputs without a signature",
    )


def _feeding_from_file(parts: Sequence[Signed], path: Path, how: InputPreparation) -> Iterator[FedSample]:
    """Yield the steps of an `.npz` with entries SIGNATURE/INPUT or s<k>_SIGNATURE/INPUT, in the order of k."""
    if path.suffix != ".npz" or not path.is_file():
        make_inputs(parts[0].model, path, how=how)  # which refuses what is no file
        raise _unnamed(parts)
    with opened(path) as archive:
        steps: dict[tuple[int, str], dict[str, Any]] = {}
        for entry in archive:
            place, slash, name = entry.partition("/")
            number, signature = _feeding_split(place, {part.name for part in parts})
            if not slash:
                raise _unnamed(parts)
            steps.setdefault((number, signature), {})[name] = archive[entry]
    for (_, signature), arrays in sorted(steps.items(), key=lambda item: item[0][0]):
        yield from _by_signature(parts, {signature: arrays}, how)


def _feeding_split(place: str, signatures: set[str]) -> tuple[int, str]:
    """Return the number of the step and its signature: s3_decode is step 3."""
    number, underscore, name = place.partition("_")
    if place not in signatures and underscore and number[:1] == "s" and number[1:].isdecimal() and len(number) < 10:
        return int(number[1:]), name
    return 0, place
