"""`quantize_weights`: the weights of a decoder, or of any model of several signatures, quantized once for all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.comparison.sessions.roles import Decoder, decoder_of
from tflq.comparison.sessions.tokenizers import Tokenizer
from tflq.comparison.verification import verify
from tflq.display import display_by
from tflq.engine.api.files import Source, save
from tflq.engine.profiles import by_name
from tflq.errors import ModelError, TflqError, UnknownNameError
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import Model, Subgraph, TensorType
from tflq.model.ir.constants import stored
from tflq.progress import Progress
from tflq.quantization.judge.check import Check
from tflq.quantization.recipe.stamp import stamped
from tflq.quantization.source import float_model
from tflq.quantization.weights.contest import Judged, held_back, judged, logits_of, ranked, signature_counts
from tflq.quantization.weights.forms import Coded, Method, encode
from tflq.quantization.weights.moments import Reals, moments, share
from tflq.quantization.weights.places import Weight, weights_of
from tflq.quantization.weights.recipe import MODES, WeightRecipe, digest
from tflq.quantization.weights.rewriting import with_codes
from tflq.quantization.weights.windows import Tokens, read_windows, steps_of

_KINDS = {"int8": TensorType.INT8, "int4": TensorType.INT4}


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """Weights of the file: name, role, shape, operators that read them, and their form in words."""

    name: str
    role: str
    shape: tuple[int, ...]
    uses: int
    form: str


@display_by("quantize.weights:weights_card")
@dataclass(frozen=True, slots=True, eq=False)
class WeightReport:
    """The report of a quantization of weights.

    `ranking` holds the methods, the chosen one first. `steps` counts the steps of each signature that moments are from.
    `check` verifies the model in the real runtime of the recipe's profile.
    """

    recipe: WeightRecipe
    ranking: tuple[Judged, ...]
    layers: tuple[LayerFacts, ...]
    steps: Mapping[str, int]
    windows: int
    bytes_before: int
    bytes_after: int
    check: Check


@display_by("quantize.weights:weights_result_card")
@dataclass(frozen=True, slots=True, eq=False)
class WeightResult:
    """A model with quantized weights, and its report."""

    model: Model
    report: WeightReport

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the model; return the number of bytes."""
        return save(self.model, path)


def quantize_weights(
    model: Source | Model,
    calibration: str | os.PathLike[str] | Iterable[Sequence[int]],
    recipe: WeightRecipe | str = "dynamic",
    progress: Progress | None = None,
    *,
    tokenizer: Tokenizer | None = None,
) -> WeightResult:
    """Quantize the weights of a decoder, for all its signatures at once. Activations stay float.

    Args:
        model: A path, the bytes of a file, or a Model of floats with a signature that takes one token.
        calibration: Sequences of token ids, a file of them, or a text with its `tokenizer`.
        recipe: A WeightRecipe, or a mode: "dynamic" (int8), "dynamicx4" (int4, blocks of 32), "mixed".
        progress: Called as progress(what, done, total).
        tokenizer: Turns a text into token ids.

    Raises:
        ModelError: The model is not a decoder, or has no float weights.
        CalibrationError, InputError: The calibration data do not fit.
        UnknownNameError: There is no such mode.

    Example:
        >>> text = [[(7 * k + j) % 128 for k in range(24)] for j in range(8)]
        >>> made = tflq.quantize_weights("golden/models/tiny_decoder_float.tflite", text, "dynamicx4")
        >>> made.report.bytes_after < made.report.bytes_before
        True
    """
    source = float_model(model)
    chosen = recipe if isinstance(recipe, WeightRecipe) else _of_mode(recipe)
    decoder = decoder_of(source)
    if decoder is None:
        raise ModelError(
            "the model has several signatures, of which none takes one token and returns logits: its weights cannot be "
            "judged by its text"
        )
    weights = [weight for weight in weights_of(source) if chosen.form(weight)[0] != "float32"]
    if not weights:
        raise ModelError("the model has no float weights that an operator with an integer form reads")
    windows = read_windows(calibration, decoder, tokenizer)
    work = _Work(source, decoder, weights, chosen, progress or _silent)
    ranking = work.ranking(windows)
    result = work.made(ranking[0].method, windows)
    finished = _stamp(result, chosen)
    report = WeightReport(
        chosen,
        ranking,
        tuple(map(work.facts, weights)),
        signature_counts([steps_of(decoder, window) for window in windows]),
        len(windows),
        file_size(source),
        file_size(finished),
        _check(finished, chosen),
    )
    return WeightResult(finished, report)


