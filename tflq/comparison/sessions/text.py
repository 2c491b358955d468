"""Texts, token ids and tokenizers.

Texts and token ids in files.

Tokenizers: text to token ids and back, by the libraries `tokenizers` and `sentencepiece` (extra `tokenizers`).
"""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tflq.comparison.sessions.plan import decoder_of
from tflq.engine.api.files import Package, Source, package, split_path, subject
from tflq.errors import FileAccessError, FormatError, InputError, InputWarning, OptionError
from tflq.model.ir import Model
from tflq.model.storage.arrays import load_array
from tflq.model.storage.kinds import read_bytes
from tflq.texts import Statement


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


#: The name of the tokenizer that needs no file: a token is a byte of UTF-8.
BYTES = "bytes"
_KINDS = {"SP_Tokenizer": "sentencepiece", "HF_Tokenizer_Zlib": "tokenizers"}
#: Largest JSON of a tokenizer in a package, unpacked.
_LARGEST = 256 << 20


class Tokenizer(Protocol):
    """Text to token ids and back."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids."""
        ...


class _Bytes:
    """A token for each byte of UTF-8."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(token for token in tokens if 0 <= token < 256).decode(errors="replace")


@dataclass(frozen=True, slots=True)
class _HuggingFace:
    """A tokenizer.json."""

    inner: Any

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.inner.decode(list(tokens)))


@dataclass(frozen=True, slots=True)
class _SentencePiece:
    """A SentencePiece model."""

    inner: Any

    def encode(self, text: str) -> list[int]:
        return [int(token) for token in self.inner.encode(text)]

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.inner.decode([token for token in tokens if 0 <= token < self.inner.get_piece_size()]))


def tokenizer_of(name: str | None, model: str | os.PathLike[str] | None) -> Tokenizer | None:
    """Return the tokenizer of a file, "bytes", or that of the package which holds the model; None if there is none.

    Raises:
        FileAccessError: The file cannot be read.
        FormatError: It is not a tokenizer.
        OptionError: The library that reads it is not installed.
    """
    if name == BYTES:
        return _Bytes()
    if name is not None:
        data = read_bytes(name)
        return _read("tokenizers" if data.lstrip()[:1] == b"{" else "sentencepiece", data, name)
    found = None if model is None else package(split_path(os.fsdecode(model))[0])
    return None if found is None else _of_package(found)


def _of_package(found: Package) -> Tokenizer | None:
    sections = [section for section in found.sections if section.kind in _KINDS]
    if not sections:
        return None
    section = sections[0]
    data = bytes(section.read())
    if section.kind == "HF_Tokenizer_Zlib":
        data = _unpack(data, found.path)
    return _read(_KINDS[section.kind], data, f"{found.path}:{section.name}")


def _unpack(data: bytes, path: str) -> bytes:
    """Return the JSON of a section: its size as uint64, then a zlib stream.

    Source: LiteRT-LM 0.18, litertlm_builder.py add_hf_tokenizer.
    """
    header = struct.calcsize("<Q")
    if len(data) < header:
        raise FormatError("the section of the tokenizer is too short", path=path)
    (size,) = struct.unpack_from("<Q", data)
    if size > _LARGEST:
        raise FormatError(f"the tokenizer has {size} bytes, more than the limit of {_LARGEST}", path=path)
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data[header:], size + 1)
    except zlib.error as error:
        raise FormatError(f"the section of the tokenizer is damaged ({error})", path=path) from error
    if len(text) != size or not inflater.eof:
        raise FormatError(f"the tokenizer does not have the {size} bytes that it announces", path=path)
    return text


def _read(library: str, data: bytes, path: str) -> Tokenizer:
    try:
        if library == "tokenizers":
            from tokenizers import Tokenizer as HuggingFace

            return _HuggingFace(HuggingFace.from_str(data.decode()))
        from sentencepiece import SentencePieceProcessor

        return _SentencePiece(SentencePieceProcessor(model_proto=data))
    except ImportError as error:
        raise OptionError(f"{path} needs the library {library}: pip install 'tflq[tokenizers]'") from error
    except Exception as error:  # both libraries raise plain exceptions for damaged files
        raise FormatError(f"is not a tokenizer ({error})", path=path) from error


def encoded(tokenizer: Tokenizer | None, text: str) -> list[int]:
    """Return the token ids of a text.

    Raises:
        InputError: There is no tokenizer, or the text has no token.
    """
    if tokenizer is None:
        raise InputError("a text needs a tokenizer: --tokenizer FILE, or --tokenizer bytes if tokens are bytes")
    tokens = tokenizer.encode(text)
    if not tokens:
        raise InputError("the text has no token", got=text[:40])
    return tokens
