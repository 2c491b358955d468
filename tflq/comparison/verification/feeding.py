"""Inputs of a model, step by step: its signatures in turn, with state that lives from step to step.

A model has state if a subgraph holds variables, or if an output has the name of an input, such as a cache of keys and
values. Generated inputs then are sequences of steps in one interpreter: every signature once, in the file's order, and
the last one again. Inputs that are state begin as zeros and take the output of that name afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from tflq.comparison.verification.bounds import bind_of
from tflq.comparison.verification.generators import GENERATORS
from tflq.comparison.verification.inputs import InputSource, make_inputs
from tflq.comparison.verification.preparation import PLAIN, Preparation
from tflq.comparison.verification.results import InputFacts
from tflq.engine.runtimes import Sample, Step
from tflq.errors import InputError, UnknownNameError
from tflq.model.ir import CARRIER, Model, Signed, TensorSpec, TensorType, input_names, output_names, view
from tflq.model.ir.signatures import reach
from tflq.model.storage.archive import opened

#: Inputs of one signature by its name, or a list of such mappings, one for each step; or inputs of any other form.
Feed: TypeAlias = "InputSource | Mapping[str, InputSource] | Sequence[Mapping[str, InputSource]]"
_HANDLES = frozenset({"VAR_HANDLE", "CALL_ONCE"})


@dataclass(frozen=True, slots=True, eq=False)
class Fed:
    """The inputs of one step, in the order of the signature's graph.

    Those at the positions `carried` take the latest output of the same name instead. If it `continues`, it runs in the
    interpreter of the step before it.
    """

    part: Signed
    sample: Sample
    carried: tuple[int, ...] = ()
    continues: bool = False

    def step(self) -> Step:
        """Return the step as runtimes take it."""
        if self.part.signature is None:
            return Step(None, {str(i): value for i, value in enumerate(self.sample)})
        names = input_names(self.part.model)
        kept = {
            name: value for i, (name, value) in enumerate(zip(names, self.sample, strict=True)) if i not in self.carried
        }
        return Step(self.part.signature, kept, tuple(names[i] for i in self.carried))


@dataclass(frozen=True, slots=True, eq=False)
class Feeds:
    """Steps in order, and their source."""

    facts: InputFacts
    steps: tuple[Fed, ...]

    def sequences(self) -> list[list[Fed]]:
        """Return the steps by the interpreter that runs them."""
        found: list[list[Fed]] = []
        for fed in self.steps:
            if fed.continues and found:
                found[-1].append(fed)
            else:
                found.append([fed])
        return found


def make_feeds(
    parts: Sequence[Signed], source: Feed = None, samples: int = 1, seed: int = 0, how: Preparation = PLAIN
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
        return Feeds(made.facts, tuple(Fed(parts[0], sample) for sample in made.samples))
    if isinstance(source, (str, os.PathLike)):
        return _number(InputFacts(os.fspath(source), None, 0), list(_from_file(parts, Path(source), how)))
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


def _sequences(parts: Sequence[Signed], every: Sequence[Sequence[Sample]], samples: int) -> Iterator[Fed]:
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


def _with_state(part: Signed, sample: Sample, known: Mapping[str, TensorSpec]) -> Fed:
    """Return a step whose state is that of the steps before it, or zeros."""
    names = input_names(part.model)
    state = [i for i, name in enumerate(names) if name in carried_names(part.model)]
    values = tuple(np.zeros_like(value) if i in state else value for i, value in enumerate(sample))
    graph = view(part.model)
    there = (i for i in state if names[i] in known and _alike(known[names[i]], graph.tensors[graph.inputs[i]]))
    return Fed(part, values, tuple(there))


def _moved(fed: Fed, position: int) -> tuple[Fed, int]:
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


def _number(facts: InputFacts, fed: list[Fed]) -> Feeds:
    return Feeds(replace(facts, samples=len(fed)), tuple(fed))


def _own(part: Signed, source: Feed) -> InputSource:
    """Return the inputs of the only signature, also if they are given by its name."""
    key = part.root.signature
    if isinstance(source, Mapping) and set(source) == {key} and key not in input_names(part.model):
        return cast(InputSource, source[key])  # type: ignore[index]
    return cast(InputSource, source)


def _by_signature(parts: Sequence[Signed], step: object, how: Preparation) -> Iterator[Fed]:
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
            yield Fed(known[name], sample)


def _unnamed(parts: Sequence[Signed]) -> InputError:
    names = ", ".join(part.name for part in parts)
    return InputError(
        "the model has several signatures: name the one that inputs are for, as in decode/tokens, or choose one with "
        "--signature (signature=)",
        expected=f"inputs of {names}",
        got="inputs without a signature",
    )


def _from_file(parts: Sequence[Signed], path: Path, how: Preparation) -> Iterator[Fed]:
    """Yield the steps of an `.npz` with entries SIGNATURE/INPUT or s<k>_SIGNATURE/INPUT, in the order of k."""
    if path.suffix != ".npz" or not path.is_file():
        make_inputs(parts[0].model, path, how=how)  # which refuses what is no file
        raise _unnamed(parts)
    with opened(path) as archive:
        steps: dict[tuple[int, str], dict[str, Any]] = {}
        for entry in archive:
            place, slash, name = entry.partition("/")
            number, signature = _split(place, {part.name for part in parts})
            if not slash:
                raise _unnamed(parts)
            steps.setdefault((number, signature), {})[name] = archive[entry]
    for (_, signature), arrays in sorted(steps.items(), key=lambda item: item[0][0]):
        yield from _by_signature(parts, {signature: arrays}, how)


def _split(place: str, signatures: set[str]) -> tuple[int, str]:
    """Return the number of the step and its signature: s3_decode is step 3."""
    number, underscore, name = place.partition("_")
    if place not in signatures and underscore and number[:1] == "s" and number[1:].isdecimal() and len(number) < 10:
        return int(number[1:]), name
    return 0, place
