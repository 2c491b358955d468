"""`quantize` by words and files: the recipe that options amount to, and a run on samples and labels in files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tflq.comparison.inputs.prepare import image_paths
from tflq.errors import InputWarning, OptionError
from tflq.interrupts import Progress
from tflq.model.ir import Model
from tflq.model.storage.documents import read_document
from tflq.quantization.advice import Advice, advise
from tflq.quantization.frontier import available
from tflq.quantization.judge.outputs import labels_of_files
from tflq.quantization.pipeline import quantize
from tflq.quantization.recipe import Mode, Recipe
from tflq.quantization.recipe_files import SCHEMA, changed_recipe, document_of, read_recipe, recipe_text
from tflq.quantization.result import Result
from tflq.quantization.samples import Calibration, Scaling
from tflq.quantization.streams import integer_stream
from tflq.quantization.weights.recipe import MODES, PRESETS, Layer, WeightRecipe, read_layer, weight_recipe_from
from tflq.quantization.weights.recipe import SCHEMA as WEIGHT_SCHEMA
from tflq.quantization.weights.recipe import weights_document_of as weight_document_of
from tflq.texts import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeWords:
    """A preset's name or the path of a recipe, and words that change its fields; None leaves a field unchanged.

    `block` and `layers` apply to decoders only.
    """

    recipe: str = "balanced"
    mode: str | None = None
    weights: str | None = None
    input_type: str | None = None
    output_type: str | None = None
    keep_float: tuple[str, ...] = ()
    no_constant_names: bool = False
    budget: str | None = None
    runtimes: str | None = None
    portable: str | None = None
    portable_until: str | None = None
    drop_softmax: bool = False
    float_tail: str | None = None
    split_outputs: bool = False
    eight_bits: float | None = None
    refine_trained: bool = False
    norms: str | None = None
    block: str | None = None
    layers: tuple[str, ...] = ()

    @property
    def only_for_decoders(self) -> str | None:
        """The first option given that applies to decoders only."""
        return "--block" if self.block else "--layer" if self.layers else None

    @property
    def is_for_decoders(self) -> bool:
        """True if the words name a recipe for decoders, if there is no model to ask."""
        if self.only_for_decoders is not None or self.mode == "mixed":
            return True
        if self.recipe in PRESETS or not os.path.isfile(self.recipe):
            return False
        document = read_document(self.recipe)
        return isinstance(document, Mapping) and document.get("schema") == WEIGHT_SCHEMA


def recipe_of(words: RecipeWords) -> Recipe:
    """Return the recipe for a model of one signature.

    Raises:
        OptionError, UnknownNameError: A word does not apply, or is unknown.
    """
    if words.only_for_decoders is not None:
        raise OptionError(f"{words.only_for_decoders} is for decoders; this model has one signature")
    types = {"mode": _mode(words), "input_type": words.input_type, "output_type": words.output_type}
    recipe = changed_recipe(
        read_recipe(words.recipe), words.keep_float, words.budget, types, words.runtimes, words.portable
    )
    changed: dict[str, Any] = {}
    if words.no_constant_names:
        changed["constant_names"] = False
    if words.portable_until or words.drop_softmax:
        changed |= {"portable_until": words.portable_until or "", "drop_softmax": words.drop_softmax}
    if words.float_tail is not None:
        changed["float_tail"] = words.float_tail
    if words.split_outputs:
        changed["split_outputs"] = True
    if words.refine_trained:
        changed["refine_trained"] = True
    if words.eight_bits is not None:
        if recipe.mode is not Mode.INT8X4:
            raise OptionError(f"--eight-bits is for weights of four bits, not for mode {recipe.mode.value}")
        changed["eight_bits"] = words.eight_bits
    if words.norms is not None:
        changed["norms"] = words.norms
    return replace(recipe, **changed)


def weight_recipe_of(words: RecipeWords) -> WeightRecipe:
    """Return the recipe for the weights of a model of several signatures.

    Raises:
        OptionError, UnknownNameError: A word does not apply, or is unknown.
    """
    mode = _mode(replace(words, mode=words.mode or "dynamic")) if words.weights else words.mode
    if words.recipe in PRESETS:
        mode = mode or "dynamic"
        if mode not in MODES:
            raise OptionError(f"a model of several signatures takes modes {', '.join(MODES)}, not {mode}")
        recipe = replace(MODES[mode], methods=PRESETS[words.recipe])
    else:
        if mode is not None:
            raise OptionError("give --mode or the file of a recipe")
        recipe = weight_recipe_from(read_document(words.recipe))
    if words.block is not None:
        if recipe.weights != "int4":
            raise OptionError("--block is for --mode dynamicx4; --layer MATCH=int4:32 sets the blocks of some weights")
        recipe = replace(recipe, block=int(words.block))
    layers = (*map(read_layer, words.layers), *(Layer(name, "float32") for name in words.keep_float))
    names = recipe.constant_names and not words.no_constant_names
    return replace(recipe, layers=(*recipe.layers, *layers), constant_names=names)


def recipe_text_of(recipe: Recipe | WeightRecipe) -> str:
    """Return a recipe as the YAML that `tflq quantize --recipe FILE` reads."""
    return recipe_text(WEIGHT_SCHEMA if isinstance(recipe, WeightRecipe) else SCHEMA, recipe)


def recipe_document_of(recipe: Recipe | WeightRecipe) -> dict[str, Any]:
    """Return a recipe as the JSON that `tflq quantize --recipe FILE.json` reads, with every field."""
    return weight_document_of(recipe) if isinstance(recipe, WeightRecipe) else document_of(recipe)


def _mode(words: RecipeWords) -> str | None:
    """Return the mode for --mode and --weights."""
    if words.weights is None:
        return words.mode
    kinds = {"int8": "int8x4", "int8x4": "int8x4", "dynamic": "dynamicx4", "dynamicx4": "dynamicx4"}
    narrow = kinds.get(words.mode or "int8")
    if narrow is None:
        raise OptionError(f"--weights applies to modes int8 and dynamic, not to {words.mode}")
    return narrow if words.weights == "int4" else narrow.removesuffix("x4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Paths of samples and labels, and how stored numbers become inputs.

    `evaluate` are samples to which nothing is fitted; `labels` are theirs, or else those of `calibration`.
    """

    calibration: str
    evaluate: str | None = None
    labels: str | None = None
    scaling: Scaling | None = None
    bgr: bool = False


