"""The record of a model's quantization in its metadata."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from tflq.model.ir import Buffer, Model, view, with_graph
from tflq.quantization.recipe.files import digest
from tflq.quantization.recipe.recipe import Recipe

#: Name of the metadata entry: JSON with the version of tflq and the recipe's SHA-256.
ENTRY = "tflq_quantization"


def finish(model: Model, recipe: Recipe) -> Model:
    """Return the model with the recipe's hash in its metadata; names of constants go unless the recipe keeps them."""
    if not recipe.constant_names:
        graph = view(model)
        tensors = tuple(t if graph.data(i) is None else replace(t, name=None) for i, t in enumerate(graph.tensors))
        model = with_graph(model, replace(graph.record, tensors=tensors))
    return stamped(model, digest(recipe))


def stamped(model: Model, recipe_digest: str) -> Model:
    """Return the model with a recipe's hash in its metadata, in place of an earlier one."""
    text = json.dumps({"tflq": version("tflq"), "recipe": recipe_digest}, sort_keys=True)
    data = np.frombuffer(text.encode(), np.uint8)
    entries = tuple(entry for entry in model.metadata or () if entry[0] != ENTRY)
    return replace(model, buffers=(*model.buffers, Buffer(data)), metadata=(*entries, (ENTRY, len(model.buffers))))
