"""Texts and token ids in files."""

from __future__ import annotations

import os
import warnings

from tflq.comparison.sessions.roles import decoder_of
from tflq.engine.api.files import Source
from tflq.engine.api.subject import subject
from tflq.errors import FileAccessError, InputError, InputWarning
from tflq.model.ir import Model
from tflq.model.storage.arrays import load_array
from tflq.model.storage.reading import read_bytes
from tflq.statements import Statement


def read_tokens(path: str | os.PathLike[str]) -> list[int]:
    """Return token ids: an .npy of integers, or a text of integers separated by spaces, commas or line ends.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: It holds something else, or nothing.
    """
    if os.fspath(path).endswith(".npy"):
        array = load_array(path)
        if array.dtype.kind not in "iu":
            raise InputError("token ids are integers", name=os.fspath(path), got=str(array.dtype))
        values = [int(token) for token in array.ravel()]
    else:
        words = read_text(path).replace(",", " ").split()
        try:
            values = [int(word) for word in words]
        except ValueError:
            wrong = next(word for word in words if not word.lstrip("-").isdecimal())
            raise InputError("token ids are integers", name=os.fspath(path), got=wrong[:40]) from None
    if not values:
        raise InputError("has no token", name=os.fspath(path))
    return values


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file in UTF-8. Raise FileAccessError if it is not one."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise FileAccessError(path, f"is not a text in UTF-8 ({error})") from error


def split_text(model: Source | Model, tokens: list[int]) -> tuple[list[int], list[int]]:
    """Return a text's beginning for the longest prefill that it fills, and what follows, up to the model's context.

    Warns with InputWarning if the context cuts the text.

    Raises:
        InputError: The model is not a decoder.
    """
    decoder = decoder_of(subject(model).model)
    if decoder is None:
        name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else ""
        raise InputError("a text is for a decoder: no signature takes one token and returns logits", name=name)
    count = next((roles.count for roles in decoder.prefills if roles.count < len(tokens)), 1)
    kept = tokens[: decoder.context + 1] if decoder.context else tokens
    if len(kept) < len(tokens):
        said = f"the first {len(kept):,} of the text's {len(tokens):,} tokens are read: the model's context ends there"
        stated = Statement(said, "text-cut", tokens=len(tokens), read=len(kept), context=decoder.context)
        warnings.warn(InputWarning(stated), stacklevel=2)
    return kept[:count], kept[count:]
