"""The profiles: one entry of `schemas/profiles.json` each, and their other names.

What an entry does not state is its base's. Fields of the arithmetic and their values are spelled as in
profiles/building.py, all keys as in files of profiles (profiles/file.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.model.ir.model import schema


@dataclass(frozen=True, slots=True)
class Row:
    """One profile. `source` holds the fields of `Source` that differ from the base's.

    `runtime` holds the coordinates by which rows of kernels are chosen (tflq/engine/kernels/validity.py). `figures`
    names the profile with whose measured figures close results are described; empty if none were measured.
    """

    name: str
    about: str
    base: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    runtime: Mapping[str, str | bool] = field(default_factory=dict)
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    figures: str = ""


#: Every row by the name of its profile.
ROWS: Mapping[str, Row] = {name: Row(name, **stated) for name, stated in schema("profiles").items()}

#: Other names: releases that give the same bits as the one that a profile is named for, and short ones.
ALIASES: Mapping[str, str] = {
    "tensorflow-ref": "litert-ref",  # as of TensorFlow 2.21: docs/scoreboard.md
    "tensorflow-opt": "litert-opt",
    "tflite-runtime-ref": "tflite-2.14-ref",  # its last release
    "tflite-runtime-opt": "tflite-2.14-opt",
    "litert-xnn": "litert-xnnpack",
    "litert-xnnpack-avx512": "litert-xnnpack",
    "litert-xnn-arm64": "litert-xnnpack-arm64",
    "litert-xnn-arm64-a53": "litert-xnnpack-arm64-a53",
    "litert-1.4-xnn": "litert-1.4-xnnpack",
    **{f"litert-2.3-{r}": f"litert-{r}" for r in ("ref", "opt", "xnnpack")},
    "litert-1.4-ref": "litert-2.0-ref",
    "litert-1.2-xnnpack": "litert-1.4-xnnpack",
    "litert-1.2-ref": "litert-1.0-ref",
    "litert-1.2-opt": "litert-1.0-opt",
    "tflite-2.10-ref": "tflite-2.11-ref",
    "tflite-2.10-opt": "tflite-2.11-opt",
    "tflite-2.8-ref": "tflite-2.7-ref",
    "tflite-2.8-opt": "tflite-2.7-opt",
}
