"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL, STABLEHLO_RNG_BIT_GENERATOR: random numbers.

Operators that draw random numbers: shared by RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL.

An operator's numbers continue from run to run and restart when it is prepared again. Without seeds LiteRT seeds itself
from the system, so that no result is defined: such an operator is refused when it runs.
Source: LiteRT 2.3, random_ops.cc InitializeOpData, Prepare, Eval.

| operator                    | operands                                       | outputs                               |
|-----------------------------|------------------------------------------------|---------------------------------------|
| RANDOM_UNIFORM              | shape: int32                                   | float32 in [0, 1), 23 bits each       |
| RANDOM_STANDARD_NORMAL      | shape: int32                                   | float32 of mean 0 and deviation 1     |
| MULTINOMIAL                 | logits (N, C > 0): float32; samples: one int32 | (N, samples): int32, int64            |
| STABLEHLO_RNG_BIT_GENERATOR | state (2; 3 for Philox, too): uint64           | the new state; int32, uint32, int64,  |
|                             |                                                | uint64 of the file's shape            |

Options: seed and seed2, not both 0; STABLEHLO_RNG_BIT_GENERATOR: algorithm (Threefry; Philox is the default). Its state
holds the key, then the counter. Logits that are not finite have probability 0; if none is finite, y is C.
RANDOM_STANDARD_NORMAL up to 2.7 has another generator, which is not modelled: refused.
Exactness: exact on the same libm (logf, sinf, cosf; MULTINOMIAL: exp of float64).
Source: LiteRT 2.3, random_ops.cc GenerateRandomUniformNumbers, GenerateRandomStandardNormalNumbers, PrepareMultinomial,
GenerateMultinomialNumbers; rng_bit_generator.cc; rng_util.cc. TensorFlow 2.7, random_standard_normal.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.kernels.checks import require_rank, require_size
from tflq.engine.kernels.kernel import CalledSubgraphs, Kernel, Node, Prepared, Shape, undefined, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics import random
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import exp
from tflq.engine.numerics.random import WORDS, Words, blocks, normal_floats, unit_doubles, unit_floats
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER
from tflq.model.ir.model import enum
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Generator:
    """A node's generator; how far it has counted is what the session remembers of it."""

    seed: int
    seed_2: int

    def draw(self, session: CalledSubgraphs, count: int, skip: int | None = None) -> Words:
        """Return the next `count` blocks of words, shape (count, 4); advance by `skip` blocks, or else by `count`."""
        if self.seed == 0 and self.seed_2 == 0:
            raise UndefinedResultError("random_ops", "both seeds are 0: LiteRT takes seeds from the system then")
        first = session.memory.get(self, 0)
        session.memory[self] = first + (count if skip is None else skip)
        return blocks(self.seed, self.seed_2, first, count)


def generator(node: Node) -> Generator:
    """Return the generator of a node's options. TfLiteRandomParams keeps the low 32 bits of each seed, signed."""
    seed, seed_2 = (int(np.int64(node.options[option]).astype(np.int32)) for option in ("seed", "seed2"))
    return Generator(seed, seed_2)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """A distribution that fills a shape with numbers, four of each block of words."""

    generator: Generator
    distribution: Callable[[Words], Array]


def kernels(op: str, distribution: Callable[[Words], Array]) -> tuple[Kernel, ...]:
    """Return the kernel of an operator that fills a shape with `distribution` of each block's words, in order."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        shape = node.input(0)
        require_rank(node, shape, 1)
        known = None if shape.value is None else tuple(int(d) for d in shape.value)
        require_size(node, node.outputs[0], known or ())
        return Prepared((known,), OpData(generator(node), distribution), eval_fill, scratch=drawn_size_randomness)

    return (Kernel(op, "int32 -> float32", prepare, (1, 1), session=True),)


def drawn_size_randomness(data: OpData, shape: Array) -> int:
    """Return the bytes of the output, of the words drawn and of the results computed from them."""
    return 64 * prod(max(int(d), 0) for d in shape)


def eval_fill(data: OpData, session: CalledSubgraphs, shape: Array) -> Array:
    """Source: GenerateRandomUniformNumbers, GenerateRandomStandardNormalNumbers. A last block is used in part."""
    size = tuple(int(d) for d in shape)
    count = prod(size)
    words = data.generator.draw(session, -(-count // WORDS))
    return np.asarray(data.distribution(words)).reshape(-1)[:count].reshape(size)


def normals(words: Words) -> Array:
    """Return two pairs of floats of each block."""
    return normal_floats(words.reshape(-1, 2))


NORMAL = kernels("RANDOM_STANDARD_NORMAL", normals)


#: Blocks that the generator goes on by for each sample, rounded up to four of them, for all distributions.
_SKIP = 2 * 256


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialData:
    """The generator and the element type of the output."""

    generator: Generator
    dtype: np.dtype[np.generic]


def prepare_multinomial(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a known output shape if the number of samples is constant."""
    logits, samples = node.input(0), node.input(1)
    require_rank(node, logits, 2)
    require_rank(node, samples, 0)
    node.check(logits.shape[1] > 0, "no classes", logits, got=list(logits.shape))
    shape = None if samples.value is None else (logits.shape[0], int(samples.value))
    node.check(shape is None or shape[1] >= 0, "number of samples", samples, got=shape)
    return Prepared(
        (shape,),
        MultinomialData(generator(node), np.dtype(node.outputs[0].type.label)),
        eval_multinomial,
        scratch=drawn_size,
    )


