"""A model on many samples at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tflq
from support import suites
from tflq.engine.api import many
from tflq.errors import InputError, OptionError, TypeMismatchError
from tflq.interrupts import LeftAlone, checkpoint
from tflq.typing import Array

MODELS = suites.ROOT / "golden" / "models"


def one_by_one(path: str, samples: list[Array]) -> list[Array]:
    results = []
    for sample in samples:
        interpreter = tflq.Interpreter(model_path=path, profile="litert-ref")
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], sample.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return results


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits_mobilenet_int8", "digits_lstm_int8", "digits_autoencoder_float"])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_sample_begins_anew(name: str, threads: int) -> None:
    path = str(MODELS / f"{name}.tflite")
    detail = tflq.Interpreter(model_path=path).get_input_details()[0]
    random, shape = np.random.default_rng(3), tuple(detail["shape"])
    draw = random.standard_normal if detail["dtype"] == np.float32 else lambda s: random.integers(-128, 128, s)
    samples = [draw(shape).astype(detail["dtype"]) for _ in range(7)]
    got = tflq.run_many(path, samples, threads=threads)
    assert len(got) == len(samples)
    for (value,), want in zip(got, one_by_one(path, samples), strict=True):
        np.testing.assert_array_equal(value, want)


def test_results_belong_to_the_caller() -> None:
    path = MODELS / "digits_autoencoder_int8.tflite"
    shape = tuple(tflq.Interpreter(model_path=path).get_input_details()[0]["shape"])
    samples = [np.full(shape, 40 * k - 80, np.int8) for k in range(5)]
    got = tflq.run_many(path, iter(samples))
    kept = got[4][0].copy()
    got[3][0][:] = 0
    np.testing.assert_array_equal(got[4][0], kept)


def test_what_does_not_fit_is_refused() -> None:
    path = MODELS / "digits_autoencoder_int8.tflite"
    detail = tflq.Interpreter(model_path=path).get_input_details()[0]
    good = np.zeros(detail["shape"], detail["dtype"])
    with pytest.raises(InputError, match="sample 0"):
        tflq.run_many(path, [[]])
    with pytest.raises(TypeMismatchError, match="sample 1"):
        tflq.run_many(path, [good, good.astype(np.float64)])
    with pytest.raises(OptionError):
        tflq.run_many(path, [], threads=0)
    assert tflq.run_many(path, []) == []


def test_samples_that_are_worth_it_run_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked = MODELS / "digits_autoencoder_int8.tflite", []
    monkeypatch.setattr(many, "in_threads", lambda work, items, threads: asked.append(threads) or map(work, items))
    monkeypatch.setattr(many, "processors", lambda: 3)
    alone = tflq.run(path, samples=4).arrays
    monkeypatch.setattr(many, "_WORTH", 0)
    together = tflq.run(path, samples=4).arrays
    monkeypatch.undo()
    assert asked == [1, 3]
    monkeypatch.setattr(many, "_WORTH", 0)
    for found in (together, tflq.run(path, samples=4, all_tensors=True).arrays):
        assert all(np.array_equal(found[name], value) for name, value in alone.items())


def test_the_first_error_ends_threads_and_later_samples_do_not_begin() -> None:
    begun: list[int] = []

    def work(k: int) -> int:
        begun.append(k)
        if k in (3, 5):
            raise ValueError(k)
        return -k

    got = []
    with pytest.raises(ValueError, match="3"):
        got.extend(many.in_threads(work, iter(range(10**6)), 2))
    assert got == [0, -1, -2]
    assert len(begun) < 20
    assert list(many.in_threads(lambda k: -k, range(100), 3)) == [-k for k in range(100)]
    assert list(many.in_threads(abs, [], 3)) == []


def test_threads_whose_results_nobody_takes_end_at_a_checkpoint() -> None:
    ends, both = list[BaseException](), threading.Barrier(3)

    def work(k: int) -> int:
        if k:
            both.wait(60)
        try:
            while k:
                checkpoint()
        except BaseException as error:
            ends.append(error)
            raise
        return k

    before = threading.active_count()
    results = many.in_threads(work, iter([0, 1, 1, 1]), 2)
    assert next(results) == 0
    both.wait(60)
    results.close()
    assert [type(end) for end in ends] == [LeftAlone, LeftAlone]
    assert threading.active_count() == before
    checkpoint()  # this thread goes on
