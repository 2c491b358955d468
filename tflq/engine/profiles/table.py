"""The profiles: one row each, and their other names."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.engine.profiles.rows import litert, micro, tflite
from tflq.engine.profiles.rows.row import Row

__all__ = ["ALIASES", "ROWS", "Row"]

#: Every row by the name of its profile.
ROWS: Mapping[str, Row] = {row.name: row for row in (*litert.ROWS, *tflite.ROWS, *micro.ROWS)}

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
