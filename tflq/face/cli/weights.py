"""`tflq quantize` for decoders: their weights, for all signatures at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tflq.face.cli.exits import exit_of_check
from tflq.face.cli.files import write_page
from tflq.face.cli.output import is_quiet, say, say_document

if TYPE_CHECKING:
    from tflq.engine.api.subject import Subject
    from tflq.quantization.weights.recipe import WeightRecipe


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of the command that apply to weights, and `others` that do not, by name."""

    model: str
    calibration: str
    output: str
    recipe: str
    mode: str | None
    block: int | None
    layers: tuple[str, ...]
    keep_float: tuple[str, ...]
    tokenizer: str | None
    constant_names: bool
    html: str | None
    as_json: bool
    others: Mapping[str, Any]


def quantize_weights_of(source: Subject, choice: Choice) -> int:
    """Quantize the weights of a model of several signatures, write it and report.

    Raises:
        OptionError: An option does not apply.
    """
    from tflq.comparison.sessions.tokenizers import tokenizer_of
    from tflq.engine.api.subject import stored
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.quantize.weights import weights_document, weights_report
    from tflq.quantization.weights.quantizing import quantize_weights

    recipe = _recipe(choice)
    words = tokenizer_of(choice.tokenizer, choice.model)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        result = quantize_weights(source.model, choice.calibration, recipe, progress, tokenizer=words)
    written = stored(result.model, choice.output)
    shown = weights_report(source.facts, written, choice.calibration, result.report)
    if choice.html is not None:
        write_page(choice.html, shown)
    if choice.as_json:
        say_document(weights_document(source.facts, written, choice.calibration, result.report))
    else:
        say(shown)
    check = result.report.check
    return exit_of_check(None if check.report is None else check.report.verdict.value, check.error)


def _recipe(choice: Choice) -> WeightRecipe:
    from tflq.errors import OptionError
    from tflq.model.storage.documents import read_document
    from tflq.quantization.weights.recipe import MODES, PRESETS, Layer, read_layer, weight_recipe_from

    given = next((name for name, value in choice.others.items() if value), None)
    if given is not None:
        raise OptionError(f"{given} does not apply to a model of several signatures: its activations stay float")
    if choice.recipe in PRESETS:
        mode = choice.mode or "dynamic"
        if mode not in MODES:
            raise OptionError(f"a model of several signatures takes modes {', '.join(MODES)}, not {mode}")
        recipe = replace(MODES[mode], methods=PRESETS[choice.recipe])
    else:
        if choice.mode is not None:
            raise OptionError("give --mode or the file of a recipe")
        recipe = weight_recipe_from(read_document(choice.recipe))
    if choice.block is not None:
        if recipe.weights != "int4":
            raise OptionError("--block is for --mode dynamicx4; --layer MATCH=int4:32 sets the blocks of some weights")
        recipe = replace(recipe, block=choice.block)
    layers = (*map(read_layer, choice.layers), *(Layer(name, "float32") for name in choice.keep_float))
    return replace(
        recipe, layers=(*recipe.layers, *layers), constant_names=recipe.constant_names and choice.constant_names
    )
