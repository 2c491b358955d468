"""Evidence about a device: arrays of a dump, a recording or an output file, which need not fit the model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.evidence.dumps import load_dumps, stored_samples
from tflq.errors import InputError, TypeMismatchError
from tflq.model.ir import Model
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The samples of a device's tensors, by tensor. `dumps` is None if they do not fit the model as they are.

    `problem` is the reason then.
    """

    samples: tuple[dict[int, Array], ...]
    dumps: tuple[Dump, ...] | None
    problem: str = ""


def read_evidence(model: Model, path: str | os.PathLike[str], sample: int | None = None) -> Evidence:
    """Read a dump of any form, of which archives and `.npy` files need not fit the model.

    Raises:
        FileAccessError: It cannot be read.
        InputError: It holds no tensor of the model.
    """
    place = Path(path)
    try:
        dumps = load_dumps(model, path, sample)
    except (InputError, TypeMismatchError) as error:
        if place.suffix not in (".npy", ".npz"):
            raise
        stored = stored_samples(model, place)
        if not any(stored):
            raise
        return Evidence(stored, None, str(error))
    return Evidence(tuple(dict(dump.tensors) for dump in dumps), dumps)
