"""Mfcc and AudioSpectrogram against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from support.graphs import Graph, Op, assert_runs, build
from support.single_op import Array, T
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import ModelError


def mfcc(shape: tuple[int, ...], **more: int) -> bytes:
    options = {
        "upper_frequency_limit": 4000,
        "lower_frequency_limit": 20,
        "filterbank_channel_count": 40,
        "dct_coefficient_count": 13,
        **more,
    }
    op = Op("Mfcc", (0, 1), (2,), custom=bytes(flexbuffers.Dumps(options)))
    made = T("float32", (*shape[:2], options["dct_coefficient_count"]))
    return build(Graph([T("float32", shape), T("int32", (1,)), made], (0, 1), (2,), [op]))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1, 513), (1, 49, 257), (2, 3, 129), (1, 2, 40)])
@pytest.mark.parametrize("rate", [16000, 44100, 8000, 7999, 3])
def test_mfcc(shape: tuple[int, ...], rate: int) -> None:
    rng = np.random.default_rng(rate)
    wanted: list[dict[str, int]] = [
        {},
        {"dct_coefficient_count": 40},
        {"filterbank_channel_count": 7, "dct_coefficient_count": 5},
        {"upper_frequency_limit": 8000, "lower_frequency_limit": 300},
        {"lower_frequency_limit": 0},
        {"upper_frequency_limit": 3999, "filterbank_channel_count": 200},
    ]
    for more in wanted:
        spectra: list[Array] = [rng.exponential(size, shape).astype(np.float32) for size in (1e-3, 1, 1e5)]
        assert_runs(mfcc(shape, **more), [[x, np.array([rate], np.int32)] for x in [*spectra, 0 * spectra[0]]])


def test_mfcc_refusals() -> None:
    wrong: dict[str, dict[str, Any]] = {
        "frequency limits": {"upper_frequency_limit": 20},
        "dct_coefficient_count": {"dct_coefficient_count": 41},
        "filterbank": {"filterbank_channel_count": 0},
    }
    for match, more in wrong.items():
        interpreter = Interpreter(model_content=mfcc((1, 1, 9), **more))
        interpreter.allocate_tensors()
        interpreter.set_tensor(1, np.array([8000], np.int32))
        with pytest.raises(ModelError, match=match):
            interpreter.invoke()


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4, 7, 16, 31, 40, 64, 100, 256, 480, 512, 1000, 2048, 5000, 16384])
@pytest.mark.parametrize("squared", [False, True])
def test_audio_spectrogram(size: int, squared: bool) -> None:
    """Transforms of all sizes from 2 to 16384."""
    rng = np.random.default_rng(size)
    for stride, channels in [(1 + size // 2, 1), (size + 3, 2)]:
        samples = size + 2 * stride + 1
        options = {"window_size": size, "stride": stride, "magnitude_squared": squared}
        op = Op("AudioSpectrogram", (0,), (1,), custom=bytes(flexbuffers.Dumps(options)))
        model = build(Graph([T("float32", (samples, channels)), T("float32", ())], (0,), (1,), [op]))
        noise = rng.normal(0, 0.1, (samples, channels))
        tone = 0.5 * np.sin(np.arange(samples) * 0.3)[:, None] + 0 * noise
        inputs: list[Array] = [x.astype(np.float32) for x in (noise, tone, np.round(noise * 128) / 128)]
        assert_runs(model, [[x] for x in inputs])


def test_audio_spectrogram_refusals() -> None:
    wrong: dict[str, dict[str, Any]] = {"window_size": {"window_size": 1, "stride": 1}, "stride": {"window_size": 4}}
    for match, options in wrong.items():
        op = Op("AudioSpectrogram", (0,), (1,), custom=bytes(flexbuffers.Dumps(options)))
        model = build(Graph([T("float32", (9, 1)), T("float32", ())], (0,), (1,), [op]))
        with pytest.raises(ModelError, match=match):
            Interpreter(model_content=model).allocate_tensors()
