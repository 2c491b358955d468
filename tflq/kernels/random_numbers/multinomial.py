"""MULTINOMIAL: class numbers, drawn with the probabilities that logits stand for.

| operand | shape      | types        | quantization |
|---------|------------|--------------|--------------|
| logits  | (N, C > 0) | float32      | none         |
| samples | scalar     | int32        | none         |
| y       | (N, S)     | int32, int64 | none         |

Options: seed, seed2; not both 0. Logits that are not finite stand for probability 0; where none is finite, y is C.
Exactness: exact on the same libm (exp of float64).
Source: LiteRT 2.3, random_ops.cc PrepareMultinomial, GenerateMultinomialNumbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.families.randomness import Generator, generator
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.kernels.operands import require_rank
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.libm_double import exp
from tflq.numerics.philox import WORDS, unit_doubles

#: Blocks that the generator goes on by for each sample, rounded up to four of them, whatever is drawn.
_SKIP = 2 * 256


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The generator and the element type of the output."""

    generator: Generator
    dtype: np.dtype[np.generic]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The output's shape is known if the number of samples is constant."""
    logits, samples = node.input(0), node.input(1)
    require_rank(node, logits, 2)
    require_rank(node, samples, 0)
    node.check(logits.shape[1] > 0, "no classes", logits, got=list(logits.shape))
    shape = None if samples.value is None else (logits.shape[0], int(samples.value))
    node.check(shape is None or shape[1] >= 0, "number of samples", samples, got=shape)
    return Prepared(
        (shape,), OpData(generator(node), np.dtype(node.outputs[0].type.label)), eval_multinomial, scratch=drawn_size
    )


def drawn_size(data: OpData, logits: Array, samples: Array) -> int:
    """Bytes of the output, of the words that are drawn and of what they become."""
    return int(64 * len(logits) * max(int(samples), 0) + 64 * logits.shape[1])


def eval_multinomial(data: OpData, session: Session, logits: Array, samples: Array) -> Array:
    """Source: GenerateMultinomialNumbers. float64 sums in class order; each sample is a search among them."""
    rows, count = len(logits), int(samples)
    if count < 0:
        raise ValueError(f"the number of samples is {count}")
    total = rows * count
    words = data.generator.draw(session, -(-total * 2 // WORDS), rows * (-(-count // 4) * 4) * _SKIP)
    drawn = unit_doubles(words.reshape(-1, 2)[:total]).reshape(rows, count)
    result = np.empty((rows, count), data.dtype)
    for row, units, out in zip(logits, drawn, result, strict=True):
        sums = cumulative(row)
        out[...] = np.searchsorted(sums, units * sums[-1], side="right")
    return result


def cumulative(logits: Array) -> Array:
    """Sums of exp(logit - largest logit) up to each class, float64."""
    finite = np.isfinite(logits)
    if not finite.any():
        return np.zeros(len(logits))
    shifted = logits.astype(np.float64) - np.float64(logits[finite].max())
    return np.cumsum(np.where(finite, exp(np.where(finite, shifted, 0.0)), 0.0))


KERNELS = (Kernel("MULTINOMIAL", "float32 int32 -> int32|int64", prepare, (1, 1), session=True),)
