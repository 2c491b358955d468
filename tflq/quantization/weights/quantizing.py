"""`quantize_weights`: the weights of a decoder, for all signatures at once.

Methods judged by the tokens that the quantized model predicts, on windows that they were not fitted to.

Second moments of what weights are multiplied by, over the steps of a float model.

Windows of a calibration text, and the steps of the float model that read them.

`quantize_weights`: the weights of a decoder, or of any model of several signatures, quantized once for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import decibels, divergences
from tflq.comparison.sessions.plan import Decoder, StepRoles, decoder_of, decoder_steps
from tflq.comparison.sessions.text import Tokenizer, encoded, read_text, read_tokens
from tflq.comparison.verification.verifying import verify
from tflq.engine.api.files import Source, save
from tflq.engine.api.signature import Stepper, run_steps
from tflq.engine.profiles import Profile, by_name
from tflq.engine.runtimes import Invocation
from tflq.errors import CalibrationError, InputError, ModelError, TflqError, UnknownNameError
from tflq.interrupts import Progress
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import Model, Subgraph, TensorType, view
from tflq.model.ir.constants import stored
from tflq.model.ir.signatures import choose_roots
from tflq.quantization.judge.runtimes import RuntimeCheck
from tflq.quantization.recipe_files import stamped
from tflq.quantization.source import float_model
from tflq.quantization.weights.forms import Coded, Method, Weight, encode, weights_of, with_codes
from tflq.quantization.weights.recipe import MODES, WeightRecipe, weights_digest
from tflq.texts import Tabular, display_by
from tflq.typing import Array, Reals


@dataclass(frozen=True, slots=True)
class JudgedMethod:
    """A method with its results: mean KL divergence of the next token (nats), dB of the logits, equal choices."""

    method: Method
    divergence: float
    noise: float
    agreement: float
    steps: int


def logits_of(model: Model, profile: Profile, roles: StepRoles, sequences: Sequence[Sequence[Invocation]]) -> Array:
    """Return the logits of all steps of decode, (steps, vocabulary)."""
    name = str(roles.logits)
    rows = [
        result.outputs[name].reshape(-1, result.outputs[name].shape[-1])[-1]
        for steps in sequences
        for result in run_steps(model, profile, steps)
        if result.step.signature == roles.signature
    ]
    return np.stack(rows)


def judged(method: Method, reference: Array, logits: Array) -> JudgedMethod:
    """Return the results of a method from the logits of the float and the quantized model."""
    return JudgedMethod(
        method,
        float(divergences(reference, logits).mean()),
        decibels(reference, logits),
        float((reference.argmax(-1) == logits.argmax(-1)).mean()),
        len(reference),
    )


def ranked(results: Sequence[JudgedMethod]) -> tuple[JudgedMethod, ...]:
    """Return the results, the least divergence first; of equal ones the first tried."""
    return tuple(sorted(results, key=lambda result: result.divergence))


def held_back(windows: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the windows to fit to, and every fourth to judge by; with fewer than four, all serve both."""
    if len(windows) < 4:
        return list(windows), list(windows)
    return [w for k, w in enumerate(windows) if k % 4 != 3], [w for k, w in enumerate(windows) if k % 4 == 3]


def signature_counts(sequences: Sequence[Sequence[Invocation]]) -> Mapping[str, int]:
    """Return the number of steps by signature."""
    counts: dict[str, int] = {}
    for steps in sequences:
        for step in steps:
            counts[str(step.signature)] = counts.get(str(step.signature), 0) + 1
    return counts


def moments(
    model: Model, profile: Profile, weights: Sequence[Weight], sequences: Iterable[Sequence[Invocation]]
) -> Mapping[int, Reals]:
    """Return the sum of x x^T over all inputs x of FULLY_CONNECTED, (inputs, inputs), by buffer of the weights.

    Weights that are looked up only, or that no signature multiplies by, have none.
    """
    places: dict[tuple[int, int], list[Weight]] = {}
    for weight in weights:
        for use in weight.uses:
            if use.op == "FULLY_CONNECTED":
                places.setdefault((use.subgraph, view(model, use.subgraph).op(use.operator).inputs[0]), []).append(
                    weight
                )
    sums: dict[int, Reals] = {}
    for steps in sequences:
        stepper = Stepper(model, profile)
        for step in steps:
            tensors = stepper.run(step, keep_all=True).tensors
            (root,) = choose_roots(model, step.signature)
            for (subgraph, tensor), readers in places.items():
                if subgraph == root.subgraph and tensor in tensors:
                    _add(sums, tensors[tensor], readers)
    return sums


def _add(sums: dict[int, Reals], values: NDArray[np.float32], readers: Sequence[Weight]) -> None:
    for weight in readers:
        rows = values.reshape(-1, weight.rows.shape[1]).astype(np.float64)
        square = rows.T @ rows
        sums[weight.buffer] = sums[weight.buffer] + square if weight.buffer in sums else square


