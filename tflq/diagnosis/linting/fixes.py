"""Corrections that change no bit of the kernels' results: kernels read none of the fields written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.diagnosis.linting.findings import Finding
from tflq.diagnosis.linting.site import Site
from tflq.diagnosis.linting.versions import needed_version
from tflq.diagnosis.linting.weights import accumulator_scale
from tflq.model.ir import Model, OperatorCode, Quantization, TensorSpec, view, with_graph


def fixed(model: Model, findings: Sequence[Finding]) -> tuple[Model, tuple[Finding, ...]]:
    """Return the model with every safe correction applied, and the corrected findings.

    A tensor or operator code that several operators use is corrected for the first finding. Kernels only check bias
    scales and zero points, and never compute with them. A version is raised, never lowered.
    """
    corrected: list[Finding] = []
    for finding in findings:
        if finding.fixable:
            model = _FIXES[finding.rule](model, finding)
            corrected.append(finding)
    return model, tuple(corrected)


def _bias_scale(model: Model, finding: Finding) -> Model:
    scale = accumulator_scale(_site(model, finding))
    if scale is None:
        return model
    spec = _spec(model, finding)
    old = spec.quantization or Quantization(scale, np.zeros(1, np.int64))
    points = np.zeros(scale.size, np.int64) if old.zero_point.size != scale.size else old.zero_point
    return _with_spec(model, finding, replace(spec, quantization=replace(old, scale=scale, zero_point=points)))


def _bias_zero_point(model: Model, finding: Finding) -> Model:
    spec = _spec(model, finding)
    if spec.quantization is None:
        return model
    symmetric = replace(spec.quantization, zero_point=np.zeros_like(spec.quantization.zero_point))
    return _with_spec(model, finding, replace(spec, quantization=symmetric))


def _version(model: Model, finding: Finding) -> Model:
    """Return the model in which the operator gets a code of its own; operators of other types keep theirs."""
    site = _site(model, finding)
    code = site.operator.code
    raised = replace(code, version=max(code.version, needed_version(site)))
    codes, number = _with_code(model.operator_codes, raised)
    operators = list(site.graph.record.operators)
    operators[site.index] = replace(site.operator.record, opcode_index=number)
    graph = replace(site.graph.record, operators=tuple(operators))
    return with_graph(replace(model, operator_codes=codes), graph, site.subgraph)


def _with_code(codes: tuple[OperatorCode, ...], code: OperatorCode) -> tuple[tuple[OperatorCode, ...], int]:
    return (codes, codes.index(code)) if code in codes else ((*codes, code), len(codes))


def _site(model: Model, finding: Finding) -> Site:
    return Site(model, finding.subgraph, finding.operator)


def _spec(model: Model, finding: Finding) -> TensorSpec:
    return view(model, finding.subgraph).tensors[finding.tensor or 0]


def _with_spec(model: Model, finding: Finding, spec: TensorSpec) -> Model:
    graph = view(model, finding.subgraph)
    tensors = list(graph.tensors)
    tensors[finding.tensor or 0] = spec
    return with_graph(model, replace(graph.record, tensors=tuple(tensors)), finding.subgraph)


_FIXES = {"bias-scale": _bias_scale, "bias-zero-point": _bias_zero_point, "operator-version": _version}
