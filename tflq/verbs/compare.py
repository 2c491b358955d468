"""`compare`: how close a quantized model of any tool is to its float model, also on several runtimes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from tflq.comparison.verification.outside import codes_of_inputs, watch
from tflq.engine.api.files import Source, load
from tflq.engine.kernels.families.through_floats import CODES
from tflq.engine.profiles import by_name
from tflq.errors import InputWarning
from tflq.model.ir import Model, only_signed, view
from tflq.model.ir.structure import check_structure
from tflq.quantization.calibration import Calibration, CalibrationSource
from tflq.quantization.judge.comparison import Comparison, compare_models
from tflq.quantization.judge.on_runtimes import compare_on
from tflq.quantization.judge.truths import Truth
from tflq.quantization.source import float_model
from tflq.statements import Statement


def compare(
    reference: Source | Model,
    other: Source | Model,
    data: CalibrationSource | Calibration,
    labels: Iterable[Truth] | None = None,
    signature: str | None = None,
    runtimes: Sequence[str] = (),
) -> Comparison:
    """Run two models on data for the first and summarize the differences.

    Each model is a path, the bytes of a file or a Model; the first may be of Keras or ONNX, as `quantize` takes it.
    `data` is a path or an iterable of samples, as `quantize` takes them; `labels` are what is right for each sample: a
    class, objects with boxes (`read_truths` of `judge.truths`), a mask of classes or a picture. Of models with several
    signatures, `signature` names the one to compare.

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
    samples = Calibration(model, data)
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
