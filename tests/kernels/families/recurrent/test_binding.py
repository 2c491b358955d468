"""`tflq/kernels/families/recurrent/binding.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families.recurrent import binding


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(binding, ops=("CONV_2D", "LSTM", "RNN", "BIDIRECTIONAL_SEQUENCE_LSTM"))
