"""Sequences in one compiled call give what the steps of `lstm.Cell` give, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from engine.kernels.families.recurrent.test_lstm import KINDS, Shape, _norms, _options, _states, _weights

from support.recurrence import normal
from support.single_op import T, build, tflq
from tflq.engine.kernels.families.recurrent import lstm_floats
from tflq.errors import UndefinedResultError


def _model(rng: np.random.Generator, kind: str, activation: int) -> tuple[bytes, tuple[int, int, int]]:
    s = Shape.draw(rng, cells=int(rng.integers(2, 14)), batch=2)
    if s.outputs > s.cells or s.outputs == 1 or not s.projected:
        s = Shape.draw(rng, cells=9, outputs=9, projected=False, biased=False, batch=2)
    shape = s.batch, 6, s.depth
    options = _options(rng, time_major=False) | {"fused_activation_function": activation}
    inputs = [T("float32", shape), *_weights(rng, kind, s), *_states(s), *_norms(rng, s)]
    outputs = [T("float32", (*shape[:2], s.outputs))]
    return build(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, ("UnidirectionalSequenceLSTMOptions", options), 3
    ), shape


@pytest.mark.parametrize("activation", range(6))
@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_sequence_is_its_steps(kind: str, activation: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([activation, KINDS.index(kind)])
    model, shape = _model(rng, kind, activation)
    x = normal(rng, *shape)
    x[0, 2] = 0  # a product that is left out
    x[1, 3] = -0.0
    if kind == "float32":
        x[1, 4, -1] = np.inf
        x[1, 5, 0] = np.nan
    together = tflq(model, [x])[0]
    with monkeypatch.context() as patch:
        patch.setattr(lstm_floats, "_by_row", lambda cell: None)
        apart = tflq(model, [x])[0]
    np.testing.assert_array_equal(together, apart)
    np.testing.assert_array_equal(np.signbit(together) & ~np.isnan(together), np.signbit(apart) & ~np.isnan(apart))


def test_what_cannot_be_quantized_is_refused() -> None:
    rng = np.random.default_rng(3)
    model, shape = _model(rng, "int8", 4)
    x = normal(rng, *shape)
    x[1, 3, 0] = np.nan
    with pytest.raises(UndefinedResultError, match="NaN or an infinity"):
        tflq(model, [x])
