"""The model to be quantized: read, converted, split, or refused with the reason.

A converted model against its source: the values that both compute of the same inputs.

The model to be quantized: read, converted, or refused with the reason.

Joined outputs split into one output for each part, so that each has a scale of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.comparison.inspection.layout import groups_of, layout_of, merge
from tflq.engine.api.files import Source, load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.engine.runtimes.conversion import Converted, conversions, converter_of
from tflq.errors import FormatError, ModelError, RuntimeFailed, TflqError
from tflq.model.ir import GraphView, Model, OperatorView, TensorType, input_names, output_names, view, with_graph
from tflq.model.ir.graph import check_structure
from tflq.model.surgery.tap import with_open_reshapes
from tflq.quantization.portable.floats import with_shapes_folded
from tflq.quantization.recipe import NO_TAIL, BiasCorrection, Methods, Norms, Recipe, Refining
from tflq.quantization.scheme.float_graph import FloatModel, widen
from tflq.typing import Array

#: Largest difference that rounding explains, as a share of the largest value: wrong layouts differ by its size.
_ROUNDING = 0.01


def wrong_text(model: Model, given: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
    """Return how far float outputs are from those of the source; "" if rounding explains that.

    It is "" also if they cannot be compared. Arrays of three axes or more may have their channels moved from axis 1 to
    the end.
    """
    graph = view(model)
    inputs = _by_tensor(given, graph.inputs, input_names(model))
    outputs = _by_tensor(expected, graph.outputs, output_names(model))
    fitting = {t: [form for form in _forms(v) if form.shape == graph.tensors[t].shape] for t, v in inputs.items()}
    if not all(fitting.values()):
        return ""
    texts = [
        _wrong(model, {tensor: forms[which] for tensor, forms in fitting.items()}, outputs)
        for which in ((0, -1) if any(len(forms) > 1 for forms in fitting.values()) else (0,))
    ]
    return "" if "" in texts else texts[0]


def _wrong(model: Model, values: Mapping[int, Array], outputs: Mapping[int, Array]) -> str:
    try:
        found = run(make_plan(model, by_name("litert-ref")), values).values
    except TflqError:
        return ""
    for tensor, value in outputs.items():
        largest = float(np.abs(value).max(initial=0)) if value.dtype.kind == "f" else np.inf
        far = [_distance(found[tensor], form) for form in _forms(value) if form.shape == found[tensor].shape]
        if far and not min(far) <= _ROUNDING * largest:
            name = view(model).tensors[tensor].name or "output"
            return f"of random inputs, {name} differs by {min(far):.3g}, and its largest value is {largest:.3g}"
    return ""


def _by_tensor(values: Mapping[str, Array], tensors: Sequence[int], names: Sequence[str]) -> dict[int, Array]:
    """Return values by tensor: by name if all names are known, else in order."""
    if set(values) == set(names):
        return {tensor: values[name] for tensor, name in zip(tensors, names, strict=True)}
    return dict(zip(tensors, values.values(), strict=False))


def _forms(value: Array) -> Sequence[Array]:
    """Return an array as it is, and with its channels at the end."""
    return (value,) if value.ndim < 3 else (value, np.moveaxis(value, 1, -1))


def _distance(one: Array, other: Array) -> float:
    """Return the largest difference; where both are NaN there is none."""
    if one.dtype.kind != "f":
        return 0.0
    with np.errstate(invalid="ignore"):
        far = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, np.abs(one - other.astype(np.float64)))
    return float(far.max(initial=0))


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


def split_outputs(model: Model) -> Model:
    """Return the model with the operands of the CONCATENATIONs that make its joint outputs as outputs of their own.

    The parts take the place of the joint output, in order. In signatures, their names are the output's with a number
    appended. Outputs of one meaning stay.

    Raises:
        ModelError: No output joins parts of different meanings, or operators between the CONCATENATION and the output
            keep it from being split.
    """
    graph = view(model)
    layout = layout_of(graph)
    joint = {t for k, t in enumerate(layout.tensors) if sum(group.output == k for group in layout.groups) > 1}
    parts = {t: _parts(graph, t) for t in graph.outputs if t in joint}
    if not any(len(found) > 1 for found in parts.values()):
        reason = "no output joins parts of different meanings" if not joint else "the joint output cannot be split"
        raise ModelError(f"{reason}: --split-outputs needs a CONCATENATION of whole parts that makes an output")
    outputs = tuple(dict.fromkeys(part for t in graph.outputs for part in parts.get(t, [t])))
    gone = {t for t, found in parts.items() if len(found) > 1}
    operators = tuple(op.record for op in graph.ops if not _is_unused(graph, op, gone))
    changed = with_graph(model, replace(graph.record, outputs=outputs, operators=operators))
    if model.signature_defs is None:
        return changed
    signatures = tuple(
        s
        if s.subgraph_index
        else replace(s, outputs=tuple(pair for name, t in s.outputs for pair in _name(name, parts.get(t, [t]))))
        for s in model.signature_defs
    )
    return replace(changed, signature_defs=signatures)


def _name(name: str, parts: list[int]) -> list[tuple[str, int]]:
    return [(name if len(parts) == 1 else f"{name}_{number}", part) for number, part in enumerate(parts)]


def _parts(graph: GraphView, tensor: int) -> list[int]:
    """Return the operands of the CONCATENATION that makes a tensor; the tensor itself if another operator does."""
    maker = graph.maker(tensor)
    if maker is None or maker.builtin != "CONCATENATION" or graph.readers(tensor) or _has_activation(maker):
        return [tensor]
    parts = list(dict.fromkeys(maker.inputs))
    whole = all(graph.maker(part) is not None and len(merge(groups_of(graph, 0, part))) == 1 for part in parts)
    return parts if whole and len(parts) > 1 else [tensor]


def _has_activation(op: OperatorView) -> bool:
    return op.options is not None and bool(op.options.get("fused_activation_function"))


def _is_unused(graph: GraphView, op: OperatorView, gone: set[int]) -> bool:
    return op.builtin == "CONCATENATION" and set(op.outputs) <= gone
