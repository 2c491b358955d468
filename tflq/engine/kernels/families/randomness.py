"""Operators that draw random numbers: shared by RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL.

An operator's numbers continue from run to run and restart when it is prepared again. Without seeds LiteRT seeds itself
from the system, so that no result is defined: such an operator is refused when it runs.
Source: LiteRT 2.3, random_ops.cc InitializeOpData, Prepare, Eval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Session
from tflq.engine.kernels.operands import require_rank, require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.philox import WORDS, Words, blocks
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Generator:
    """A node's generator; how far it has counted is what the session remembers of it."""

    seed: int
    seed_2: int

    def draw(self, session: Session, count: int, skip: int | None = None) -> Words:
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
        return Prepared((known,), OpData(generator(node), distribution), eval_fill, scratch=drawn_size)

    return (Kernel(op, "int32 -> float32", prepare, (1, 1), session=True),)


def drawn_size(data: OpData, shape: Array) -> int:
    """Return the bytes of the output, of the words drawn and of the results computed from them."""
    return 64 * prod(max(int(d), 0) for d in shape)


def eval_fill(data: OpData, session: Session, shape: Array) -> Array:
    """Source: GenerateRandomUniformNumbers, GenerateRandomStandardNormalNumbers. A last block is used in part."""
    size = tuple(int(d) for d in shape)
    count = prod(size)
    words = data.generator.draw(session, -(-count // WORDS))
    return np.asarray(data.distribution(words)).reshape(-1)[:count].reshape(size)
