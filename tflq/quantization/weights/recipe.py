"""A recipe for the weights of a model of several signatures: their types, block sizes, and methods to try."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tflq.engine.profiles import by_name
from tflq.errors import OptionError, UnknownNameError
from tflq.quantization.recipe_files import digest_of, plain, record_from
from tflq.quantization.weights.forms import BlockScaling, Method, Role, Weight

SCHEMA = "tflq/weight-recipe/1"
#: Types of weights.
TYPES = ("int8", "int4", "float32")
#: Sizes of blocks that share a scale: what XNNPACK takes (a multiple of 32) and exporters write; 0 for whole channels.
BLOCKS = (0, 32, 64, 128, 256)

_ROUNDED = Method(BlockScaling.LEAST_ERROR, gptq=True)
_METHODS = (
    _ROUNDED,
    Method(BlockScaling.GREATEST, gptq=True),
    Method(BlockScaling.LEAST_ERROR, gptq=False),
    Method(BlockScaling.OCTAV, gptq=False),
)


def _check_form(weights: str, block: int) -> None:
    if weights not in TYPES:
        raise UnknownNameError("type of weights", weights, TYPES)
    if block not in BLOCKS:
        raise OptionError(f"block {block}: expected one of {', '.join(map(str, BLOCKS))}")
    if block and weights != "int4":
        raise OptionError(f"blocks are for int4, not for {weights}")


@dataclass(frozen=True, slots=True)
class Layer:
    """The form of some weights.

    `match` is a role (embedding, attention, feed-forward, output) or a regular expression that their name contains.
    """

    match: str
    weights: str = "int8"
    block: int = 0

    def __post_init__(self) -> None:
        _check_form(self.weights, self.block)
        try:
            re.compile(self.match)
        except re.error as error:
            raise OptionError(f"layer {self.match!r}: not a regular expression ({error})") from error

    def matches(self, weight: Weight) -> bool:
        """Return whether these are the weights meant."""
        if self.match in {role.value for role in Role}:
            return weight.role.value == self.match
        return re.search(self.match, weight.name) is not None


@dataclass(frozen=True, slots=True)
class WeightRecipe:
    """A complete specification: the form of weights, exceptions by layer (the last that matches counts), and methods.

    Each method is judged on windows of the text that it was not fitted to. `profile` is the runtime on which they are
    judged.

    Example:
        >>> recipe = tflq.WeightRecipe("int4", 32, layers=(tflq.quantization.weights.recipe.Layer("embedding"),))
        >>> recipe.layers[0].weights
        'int8'
    """

    weights: str = "int8"
    block: int = 0
    layers: tuple[Layer, ...] = ()
    methods: tuple[Method, ...] = _METHODS
    constant_names: bool = True
    profile: str = "litert-xnnpack"

    def __post_init__(self) -> None:
        _check_form(self.weights, self.block)
        by_name(self.profile)
        if not self.methods:
            raise OptionError("a recipe needs a method")

    def form(self, weight: Weight) -> tuple[str, int]:
        """Return the type and the block size of these weights."""
        found = next((layer for layer in reversed(self.layers) if layer.matches(weight)), None)
        return (self.weights, self.block) if found is None else (found.weights, found.block)


#: Recipes by the mode of `tflq quantize`.
MODES: Mapping[str, WeightRecipe] = {
    "dynamic": WeightRecipe(),
    "dynamicx4": WeightRecipe("int4", 32),
    "mixed": WeightRecipe("int8", 0, (Layer("feed-forward", "int4", 32),)),
}
#: Methods by the presets of `tflq quantize`.
PRESETS: Mapping[str, tuple[Method, ...]] = {"fast": (_ROUNDED,), "balanced": _METHODS[:2], "best": _METHODS}


def read_layer(text: str) -> Layer:
    """Return a layer in words: MATCH=int8, MATCH=int4 or MATCH=int4:32.

    Raises:
        OptionError, UnknownNameError: The words are not of this form.
    """
    match, equals, form = text.rpartition("=")
    weights, _, block = form.partition(":")
    if not equals or not match or (block and not block.isdecimal()):
        raise OptionError(f"layer {text!r}: expected MATCH=TYPE or MATCH=int4:BLOCK, as in attention=int8")
    return Layer(match, weights, int(block or 0))


def weights_document_of(recipe: WeightRecipe) -> dict[str, Any]:
    """Return the recipe as a document."""
    return {"schema": SCHEMA, **plain(recipe)}


def weight_recipe_from(document: Mapping[str, Any]) -> WeightRecipe:
    """Return the inverse of `document_of`; missing fields get their defaults.

    Raises:
        UnknownNameError, OptionError: A field or a value is unknown.
    """
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise OptionError(f"a model of several signatures takes a recipe with schema: {SCHEMA}")
    known = {name: value for name, value in document.items() if name != "schema"}
    recipe: WeightRecipe = record_from(WeightRecipe, known, "recipe")
    return recipe


def weights_digest(recipe: WeightRecipe) -> str:
    """Return the SHA-256 of the recipe's document, in hexadecimal."""
    return digest_of(weights_document_of(recipe))