def drawn_size(data: MultinomialData, logits: Array, samples: Array) -> int:
    """Return the bytes of the output, of the words that are drawn and of their results."""
    return int(64 * len(logits) * max(int(samples), 0) + 64 * logits.shape[1])


def eval_multinomial(data: MultinomialData, session: CalledSubgraphs, logits: Array, samples: Array) -> Array:
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
    """Return sums of exp(logit - largest logit) up to each class, float64."""
    finite = np.isfinite(logits)
    if not finite.any():
        return np.zeros(len(logits))
    shifted = logits.astype(np.float64) - np.float64(logits[finite].max())
    return np.cumsum(np.where(finite, exp(np.where(finite, shifted, 0.0)), 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class BitsData:
    """Constants of a draw."""

    is_threefry: bool
    shape: Shape
    dtype: np.dtype[np.generic]


def prepare_bits(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the output's shape from the file."""
    state, new, y = node.input(0), node.outputs[0], node.outputs[1]
    number, names = int(node.options["algorithm"]), enum("RngAlgorithm")
    node.check(number in names.values(), "algorithm", expected=sorted(names.values()), got=number)
    is_threefry = number == names["THREEFRY"]
    sizes = ((2,),) if is_threefry else ((2,), (3,))
    node.check(state.shape in sizes, "shape", state, expected=sizes, got=state.shape)
    node.check(new.shape == state.shape, "shape", new, expected=state.shape, got=new.shape)
    return Prepared((state.shape, y.shape), BitsData(is_threefry, y.shape, CARRIER[y.type]), eval_bits)


def eval_bits(data: BitsData, state: Array) -> tuple[Array, Array]:
    """Source: FillOutputBuffer. The counter is 64 bits of the state and wraps; Philox's upper half stays."""
    width = 2 if data.is_threefry else random.WORDS
    words = prod(data.shape) * data.dtype.itemsize // 4
    calls = -(-words // width)
    counters = state[1] + np.arange(calls, dtype=np.uint64)
    parts = [_low(counters), _high(counters)]
    key = int(state[0])
    if data.is_threefry:
        bits = random.threefry_rounds((key & 0xFFFFFFFF, key >> 32), np.stack(parts, axis=-1).astype(np.uint32))
    else:
        upper = np.broadcast_to(state[2] if len(state) == 3 else state[0], counters.shape)
        bits = random.rounds(key, np.stack([*parts, _low(upper), _high(upper)], axis=-1))
    new = state.copy()
    new[1] = new[1] + np.uint64(calls)
    return new, bits.reshape(-1)[:words].copy().view(data.dtype).reshape(data.shape)


def _low(values: Array) -> Array:
    return values & np.uint64(0xFFFFFFFF)


def _high(values: Array) -> Array:
    return values >> np.uint64(32)


KERNELS = (
    *kernels("RANDOM_UNIFORM", unit_floats),
    *NORMAL,
    *valid(
        tflite(until="tflite-2.7"),
        *(replace(row, prepare=undefined("the generator of 2.7 is not modelled")) for row in NORMAL),
    ),
    Kernel("MULTINOMIAL", "float32 int32 -> int32|int64", prepare_multinomial, (1, 1), session=True),
    Kernel("STABLEHLO_RNG_BIT_GENERATOR", "uint64 -> uint64 int32|uint32|int64|uint64", prepare_bits, (1, 1)),
)
