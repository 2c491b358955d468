"""A rule about composites: the subgraph of one must compute what its name means.

A runtime that knows the name never runs the subgraph, and one that does not runs nothing else. litert-torch 0.10
writes attention with one head of keys wrongly: a transpose became a RESHAPE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tflq.comparison.inspection.fidelity import decibels
from tflq.comparison.verification.generators import GENERATORS, generate
from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import Site
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.model.surgery.tap import single_operator
from tflq.typing import Array

#: Profiles of a runtime that knows names, and of one that runs subgraphs.
_BY_NAME, _BY_SUBGRAPH = "litert-xnnpack", "litert-ref"
#: Less signal to noise than this, dB, is no difference of rounding.
_SAME = 60.0


def decomposition(site: Site) -> Iterator[Breach]:
    """Yield composites whose subgraph gives something else than the operator of their name, on drawn inputs."""
    if site.op != "STABLEHLO_COMPOSITE" or site.first is None:
        return
    try:
        alone, _ = single_operator(site.first, site.index)
        if not _is_known(alone):
            return
        inputs = generate(alone, GENERATORS["random"], 1, 0)[0]
        meant, computed = (_outputs(alone, name, inputs) for name in (_BY_NAME, _BY_SUBGRAPH))
    except TflqError:
        return  # a profile refuses it, so the two cannot be compared
    for output, a, b in zip(site.operator.outputs, meant, computed, strict=True):
        noise = decibels(a, b) if a.shape == b.shape else -np.inf
        if noise < _SAME:
            name = site.operator.options["name"] if site.operator.options else ""
            yield Breach(output, f"the results of {name}", f"a subgraph with other results ({noise:.0f} dB)")


def _is_known(model: Model) -> bool:
    """Return whether the runtime that knows names has a kernel of its own for the operator."""
    kernels = [make_plan(model, by_name(name)).steps[0].kernel for name in (_BY_NAME, _BY_SUBGRAPH)]
    return kernels[0] is not kernels[1]


def _outputs(model: Model, profile: str, inputs: Sequence[Array]) -> list[Array]:
    graph = view(model)
    trace = run(make_plan(model, by_name(profile)), dict(zip(graph.inputs, inputs, strict=True)))
    return [trace.values[tensor] for tensor in graph.outputs]


RULES = (Rule("composite", Level.WARNING, "runtimes that know a composite's name give other results", decomposition),)
