"""The table of what releases up to 2.14 computed in their own way."""

from __future__ import annotations

from tflq.kernels.kernel import Catalogue

EARLIER = Catalogue("tflq.kernels.earlier", {"LSTM": "lstm", "TRANSPOSE_CONV": "transpose_conv"})
