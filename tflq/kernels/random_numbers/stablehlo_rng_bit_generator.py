"""STABLEHLO_RNG_BIT_GENERATOR: random bits, and the state from which the next call goes on.

| operand   | shape                              | types                        |
|-----------|------------------------------------|------------------------------|
| state     | 2 (3 too, for Philox)              | uint64                       |
| new state | as state                           | uint64                       |
| y         | that of the file                   | int32, uint32, int64, uint64 |

Options: algorithm (Threefry; Philox, which is also the default). The state holds the key, then the counter.
Source: LiteRT 2.3, rng_bit_generator.cc; rng_util.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.ir import CARRIER
from tflq.ir.schema import enum
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.numerics import philox, threefry
from tflq.numerics.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """What is drawn."""

    is_threefry: bool
    shape: Shape
    dtype: np.dtype[np.generic]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The output's shape is the file's."""
    state, new, y = node.input(0), node.outputs[0], node.outputs[1]
    number, names = int(node.options["algorithm"]), enum("RngAlgorithm")
    node.check(number in names.values(), "algorithm", expected=sorted(names.values()), got=number)
    is_threefry = number == names["THREEFRY"]
    sizes = ((2,),) if is_threefry else ((2,), (3,))
    node.check(state.shape in sizes, "shape", state, expected=sizes, got=state.shape)
    node.check(new.shape == state.shape, "shape", new, expected=state.shape, got=new.shape)
    return Prepared((state.shape, y.shape), OpData(is_threefry, y.shape, CARRIER[y.type]), evaluate)


def evaluate(data: OpData, state: Array) -> tuple[Array, Array]:
    """Source: FillOutputBuffer. The counter is 64 bits of the state and wraps; Philox's upper half stays."""
    width = 2 if data.is_threefry else philox.WORDS
    words = prod(data.shape) * data.dtype.itemsize // 4
    calls = -(-words // width)
    counters = state[1] + np.arange(calls, dtype=np.uint64)
    parts = [_low(counters), _high(counters)]
    key = int(state[0])
    if data.is_threefry:
        bits = threefry.rounds((key & 0xFFFFFFFF, key >> 32), np.stack(parts, axis=-1).astype(np.uint32))
    else:
        upper = np.broadcast_to(state[2] if len(state) == 3 else state[0], counters.shape)
        bits = philox.rounds(key, np.stack([*parts, _low(upper), _high(upper)], axis=-1))
    new = state.copy()
    new[1] = new[1] + np.uint64(calls)
    return new, bits.reshape(-1)[:words].copy().view(data.dtype).reshape(data.shape)


def _low(values: Array) -> Array:
    return values & np.uint64(0xFFFFFFFF)


def _high(values: Array) -> Array:
    return values >> np.uint64(32)


KERNELS = (Kernel("STABLEHLO_RNG_BIT_GENERATOR", "uint64 -> uint64 int32|uint32|int64|uint64", prepare, (1, 1)),)
