"""`tflq quantize` for decoders: their weights, for all signatures at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflq.face.cli.exits import exit_of_check
from tflq.face.cli.files import write_page
from tflq.face.cli.output import is_quiet, say, say_document

if TYPE_CHECKING:
    from tflq.engine.api.subject import Subject
    from tflq.quantization.weights.recipe import WeightRecipe


def quantize_weights_of(
    source: Subject,
    calibration: str,
    output: str,
    recipe: WeightRecipe,
    tokenizer: str | None,
    html: str | None,
    *,
    as_json: bool,
) -> int:
    """Quantize the weights of a model of several signatures, write it and report."""
    from tflq.comparison.sessions.tokenizers import tokenizer_of
    from tflq.engine.api.subject import store
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.quantize.weights import weights_document, weights_report
    from tflq.quantization.weights.quantizing import quantize_weights

    words = tokenizer_of(tokenizer, source.facts.path)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        result = quantize_weights(source.model, calibration, recipe, progress, tokenizer=words)
    written = store(result.model, output)
    shown = weights_report(source.facts, written, calibration, result.report)
    if html is not None:
        write_page(html, shown)
    if as_json:
        say_document(weights_document(source.facts, written, calibration, result.report))
    else:
        say(shown)
    check = result.report.check
    return exit_of_check(None if check.report is None else check.report.verdict.value, check.error)
