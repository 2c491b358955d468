"""`bench`: a model's times under profiles and in real runtimes, in turns within one run."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.comparison.benchmark.benchmark import Benchmark
from tflq.comparison.benchmark.results import Benched
from tflq.comparison.verification.feeding import Feed
from tflq.comparison.verification.preparation import Numbers, preparation
from tflq.engine.api.files import Source
from tflq.model.ir import Model
from tflq.progress import Progress, silent


def bench(
    model: Source | Model,
    profiles: Sequence[str] = ("litert-ref",),
    against: Sequence[str] | None = None,
    *,
    inputs: Feed = None,
    samples: int = 1,
    seed: int = 0,
    signature: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    quantize_inputs: bool = False,
    bgr: bool = False,
    seconds: float = 2.0,
    runs: int | None = None,
    threads: int = 1,
    python: str | None = None,
    progress: Progress = silent,
) -> Benched:
    """Time a model under profiles and in real runtimes, each in a process of its own, in turns.

    A signal ends it with what was timed so far, if anything was: `interrupted` is then True, and `stop` the signal.

    Args:
        model: A path, the bytes of a file, or a Model.
        profiles: Names of profiles, or paths of their files. All others are compared with the first.
        against: Names of real runtimes, which must be installed; none if it is empty. None: all that are installed.
        inputs, samples, seed, mean, std, quantize_inputs, bgr: The inputs, as for `verify`; invokes take them in turn.
        signature: The only signature to time. None: every one, as a case of its own.
        seconds: Time of the invokes of each side.
        runs: The least number of invokes of each side, in place of `seconds`.
        threads: Threads of every runtime. A profile computes an operator in one.
        python: The Python in which runtimes are installed, if not this one.
        progress: Called as progress(what, done, total).

    Raises:
        FileAccessError, FormatError, ModelError: See `load`.
        UnknownNameError: There is no such profile, runtime or signature.
        InputError: The inputs do not fit.
        RuntimeMissing: A runtime that was asked for is not installed.

    Example:
        >>> found = tflq.bench("golden/models/digits_autoencoder_int8.tflite", against=(), runs=3)
        >>> found.cases[0].sides[0].is_timed
        True
    """
    how = preparation(mean, std, quantize_inputs, bgr)
    benchmark = Benchmark(
        model,
        profiles,
        against,
        inputs=inputs,
        samples=samples,
        seed=seed,
        signature=signature,
        preparation=how,
        seconds=seconds,
        runs=runs,
        threads=threads,
        python=python,
        progress=progress,
    )
    try:
        return benchmark.run()
    except Exception:
        raise
    except BaseException as stop:
        if all(case.base is None for case in benchmark.result.cases):
            raise
        benchmark.result.stop = stop
        return benchmark.result
