"""The report of a quantization of weights: methods, the form of every weight, and the check."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from tflq.engine.api.subject import ModelFacts
from tflq.face.report.blocks import Block, Brief, Code, Fact, Next, Note, Report, Section, Table, Verdict
from tflq.face.report.documents.quantize_weights import QuantizeWeightsDocument
from tflq.face.report.documents.shared import facts_document, fields_of
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.compare.texts import decibels
from tflq.face.report.verbs.quantize.document import check_document
from tflq.face.report.verbs.quantize.texts import check_style, check_text
from tflq.quantization.recipe.files import plain
from tflq.quantization.weights.contest import Judged
from tflq.quantization.weights.quantizing import WeightReport, WeightResult
from tflq.quantization.weights.recipe import digest, document_of

_METHODS = (("KL", ">"), ("logits", ">"), ("same token", ">"), ("method", "<"))
_WEIGHTS = (("role", "<"), ("shape", "<"), ("read by", ">"), ("form", "<"), ("name", "<"))
#: Weights that text lists.
_LISTED = 5


def weights_report(source: ModelFacts, output: ModelFacts, calibration: str, report: WeightReport) -> Report:
    """Build the report of a written model."""
    about = (Code(output.path), " computed from ", Code(source.path), " and ", Code(calibration))
    blocks = list(_blocks(report, output.path))
    profile = report.recipe.profile
    steps = f"tflq session {quote(source.path)} {quote(output.path)} --between {profile} {profile}"
    blocks.append(Next([steps, f"tflq verify {quote(output.path)} --against {profile}"]))
    return Report("quantize", blocks, about=about, title=f"{output.path}: tflq quantize")


def weights_card(report: WeightReport) -> Report:
    """Build the report of a quantization that names no files."""
    return Report(
        "quantize", [*_blocks(report, ""), Brief(check_text(report.check), "Next: .ranking, .layers, .check")]
    )


def weights_result_card(result: WeightResult) -> Report:
    """Build the report of a model with quantized weights."""
    brief = Brief(check_text(result.report.check), "Next: .save(path), .report.ranking, .model")
    return Report("quantize", [*_blocks(result.report, ""), brief])


def _blocks(report: WeightReport, path: str) -> Iterator[Block]:
    best, share = report.ranking[0], report.bytes_after / report.bytes_before
    text = f"logits {decibels(best.noise)}, the same token in {best.agreement:.1%} of {counted(best.steps, 'step')}"
    yield Verdict(f"{text}, {share:.0%} of the size", check_style(report.check), subject=path)
    yield Fact(f"{report.bytes_before:,} bytes before, {report.bytes_after:,} after")
    yield Fact(check_text(report.check))
    if any("blocks" in weight.form for weight in report.layers):
        yield Note("LiteRT's reference kernels (litert-ref) read no scales of blocks and return zeros")
    steps = ", ".join(f"{count} of {name}" for name, count in report.steps.items())
    yield Fact(f"fitted to {counted(report.windows, 'window')} of the text: steps {steps}")
    rows = [_method_row(method) for method in report.ranking]
    yield Section("methods", "Methods, judged on other windows", [Table(_METHODS, rows)])
    weights = [[w.role, str(list(w.shape)), str(w.uses), w.form, w.name[-60:]] for w in report.layers]
    rest = "... and {left} more weights (--html FILE lists all)"
    yield Section("weights", "Weights", [Table(_WEIGHTS, weights, most=_LISTED, rest=rest)])


def _method_row(judged: Judged) -> list[str]:
    return [f"{judged.divergence:.3g}", decibels(judged.noise), f"{judged.agreement:.1%}", str(judged.method)]


def weights_document(
    source: ModelFacts, output: ModelFacts, calibration: str, report: WeightReport
) -> QuantizeWeightsDocument:
    """Return all figures of a quantization of weights: `schemas/quantize-weights.schema.json`."""
    return {
        "schema": "tflq/quantize-weights/1",
        "model": facts_document(source),
        "output": facts_document(output),
        "calibration": calibration,
        "recipe": document_of(report.recipe),
        "recipe_digest": digest(report.recipe),
        "ranking": [
            {
                "method": plain(one.method),
                "divergence": one.divergence,
                "noise": one.noise if one.noise < float("inf") else None,
                "agreement": one.agreement,
                "steps": one.steps,
            }
            for one in report.ranking
        ],
        "layers": [fields_of(layer, shape=list(layer.shape)) for layer in report.layers],
        "steps": dict(report.steps),
        "windows": report.windows,
        "check": check_document(report.check),
    }
