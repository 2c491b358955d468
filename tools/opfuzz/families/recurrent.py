"""Operators with a state between runs: float activations; weights float or of 8 bits; integer SVDF."""

from __future__ import annotations

from typing import Any

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import Draw
from opfuzz.one_operator import T

KINDS = ("float32", "float32", "int8", "uint8")
#: Number of consecutive runs.
RUNS = 3


def floats(draw: Draw, *shape: int) -> T:
    """Return constant float32 numbers of moderate size."""
    return T("float32", shape, value=draw.floats(shape, 0.5, 0.0))


def weights(draw: Draw, kind: str, *shape: int) -> T:
    """Return constant weights."""
    if kind == "float32":
        return floats(draw, *shape)
    codes = draw.rng.integers(-127 if draw.chance(0.6) else -128, 128, shape)
    return T(kind, shape, draw.real(0.001, 0.01), 0, value=codes if kind == "int8" else codes + 128)


def state(*shape: int) -> T:
    """Return a variable, zero at first."""
    return T("float32", shape, variable=True)


def cell(draw: Draw, kind: str, batch: int, depth: int, units: int) -> list[T]:
    """Return the operands of a plain recurrent cell besides its input."""
    return [
        weights(draw, kind, units, depth),
        weights(draw, kind, units, units),
        floats(draw, units),
        state(batch, units),
    ]


def activations(draw: Draw, tensor: T) -> Array:
    """Return inputs of moderate size."""
    return draw.floats(tuple(tensor.shape), float(draw.pick([0.1, 1, 3])), 0.0)


def case(draw: Draw, op: str, inputs: list[T | None], outputs: list[T], options: Any) -> Case:
    """Draw several consecutive runs."""
    return draw.case(op, inputs, outputs, options, samples=RUNS, given=lambda t: activations(draw, t))


def plain(draw: Draw, op: str) -> Case:
    """Draw RNN or UNIDIRECTIONAL_SEQUENCE_RNN."""
    kind = draw.pick(KINDS)
    batch, depth, units, time = draw.extent(1, 4), draw.extent(1, 30), draw.extent(1, 20), draw.extent(1, 5)
    options: dict[str, Any] = {
        "fused_activation_function": draw.pick([0, 1, 3, 4]),
        "asymmetric_quantize_inputs": draw.chance(0.5),
    }
    first: tuple[int, ...] = (batch,)
    name = "RNNOptions"
    if op != "RNN":
        options["time_major"] = draw.chance(0.5)
        first = (time, batch) if options["time_major"] else (batch, time)
        name = "SequenceRNNOptions"
    inputs: list[T | None] = [T("float32", (*first, depth)), *cell(draw, kind, batch, depth, units)]
    return case(draw, op, inputs, [T("float32", (*first, units))], (name, options))


def bidirectional(draw: Draw, op: str) -> Case:
    """Draw BIDIRECTIONAL_SEQUENCE_RNN, with and without an auxiliary input."""
    kind = draw.pick(KINDS)
    batch, depth, units, others, time = (
        draw.extent(1, 3),
        draw.extent(1, 20),
        draw.extent(1, 15),
        draw.extent(1, 15),
        draw.extent(1, 4),
    )
    merge = draw.chance(0.5)
    options = {
        "fused_activation_function": draw.pick([0, 1, 3, 4]),
        "time_major": draw.chance(0.5),
        "merge_outputs": merge,
        "asymmetric_quantize_inputs": merge or draw.chance(0.5),
    }
    first = (time, batch) if options["time_major"] else (batch, time)
    auxiliary = draw.int(0, 2)
    extra = depth + draw.int(0, 4) if auxiliary == 2 else depth
    inputs: list[T | None] = [T("float32", (*first, depth)), *cell(draw, kind, batch, depth, units)]
    inputs += cell(draw, kind, batch, depth, others)
    inputs.append(T("float32", (*first, extra)) if auxiliary else None)
    inputs += [weights(draw, kind, n, extra) if auxiliary == 2 else None for n in (units, others)]
    columns = (units + others,) if merge else (units, others)
    outputs = [T("float32", (*first, n)) for n in columns]
    return case(draw, op, inputs, outputs, ("BidirectionalSequenceRNNOptions", options))


