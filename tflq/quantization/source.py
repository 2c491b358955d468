"""The model to be quantized: read, converted, or refused with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tflq.engine.api.files import Source, load
from tflq.engine.runtimes.conversion import Converted, conversions, converter_of
from tflq.errors import FormatError, ModelError, RuntimeFailed
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.structure import check_structure
from tflq.model.surgery.batch import with_open_reshapes
from tflq.quantization.converted import wrong_text
from tflq.quantization.portable.forms.shapes import with_shapes_folded
from tflq.quantization.recipe.recipe import NO_TAIL, Methods, Norms, Recipe
from tflq.quantization.recipe.refining import BiasCorrection, Refining
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.widening import widen


def float_model(source: Source | Model | Any, python: str | None = None) -> Model:
    """Return the model at a path, in the bytes of a file, or the given one.

    Keras files, SavedModels and Keras models in memory are converted by TensorFlow, ONNX files by onnx2tf, both in the
    Python at `python` (None: the first that has it, of this one and those on PATH).

    Raises:
        RuntimeMissing: The converter is not installed there.
        RuntimeFailed: It cannot convert the model.
    """
    return convert_model(source, python)[0] if converter_of(source) else _check(load(source))


def convert_model(source: Any, python: str | None = None) -> tuple[Model, Converted]:
    """Return the float model that a converter makes, without operators that compute with shapes, and what it wrote.

    Raises:
        RuntimeMissing: See `float_model`.
        RuntimeFailed: The model cannot be converted, or the converted one computes other values.
    """
    wrong = ""
    for made in conversions(source, python):
        try:
            model = with_open_reshapes(_check(load(made.data)))
        except (FormatError, ModelError) as error:
            raise RuntimeFailed(made.by, f"wrote no valid .tflite file for {source}: {error}") from error
        wrong = wrong_text(model, made.given, made.results)
        if not wrong:
            return with_shapes_folded(model).model, made
    raise RuntimeFailed(made.by, f"the .tflite file that it wrote computes other values than {source}: {wrong}")


def _check(model: Model) -> Model:
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
    floats, mode = widen(source)
    graph = view(source)
    given, taken = (
        TensorType.FLOAT32 if any(graph.tensors[t].type == TensorType.FLOAT32 for t in edge) else None
        for edge in (graph.inputs, graph.outputs)
    )
    candidates = (Methods(), Methods(refining=Refining(bias=BiasCorrection.EMPIRICAL)))
    recipe = replace(
        recipe, budget=None, float_tail=NO_TAIL, split_outputs=False, norms=Norms.INT8
    )  # operators stay as they are
    changed = replace(recipe, mode=mode, input_type=given, output_type=taken, candidates=candidates)
    return floats, changed
