"""SKIP_GRAM: the word sequences of a text, some words of which may be skipped.

| operand | shape           | types  | quantization |
|---------|-----------------|--------|--------------|
| x       | at least 1 text | string | none         |
| y       | (number found)  | string | none         |

Options: ngram_size, max_skip_size (words between two neighbours), include_all_ngrams (shorter ones too). The first text
counts. Words are separated by white space of the C locale; a space at the very start belongs to the first word.
Source: LiteRT 2.3, skip_gram.cc Eval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

_SPACES = b" \t\n\v\f\r"


@dataclass(frozen=True, slots=True)
class OpData:
    """The options."""

    size: int
    most_skipped: int
    shorter_too: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare outputs whose number of sequences depends on the text."""
    x = node.input(0)
    node.check(0 not in x.shape, "no text", x, got=list(x.shape))
    options = node.options
    data = OpData(int(options["ngram_size"]), int(options["max_skip_size"]), bool(options["include_all_ngrams"]))
    return Prepared((None,), data, eval_skip_gram)


def eval_skip_gram(data: OpData, x: Array) -> Array:
    """Return sequences in the order in which the recursion finds them."""
    words = words_of(x.flat[0])
    indices = grams(data, len(words)) if 0 <= data.size <= len(words) else []
    y = np.empty(len(indices), object)
    y[:] = [b" ".join(words[i] for i in gram) for gram in indices]
    return y


def words_of(text: bytes) -> list[bytes]:
    """Return the words of a text. Its first character is never taken for a separator."""
    words, start = [], 0
    for i in range(1, len(text)):
        if text[i] in _SPACES:
            if i > start and text[start] not in _SPACES:
                words.append(text[start:i])
            start = i + 1
    return [*words, text[start:]] if len(text) > start else words


def grams(data: OpData, count: int) -> list[tuple[int, ...]]:
    """Return the positions of the words of each sequence, out of `count` words."""
    stack, depth = [0] * data.size, 1
    indices: list[tuple[int, ...]] = []
    while depth >= 0:
        if _goes_deeper(data, stack, depth, count):
            stack[depth] += 1
            depth += 1
            if depth < data.size:
                stack[depth] = stack[depth - 1]
        else:
            if 0 < depth <= data.size and (data.shorter_too or depth == data.size):
                indices.append(tuple(stack[:depth]))
            depth -= 1
    return indices


def _goes_deeper(data: OpData, stack: list[int], depth: int, count: int) -> bool:
    """Return whether the place at `depth` can take the next word. Source: ShouldStepInRecursion."""
    if depth >= data.size or stack[depth] + 1 >= count:
        return False
    return depth == 0 or stack[depth] - stack[depth - 1] <= data.most_skipped


KERNELS = (Kernel("SKIP_GRAM", "string -> string", prepare, (1, 1)),)