def lstm(draw: Draw, op: str) -> Case:
    """Draw LSTM or UNIDIRECTIONAL_SEQUENCE_LSTM, with peepholes, projection, coupled gates or normalization."""
    kind = draw.pick(KINDS)
    batch, depth, units, time = draw.extent(1, 3), draw.extent(1, 20), draw.extent(1, 15), draw.extent(1, 4)
    project, peep, coupled, normal = (draw.chance(p) for p in (0.4, 0.3, 0.3, 0.3))
    made = draw.extent(1, 12) if project else units
    options: dict[str, Any] = {
        "fused_activation_function": draw.pick([4, 4, 4, 1, 0]),
        "cell_clip": draw.pick([0.0, 0.0, 1.5]),
        "proj_clip": draw.pick([0.0, 0.0, 0.7]),
        "asymmetric_quantize_inputs": draw.chance(0.5),
    }
    first: tuple[int, ...] = (batch,)
    name = "LSTMOptions"
    if op != "LSTM":
        options["time_major"] = draw.chance(0.5)
        first = (time, batch) if options["time_major"] else (batch, time)
        name = "UnidirectionalSequenceLSTMOptions"

    def four(make: Any) -> list[T | None]:
        return [None if coupled and gate == 0 else make() for gate in range(4)]

    inputs: list[T | None] = [T("float32", (*first, depth))]
    inputs += four(lambda: weights(draw, kind, units, depth)) + four(lambda: weights(draw, kind, units, made))
    inputs += [weights(draw, kind, units) if peep and not (coupled and gate == 0) else None for gate in range(3)]
    inputs += four(lambda: floats(draw, units))
    inputs += [weights(draw, kind, made, units) if project else None]
    inputs += [floats(draw, made) if project and draw.chance(0.5) else None, state(batch, made), state(batch, units)]
    if normal:
        inputs += four(lambda: floats(draw, units))
    return case(draw, op, inputs, [T("float32", (*first, made))], (name, options))


def svdf(draw: Draw, op: str) -> Case:
    """Draw SVDF, float, with 8-bit weights, or all integer with a 16-bit state."""
    batch, depth, units = draw.extent(1, 3), draw.extent(1, 30), draw.extent(1, 8)
    rank, memory = draw.int(1, 5), draw.extent(1, 10)
    kind = draw.pick([*KINDS, "integer", "integer"])
    filters = units * rank
    if kind == "integer":
        return _integer_svdf(draw, op, (batch, depth, units, rank, memory))
    options = {
        "rank": rank,
        "fused_activation_function": draw.pick([0, 1, 3]),
        "asymmetric_quantize_inputs": draw.chance(0.5),
    }
    inputs: list[T | None] = [
        T("float32", (batch, depth)),
        weights(draw, kind, filters, depth),
        weights(draw, kind, filters, memory),
        floats(draw, units) if draw.chance(0.6) else None,
        state(batch, filters * memory),
    ]
    return case(draw, op, inputs, [T("float32", (batch, units))], ("SVDFOptions", options))


def _integer_svdf(draw: Draw, op: str, sizes: tuple[int, int, int, int, int]) -> Case:
    batch, depth, units, rank, memory = sizes
    filters = units * rank
    features = draw.rng.integers(-127, 128, (filters, depth))
    times = draw.rng.integers(-(2**15) + 1, 2**15, (filters, memory))
    added = T("int32", (units,), 1.0, 0, value=draw.rng.integers(-(2**21), 2**21, units))
    inputs: list[T | None] = [
        draw.tensor("int8", (batch, depth), draw.scale(-7, -4)),
        T("int8", (filters, depth), draw.scale(-9, -6), 0, value=features),
        T("int16", (filters, memory), draw.scale(-16, -13), 0, value=times),
        added if draw.chance(0.6) else None,
        T("int16", (batch, filters * memory), draw.scale(-12, -9), 0, variable=True),
    ]
    y = draw.tensor("int8", (batch, units), draw.scale(-5, -1))
    options = {"rank": rank, "fused_activation_function": 1}
    return draw.case(op, inputs, [y], ("SVDFOptions", options), samples=RUNS)


def noise(draw: Draw, op: str) -> Case:
    """Draw RANDOM_UNIFORM or RANDOM_STANDARD_NORMAL with seeds, which make results comparable."""
    shape = draw.shape(0, 4)
    listed, value = draw.listed(shape)
    options = {"seed": draw.int(-(2**40), 2**40), "seed2": draw.int(1, 2**40)}
    return draw.case(
        op, [listed], [T("float32", shape)], ("RandomOptions", options), samples=RUNS, given=lambda _: value
    )


def multinomial(draw: Draw, op: str) -> Case:
    """Draw MULTINOMIAL with seeds."""
    rows, classes, count = draw.extent(1, 5), draw.extent(1, 30), draw.extent(1, 20)
    listed, value = draw.listed(count)
    y = T(draw.pick(["int32", "int64"]), (rows, count))
    options = {"seed": draw.int(-(2**40), 2**40), "seed2": draw.int(1, 2**40)}
    return draw.case(
        op,
        [T("float32", (rows, classes)), listed],
        [y],
        ("RandomOptions", options),
        samples=RUNS,
        given=lambda t: value if t is listed else np.asarray(draw.floats((rows, classes), 2.0)),
    )


SPECS = {
    "RNN": plain,
    "UNIDIRECTIONAL_SEQUENCE_RNN": plain,
    "BIDIRECTIONAL_SEQUENCE_RNN": bidirectional,
    "LSTM": lstm,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "SVDF": svdf,
    "RANDOM_UNIFORM": noise,
    "RANDOM_STANDARD_NORMAL": noise,
    "MULTINOMIAL": multinomial,
}
