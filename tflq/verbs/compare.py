"""`compare` and `bench`: models side by side, and runtimes.

`compare`: how close a quantized model of any tool is to its float model, also on several runtimes.

`bench`: a model's times under profiles and in real runtimes, in turns within one run.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from tflq.comparison.bench import Benched, Benchmark
from tflq.comparison.inputs.prepare import Numbers, codes_of_inputs, preparation, watch
from tflq.comparison.inputs.read import Feed
from tflq.engine.api.files import Source, load
from tflq.engine.kernels.families.reals import CODES
from tflq.engine.profiles import by_name
from tflq.errors import InputWarning
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model, only_signed, view
from tflq.model.ir.graph import check_structure
from tflq.quantization.judge.comparison import Fidelities, compare_models
from tflq.quantization.judge.outputs import Truth
from tflq.quantization.judge.runtimes import compare_on
from tflq.quantization.samples import Calibration, CalibrationSource
from tflq.quantization.source import float_model
from tflq.texts import Statement


def compare(
    reference: Source | Model,
    other: Source | Model,
    inputs: CalibrationSource | Calibration,
    labels: Iterable[Truth] | None = None,
    signature: str | None = None,
    runtimes: Sequence[str] = (),
) -> Fidelities:
    """Run two models on data for the first and summarize the differences.

    Each model is a path, the bytes of a file or a Model; the first may be of Keras or ONNX, as `quantize` takes it.
    `inputs` are a path or an iterable of samples, as `quantize` takes them; `labels` are what is right for each sample:
    a class, objects with boxes (`read_truths` of `judge.truths`), a mask of classes or a picture. Of models with
    several signatures, `signature` names the one to compare.

    `runtimes` are profiles, by name or path, on which `other` runs: the figures are those of the first, and `.runtimes`
    has a row for each, with the bits of that runtime. Without them, `other` runs on `litert-ref`. The reference always
    does.

    Warns with InputWarning if the first model is quantized and the other is not, and if more than 1 % of a float
    input's values are far outside of the range of the other model's input.

    Raises:
        InputError: The models' inputs or outputs do not correspond, the number of labels differs from the number of
            samples, or the data do not fit the model.
        UnknownNameError: There is no such profile.
        UnsupportedError: The first of `runtimes` does not take `other`.

    Example:
        >>> rows = np.load("golden/models/digits_test.npz")["images"][:20]
        >>> models = "golden/models/digits_autoencoder_float.tflite", "golden/models/digits_autoencoder_int8.tflite"
        >>> found = tflq.compare(*models, np.float32(rows / 16))
        >>> found.samples, found.sqnr > 20
        (20, True)
    """
    for name in runtimes:
        by_name(name)
    models = float_model(reference), load(other)
    check_structure(models[1])
    model, quantized = (only_signed(one, signature).model for one in models)
    if _has_codes(model) and not _has_codes(quantized):
        text = "the first model is quantized and the second is float; the first counts as right: is the order meant?"
        warnings.warn(InputWarning(Statement(text, "order-of-models")), stacklevel=2)
    samples = Calibration(model, inputs)
    codes = codes_of_inputs(view(model), view(quantized))
    watching = watch(samples, codes, has_scaling=samples.scaling is not None)
    if runtimes:
        return compare_on(model, quantized, samples, labels, runtimes, watching)
    return compare_models(model, quantized, watching, labels)


def _has_codes(model: Model) -> bool:
    """Return whether an operator gives codes with a scale."""
    graph = view(model)
    results = (graph.tensors[t] for op in graph.ops for t in op.outputs if t >= 0)
    return any(t.quantization is not None and t.type in CODES for t in results)


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