def _of_mode(mode: str) -> WeightRecipe:
    if mode not in MODES:
        raise UnknownNameError("mode", mode, tuple(MODES))
    return MODES[mode]


def _silent(what: str, done: int, total: int) -> None:
    pass


class _Work:
    """The work on one model: fits of methods to windows of its text."""

    def __init__(
        self, source: Model, decoder: Decoder, weights: Sequence[Weight], recipe: WeightRecipe, progress: Progress
    ) -> None:
        self._source, self._decoder, self._weights = source, decoder, weights
        self._recipe, self._progress = recipe, progress
        self._profile = by_name(recipe.profile)
        self._moments: dict[tuple[Tokens, ...], Mapping[int, Reals]] = {}

    def ranking(self, windows: Sequence[Tokens]) -> tuple[Judged, ...]:
        """Return the methods, judged on windows that they were not fitted to."""
        methods = tuple(dict.fromkeys(self._recipe.methods))
        fitting, judging = held_back(windows)
        sequences = [steps_of(self._decoder, window) for window in judging]
        roles, found = self._decoder.decode, list[Judged]()
        reference = logits_of(self._source, self._profile, roles, sequences)
        for k, method in enumerate(methods):
            self._progress(f"method {method}", k, len(methods))
            logits = logits_of(self.made(method, fitting), self._profile, roles, sequences)
            found.append(judged(method, reference, logits))
        return ranked(found)

    def made(self, method: Method, windows: Sequence[Tokens]) -> Model:
        """Return the model with all weights quantized by a method that is fitted to windows."""
        squares = self._squares(tuple(windows)) if method.needs_moments else {}
        chosen = {w.buffer: (w, self._encode(w, method, squares.get(w.buffer))) for w in self._weights}
        return with_codes(self._source, chosen, dynamic=True)

    def _squares(self, windows: tuple[Tokens, ...]) -> Mapping[int, Reals]:
        if windows not in self._moments:
            self._progress("moments of activations", 0, 0)
            sequences = [steps_of(self._decoder, window) for window in windows]
            self._moments = {windows: moments(self._source, self._profile, self._weights, sequences)}
        return self._moments[windows]

    def _encode(self, weight: Weight, method: Method, square: Reals | None) -> Coded:
        kind, block = self.form(weight)
        return encode(weight.rows, kind, block, weight.axis, method, share(weight, square))

    def form(self, weight: Weight) -> tuple[TensorType, int]:
        """Return the form of weights: eight bits if their kernel takes none of four, and no blocks that do not fit."""
        name, block = self._recipe.form(weight)
        if name == "int4" and not weight.ops <= {"FULLY_CONNECTED", "EMBEDDING_LOOKUP"}:
            return TensorType.INT8, 0
        return _KINDS[name], block if weight.rows.shape[1] % (block or 1) == 0 else 0

    def facts(self, weight: Weight) -> LayerFacts:
        """Return the facts of weights for the report."""
        kind, block = self.form(weight)
        form = kind.label + (f", blocks of {block}" if block else ", per channel")
        return LayerFacts(weight.name, weight.role.value, weight.values.shape, len(weight.uses), form)


def _stamp(model: Model, recipe: WeightRecipe) -> Model:
    """Return the model with the recipe's hash in its metadata; names of constants go unless the recipe keeps them."""
    if not recipe.constant_names:
        model = replace(model, subgraphs=tuple(_without_names(model, graph) for graph in model.subgraphs))
    return stamped(model, digest(recipe))


def _without_names(model: Model, graph: Subgraph) -> Subgraph:
    """Return a subgraph whose constants have no names."""
    constant = [stored(model, tensor) is not None for tensor in graph.tensors]
    return replace(
        graph, tensors=tuple(replace(t, name=None) if c else t for t, c in zip(graph.tensors, constant, strict=True))
    )


def _check(model: Model, recipe: WeightRecipe) -> Check:
    """Return the verification of all signatures in the real runtime of the recipe's profile."""
    try:
        return Check(verify(model, recipe.profile))
    except TflqError as error:
        return Check(None, error)