def quantize_files(
    model: Model,
    files: Files,
    recipe: Recipe,
    progress: Progress | None = None,
    *,
    jobs: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    advice: bool = False,
    **more: Any,
) -> tuple[Result, Advice | None]:
    """Quantize a float model with samples and labels from files; see `tflq.quantize`, which takes `more`.

    Without `jobs`, every processor is used. With `advice`, options that may win losses back are tried.

    Warns with InputWarning if images are read without a scaling.

    Raises:
        OptionError: Biases alone are improved, of which there is no advice.
        Others: See `tflq.quantize`.
    """
    if advice and more.get("requantize"):
        raise OptionError("--advise is for float models; --requantize takes an integer one")
    stream = None if more.get("requantize") else integer_stream(model, recipe)
    source, model = model, model if stream is None else stream.step  # whose inputs samples are
    samples = Calibration(model, files.calibration, files.scaling, bgr=files.bgr)
    labelled = files.calibration if files.evaluate is None else files.evaluate
    known = labels_of_files(files.labels, labelled, model)
    kept_back = None
    if files.evaluate is not None:
        kept_back = Calibration(model, files.evaluate, files.scaling, bgr=files.bgr)
    if files.scaling is None:
        _warn_of_plain_images(files.calibration)
    same: dict[str, Any] = {"labels": known, "evaluation": kept_back, "jobs": available() if jobs is None else jobs}
    result = quantize(source, samples, recipe, progress, resume=resume, **same, **more)
    if not advice or result.report.interrupted:
        return result, None
    return result, advise(source, samples, recipe, result, progress, **same)


def _warn_of_plain_images(calibration: str) -> None:
    """Warn that images enter as numbers 0 to 255: most models are trained on scaled ones."""
    if image_paths(Path(calibration)):
        text = "images enter as 0 to 255, which few models take: give the --mean and --std of the training"
        examples = "--std 255 for 0 to 1, --mean 127.5 --std 127.5 for -1 to 1, --std 1 if 0 to 255 is right"
        stated = Statement(f"{text} ({examples})", "plain-images", name=calibration)
        warnings.warn(InputWarning(stated), stacklevel=2)
