"""`session`: a model run step by step with its state, twice, and every step compared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tflq.comparison.sessions.compare import SessionComparison, Side, compare_sessions, record_session
from tflq.comparison.sessions.engines import live_name
from tflq.comparison.sessions.text import Tokenizer, encoded, read_text, read_tokens, split_text, tokenizer_of
from tflq.engine.api.files import Source
from tflq.errors import OptionError
from tflq.model.ir import Model
from tflq.typing import Array


def session(
    model: Source | Model,
    other: Source | Model | None = None,
    between: tuple[Side, Side] = ("litert-ref", "litert-xnnpack"),
    *,
    steps: int | None = None,
    prompt: str | Sequence[int] | None = None,
    tokens: str | os.PathLike[str] | None = None,
    text: str | os.PathLike[str] | None = None,
    tokenizer: str | Tokenizer | None = None,
    inputs: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None = None,
    signature: str | None = None,
    seed: int = 0,
    free: bool = False,
    operators: bool = True,
    record: str | None = None,
    python: str | None = None,
) -> SessionComparison:
    """Run a model step by step twice, with its state carried over, and compare every step.

    A decoder reads the prompt by its prefills, then decodes. Any other model runs `inputs`, one sample a step.

    Args:
        model: A path, the bytes of a file, or a Model.
        other: The model of the second side, if it is not the same.
        between: For each side a profile, or "runtime:NAME" for a real runtime.
        steps: Number of steps of decode, or of samples to generate. None: all that follows the prompt, else 20.
        prompt: A text, or token ids. None: random tokens.
        tokens: Instead of a prompt, a file of token ids: .npy, or a text of integers.
        text: Instead of a prompt, a text file to read to its end, for perplexities.
        tokenizer: A tokenizer's file, or "bytes". None: that of the package which holds the model.
        inputs: For models that are no decoders: samples by input name, or an .npz with a first axis of steps.
        signature: The signature that `inputs` are for.
        seed: The seed of random tokens and inputs.
        free: Let each side choose its own tokens after the prompt.
        operators: Compare the results of all operators, too.
        record: Also write the steps of the real runtime as a golden at this path.
        python: The path of a Python that has the runtime installed, if not this one.

    Raises:
        InputError: Tokens or inputs do not fit.
        OptionError: More than one of `prompt`, `tokens`, `text` and `inputs` is given, or there is nothing to record.
        UnknownNameError: There is no profile, runtime or signature of that name.
        RuntimeMissing, RuntimeFailed: See `verify`.

    Example:
        >>> sides = "litert-ref", "litert-ref"
        >>> found = tflq.session("golden/models/tiny_decoder_int8.tflite", between=sides, steps=2)
        >>> found.same
        True
    """
    if sum(given is not None for given in (prompt, tokens, text, inputs)) > 1:
        raise OptionError("give one of --prompt, --tokens, --text and --inputs")
    live = next((side for side in between if isinstance(side, str) and live_name(side)), None)
    if record is not None and (live is None or other is not None):
        raise OptionError("--record needs one model, and a real runtime on a side, as in --between NAME runtime:NAME")
    begin, follow = _tokens(model, prompt, tokens, text, tokenizer)
    given: dict[str, Any] = {
        "prompt": begin,
        "follow": follow,
        "steps": steps,
        "inputs": inputs,
        "signature": signature,
        "seed": seed,
        "python": python,
    }
    found = compare_sessions(model, other, between, **given, free=free, operators=operators)
    if record is not None and live is not None:
        record_session(model, live, record, **given)
    return found


def _tokens(
    model: Source | Model,
    prompt: str | Sequence[int] | None,
    tokens: str | os.PathLike[str] | None,
    text: str | os.PathLike[str] | None,
    tokenizer: str | Tokenizer | None,
) -> tuple[Sequence[int] | None, Sequence[int]]:
    """Return the tokens of the prompt, and those that follow it; None for random ones."""
    if isinstance(prompt, str):
        return encoded(_words(model, tokenizer), prompt), []
    if tokens is not None:
        return read_tokens(os.fspath(tokens)), []
    if text is None:
        return prompt, []
    return split_text(model, encoded(_words(model, tokenizer), read_text(os.fspath(text))))


def _words(model: Source | Model, tokenizer: str | Tokenizer | None) -> Tokenizer | None:
    """Return the tokenizer, or that of the model's package."""
    if tokenizer is not None and not isinstance(tokenizer, str):
        return tokenizer
    return tokenizer_of(tokenizer, model if isinstance(model, (str, os.PathLike)) else None)
