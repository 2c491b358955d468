"""The model to be quantized: read, converted, or refused with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tflq.engine.api.files import Source, load
from tflq.engine.runtimes.conversion import converted, is_of_tensorflow
from tflq.errors import ModelError
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.structure import check_structure
from tflq.quantization.recipe.recipe import NO_TAIL, Methods, Recipe
from tflq.quantization.recipe.refining import BiasCorrection, Refining
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.widening import widened


def float_model(source: Source | Model | Any, python: str | None = None) -> Model:
    """Return the model at a path, in the bytes of a file, or the given one.

    Keras files, SavedModels and Keras models in memory are converted by the Python at `python` (None: this one).

    Raises:
        RuntimeMissing: TensorFlow is needed and not installed there.
        RuntimeFailed: TensorFlow cannot convert the model.
    """
    model = load(converted(source, python) if is_of_tensorflow(source) else source)
    check_structure(model)
    return model


def refuse_integers(source: Model) -> None:
    """Refuse a model in which no operator computes with floats, and describe the alternatives."""
    graph = view(source)
    quantized = any(t.quantization is not None and len(t.quantization.scale) for t in graph.tensors)
    computes = any(
        spec is not None and spec.type == TensorType.FLOAT32
        for op in graph.ops
        if op.builtin not in ("QUANTIZE", "DEQUANTIZE")
        for spec in (*op.input_specs, *op.output_specs)
    )
    if quantized and not computes:
        raise ModelError(
            f"the model is integer already: none of its {len(graph.ops)} operators computes with floats, and it "
            "lacks the values that its codes were rounded from; quantize the float model that it was made from, "
            "or let --requantize bias improve its biases"
        )


def requantizing(source: Model, recipe: Recipe) -> tuple[FloatModel, Recipe]:
    """Return an integer model's float function, and a recipe for its biases: unchanged, or corrected."""
    floats, mode = widened(source)
    graph = view(source)
    given, taken = (
        TensorType.FLOAT32 if any(graph.tensors[t].type == TensorType.FLOAT32 for t in edge) else None
        for edge in (graph.inputs, graph.outputs)
    )
    candidates = (Methods(), Methods(refining=Refining(bias=BiasCorrection.EMPIRICAL)))
    recipe = replace(recipe, budget=None, float_tail=NO_TAIL, split_outputs=False)  # operators stay as they are
    changed = replace(recipe, mode=mode, input_type=given, output_type=taken, candidates=candidates)
    return floats, changed