def share(weight: Weight, square: Reals | None) -> Reals | None:
    """Return the moments by which weights are judged.

    Weights that are also looked up have no inputs there: each of their elements counts as much as the mean.
    """
    if square is None or not square.any():
        return None
    if "EMBEDDING_LOOKUP" in weight.ops:
        together: Reals = square + np.eye(len(square)) * np.trace(square) / len(square)
        return together
    return square


#: Most windows, most tokens of each, and fewest tokens of a useful one.
MOST, LONGEST, SHORTEST = 32, 128, 4

Tokens = tuple[int, ...]


def read_windows(
    source: str | os.PathLike[str] | Iterable[Sequence[int]], decoder: Decoder, tokenizer: Tokenizer | None
) -> tuple[Tokens, ...]:
    """Return windows of tokens: a text by its tokenizer, a file of token ids, or sequences of token ids.

    A long sequence is cut into windows that fill the model's context; evenly spaced ones are taken.

    Raises:
        CalibrationError: There is no window, or a token lies beyond the vocabulary.
        FileAccessError, InputError: The file cannot be read, or needs a tokenizer.
    """
    if isinstance(source, (str, os.PathLike)):
        sequences: list[Sequence[int]] = [_tokens_of(os.fspath(source), tokenizer)]
    else:
        sequences = [tuple(int(token) for token in one) for one in source]
    length = min(decoder.context or LONGEST, LONGEST)
    windows = [
        tuple(sequence[at : at + length])
        for sequence in sequences
        for at in range(0, len(sequence), length)
        if len(sequence) - at >= min(SHORTEST, len(sequence))
    ]
    windows = [window for window in windows if len(window) > 1]
    if not windows:
        raise CalibrationError("holds no sequence of two tokens or more")
    wrong = next((t for window in windows for t in window if not 0 <= t < (decoder.vocabulary or 1 << 31)), None)
    if wrong is not None:
        raise CalibrationError(f"token {wrong} lies outside 0 to {decoder.vocabulary - 1}")
    if len(windows) > MOST:
        windows = [windows[k] for k in np.linspace(0, len(windows) - 1, MOST).round().astype(int)]
    return tuple(windows)


def _tokens_of(path: str, tokenizer: Tokenizer | None) -> list[int]:
    if tokenizer is not None and not path.endswith(".npy"):
        return encoded(tokenizer, read_text(path))
    try:
        return read_tokens(path)
    except InputError as error:
        raise error.advising("a text needs a tokenizer: --tokenizer FILE, or bytes if tokens are bytes") from error


def steps_of(decoder: Decoder, window: Tokens) -> list[Invocation]:
    """Return the steps that read a window: its first half by prefills, the rest by decode."""
    half = len(window) // 2
    prompt, follow = (window[:half], window[half:-1]) if half else (window[:1], window[1:-1])
    return [step for _, step in decoder_steps(decoder, prompt, follow, len(follow) + 1)]


_KINDS = {"int8": TensorType.INT8, "int4": TensorType.INT4}


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """Weights of the file: name, role, shape, operators that read them, and their form in words."""

    name: str
    role: str
    shape: tuple[int, ...]
    uses: int
    form: str


@display_by("quantize:weights_card")
@dataclass(frozen=True, slots=True, eq=False)
class WeightReport:
    """The report of a quantization of weights.

    `ranking` holds the methods, the chosen one first. `steps` counts the steps of each signature that moments are from.
    `check` verifies the model in the real runtime of the recipe's profile.
    """

    recipe: WeightRecipe
    ranking: tuple[JudgedMethod, ...]
    layers: tuple[LayerFacts, ...]
    steps: Mapping[str, int]
    windows: int
    bytes_before: int
    bytes_after: int
    check: RuntimeCheck


@display_by("quantize:weights_result_card", "weights_result_document", "ranking")
@dataclass(frozen=True, slots=True, eq=False)
class WeightResult(Tabular):
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

    def ranking(self, windows: Sequence[Tokens]) -> tuple[JudgedMethod, ...]:
        """Return the methods, judged on windows that they were not fitted to."""
        methods = tuple(dict.fromkeys(self._recipe.methods))
        fitting, judging = held_back(windows)
        sequences = [steps_of(self._decoder, window) for window in judging]
        roles, found = self._decoder.decode, list[JudgedMethod]()
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
    return stamped(model, weights_digest(recipe))


def _without_names(model: Model, graph: Subgraph) -> Subgraph:
    """Return a subgraph whose constants have no names."""
    constant = [stored(model, tensor) is not None for tensor in graph.tensors]
    return replace(
        graph, tensors=tuple(replace(t, name=None) if c else t for t, c in zip(graph.tensors, constant, strict=True))
    )


def _check(model: Model, recipe: WeightRecipe) -> RuntimeCheck:
    """Return the verification of all signatures in the real runtime of the recipe's profile."""
    try:
        return RuntimeCheck(verify(model, recipe.profile))
    except TflqError as error:
        return RuntimeCheck(None, error)
