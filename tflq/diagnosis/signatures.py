"""Dumps of models with several signatures: which signature a dump is of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tflq.comparison.verification.evidence.dumps import Dump, dump_of, dumps_of_recording, load_dumps, recording_at
from tflq.comparison.verification.golden import Golden
from tflq.comparison.verification.inputs import InputSource
from tflq.comparison.verification.preparation import PLAIN, Preparation
from tflq.comparison.verification.signed import named
from tflq.errors import InputError
from tflq.model.ir import Model, Signed, signed, view
from tflq.model.storage.archive import opened
from tflq.typing import Array

Source = str | os.PathLike[str] | Mapping[str, Array] | Mapping[int, Array] | Dump
#: The dumps of one signature.
OfSignature = tuple[Signed, tuple[Dump, ...]]


def dumps_by_signature(
    model: Model,
    dump: Source,
    sample: int | None = None,
    inputs: InputSource = None,
    signature: str | None = None,
    how: Preparation = PLAIN,
) -> list[OfSignature]:
    """Return the samples of a dump by signature: of all that it holds, or of one.

    A recording names its signatures. Any other dump is of the signatures whose tensors its entries name.

    Raises:
        InputError: The dump does not fit the model, or does not show which signature it is of.
        UnknownNameError: The model has no such signature.
    """
    parts = signed(model, signature)
    if len(parts) == 1 and not parts[0].name:
        return [(parts[0], _samples(model, dump, sample, inputs, how))]
    golden = recording_at(dump) if isinstance(dump, (str, os.PathLike)) else None
    if golden is not None:
        return _of_recording(model, golden, str(dump), parts, sample)
    chosen = parts if len(parts) == 1 else _named_parts(parts, dump)
    return [(part, _samples(part.model, dump, sample, inputs, how)) for part in chosen]


def only_dumps(
    model: Model,
    dump: Source,
    sample: int | None = None,
    inputs: InputSource = None,
    signature: str | None = None,
    how: Preparation = PLAIN,
) -> OfSignature:
    """Return the samples of a dump of one signature.

    Raises:
        InputError: It is of several: see dumps_by_signature.
    """
    found = dumps_by_signature(model, dump, sample, inputs, signature, how)
    if len(found) > 1:
        raise _ambiguous([part for part, _ in found], "the dump is of several signatures")
    return found[0]


def _samples(model: Model, dump: Source, sample: int | None, inputs: InputSource, how: Preparation) -> tuple[Dump, ...]:
    if isinstance(dump, Dump):
        return (dump,)
    return (dump_of(model, dump),) if isinstance(dump, Mapping) else load_dumps(model, dump, sample, inputs, how)


def _of_recording(
    model: Model, golden: Golden, source: str, parts: Sequence[Signed], sample: int | None
) -> list[OfSignature]:
    every, found = signed(model), list[OfSignature]()
    own = [every[named(every, signature)].name for signature, _ in golden.steps]
    for part in parts:
        numbers = [k for k, name in enumerate(own) if name == part.name]
        dumps = dumps_of_recording(part.model, golden.chosen(numbers), source)
        if sample is not None and not 0 <= sample < len(dumps):
            raise InputError(f"sample {sample}: {source} has {len(dumps)} samples of {part.name}")
        if dumps:
            found.append((part, dumps if sample is None else dumps[sample : sample + 1]))
    if not found:
        raise InputError("holds no sample", name=source, expected=f"samples of {', '.join(p.name for p in parts)}")
    return found


def _named_parts(parts: Sequence[Signed], dump: Source) -> list[Signed]:
    """Return the signatures of which entries name an input or a result."""
    if isinstance(dump, Dump):
        raise _ambiguous(parts, "a dump without names")
    entries = set(_entries(dump))
    found = [part for part in parts if entries & _names(part.model)]
    if not found:
        raise _ambiguous(parts, "no entry of the dump names a tensor of one signature only")
    return found


def _ambiguous(parts: Sequence[Signed], reason: str) -> InputError:
    names = ", ".join(part.name for part in parts)
    return InputError(f"{reason}: choose one with --signature (signature=)", expected=f"one of {names}", got=None)


def _entries(dump: Mapping[Any, Array] | str | os.PathLike[str]) -> Iterable[str]:
    """Return the names of a dump's entries, as far as its form has names."""
    if isinstance(dump, Mapping):
        return map(str, dump)
    place = Path(dump)
    if place.is_dir():
        return [file.stem for file in place.iterdir()]
    if place.suffix != ".npz" or not place.is_file():
        return []
    with opened(place) as archive:
        return [re.sub(r"^s\d+_", "", name) for name in archive]


def _names(model: Model) -> set[str]:
    """Return the names of inputs and results, also as files spell them."""
    graph = view(model)
    names = {graph.tensors[t].name or "" for t in (*graph.inputs, *graph.computed)} - {""}
    return {spelling for name in names for spelling in (name, re.sub(r"[^\w.-]", "_", name), re.sub(r"\W", "_", name))}
