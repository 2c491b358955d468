"""UNIDIRECTIONAL_SEQUENCE_LSTM with 8-bit activations against LiteRT's reference kernels, in every form."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from parameters import scale, zero_point
from single_op import T, allocate, assert_same, build, draw, tflq

from tflq.errors import ModelError

CELLS, INPUTS = 8, 6
FORMS = list(product((False, True), repeat=5))


class Builder:
    """A random LSTM of the given form."""

    def __init__(self, seed, *, cifg, peephole, projection, norm, time_major, batches=2, steps=4):
        self.rng = np.random.default_rng(seed)
        self.cifg, self.peephole, self.projection, self.norm = cifg, peephole, projection, norm
        self.time_major, self.clip = time_major, (0.0, 0.8)[seed % 2]
        self.outputs = (5, 8, 3)[seed % 3] if projection else CELLS
        leading = (steps, batches) if time_major else (batches, steps)
        self.x = T("int8", (*leading, INPUTS), scale(self.rng, -6, -4), zero_point(self.rng, "int8"))
        state = scale(self.rng, -8, -6), zero_point(self.rng, "int8")
        self.state = T("int8", (batches, self.outputs), *state, variable=True)
        self.cell = T("int16", (batches, CELLS), 2.0 ** -int(self.rng.integers(9, 14)), variable=True)
        self.y = T("int8", (*leading, self.outputs), *state)

    def matrix(self, rows, columns):
        return T("int8", (rows, columns), scale(self.rng, -9, -6), value=self.rng.integers(-127, 128, (rows, columns)))

    def vector(self, low, high):
        return T("int16", (CELLS,), scale(self.rng, low, high), value=self.rng.integers(-20000, 20000, CELLS))

    def bias(self, size=CELLS):
        return T("int32", (size,), 1e-5, value=self.rng.integers(-4000, 4000, size))

    def model(self):
        first = lambda made: None if self.cifg else made  # noqa: E731
        weights = [first(self.matrix(CELLS, INPUTS)), *(self.matrix(CELLS, INPUTS) for _ in range(3))]
        weights += [first(self.matrix(CELLS, self.outputs)), *(self.matrix(CELLS, self.outputs) for _ in range(3))]
        weights += (
            [first(self.vector(-14, -12)), *(self.vector(-14, -12) for _ in range(2))] if self.peephole else [None] * 3
        )
        weights += [first(self.bias()), *(self.bias() for _ in range(3))]
        weights += [self.matrix(self.outputs, CELLS), self.bias(self.outputs)] if self.projection else [None] * 2
        norms = [first(self.vector(-15, -13)), *(self.vector(-15, -13) for _ in range(3))] if self.norm else [None] * 4
        gates = [T("int16", (), scale(self.rng, -13, -11) if self.norm else 2.0**-12) for _ in range(4)]
        hidden = T("int8", (), self.state.scale, self.state.zero_point)
        if self.projection:
            hidden = T("int8", (), scale(self.rng, -8, -6), zero_point(self.rng, "int8"))
        options = {"cell_clip": self.clip, "proj_clip": self.clip / 4, "time_major": self.time_major}
        return build(
            "UNIDIRECTIONAL_SEQUENCE_LSTM", [self.x, *weights, self.state, self.cell, *norms], [self.y],
            ("UnidirectionalSequenceLSTMOptions", options), intermediates=[*gates, hidden],
        )  # fmt: skip


@pytest.mark.parametrize(("cifg", "peephole", "projection", "norm", "time_major"), FORMS)
def test_forms(cifg, peephole, projection, norm, time_major):
    seed = FORMS.index((cifg, peephole, projection, norm, time_major))
    lstm = Builder(seed, cifg=cifg, peephole=peephole, projection=projection, norm=norm, time_major=time_major)
    assert_same(lstm.model(), [draw(lstm.rng, lstm.x)])


def test_state_is_kept():
    """Two calls go on where one stopped: as one call over both halves."""
    import single_op

    form = {"cifg": False, "peephole": True, "projection": False, "norm": False, "time_major": True}
    long, short = Builder(2, **form, steps=4), Builder(2, **form, steps=2)
    model = long.model()
    x = draw(long.rng, long.x)
    (whole,) = tflq(model, [x])
    interpreter = single_op.Interpreter(model_content=short.model())
    interpreter.allocate_tensors()
    halves = []
    for part in (x[:2], x[2:]):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], part)
        interpreter.invoke()
        halves.append(np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
    np.testing.assert_array_equal(np.concatenate(halves), whole)


def test_refusals():
    lstm = Builder(0, cifg=False, peephole=False, projection=False, norm=False, time_major=False)
    lstm.cell = T("int16", (2, CELLS), 0.0003, variable=True)
    with pytest.raises(ModelError, match="power of two"):
        allocate(lstm.model())
    lstm.cell = T("int16", (3, CELLS), 2.0**-11, variable=True)
    with pytest.raises(ModelError, match="size"):
        allocate(lstm.model())
