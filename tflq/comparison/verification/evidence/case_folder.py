"""Folders of one conformance case as dumps: model.tflite, in0_0.bin, out0_0.bin ...; see docs/target-protocol.md.

Files are named by sample and position: `out1_0.bin` is the first output of the second sample.
"""

from __future__ import annotations

import re
from pathlib import Path

from tflq.errors import InputError
from tflq.model.ir import Model, view

MODEL, DESCRIPTION, REFUSED = "model.tflite", "case.txt", "refused.txt"
_NAME = re.compile(r"(in|out)(\d{1,6})_(\d{1,6})\.bin")


def is_case(place: Path) -> bool:
    """Return whether a folder holds a case of a conformance run."""
    return (place / MODEL).is_file() and (place / DESCRIPTION).is_file()


def case_samples(model: Model, place: Path) -> list[dict[str, Path]]:
    """Return the files of each sample by tensor index.

    Raises:
        InputError: The folder lacks outputs, or holds more than the model has.
    """
    graph = view(model)
    samples: dict[int, dict[str, Path]] = {}
    is_answered = False
    for file in sorted(place.iterdir()):
        name = _NAME.fullmatch(file.name)
        if name is None:
            continue
        tensors = graph.inputs if name[1] == "in" else graph.outputs
        position = int(name[3])
        if position >= len(tensors):
            raise InputError("is for a tensor that the model lacks", name=str(file))
        is_answered |= name[1] == "out"
        samples.setdefault(int(name[2]), {})[str(tensors[position])] = file
    if not is_answered:
        refused = place / REFUSED
        got = "a refusal" if refused.is_file() else "inputs only"
        raise InputError("holds no outputs of a target", name=str(place), expected="out0_0.bin", got=got)
    return [samples[number] for number in sorted(samples)]
