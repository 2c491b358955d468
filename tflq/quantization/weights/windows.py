"""Windows of a calibration text, and the steps of the float model that read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import numpy as np

from tflq.comparison.sessions.roles import Decoder
from tflq.comparison.sessions.script import decoder_steps
from tflq.comparison.sessions.texts import read_text, read_tokens
from tflq.comparison.sessions.tokenizers import Tokenizer, encoded
from tflq.engine.runtimes import Step
from tflq.errors import CalibrationError, InputError

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


def steps_of(decoder: Decoder, window: Tokens) -> list[Step]:
    """Return the steps that read a window: its first half by prefills, the rest by decode."""
    half = len(window) // 2
    prompt, follow = (window[:half], window[half:-1]) if half else (window[:1], window[1:-1])
    return [step for _, step in decoder_steps(decoder, prompt, follow, len(follow) + 1)]
