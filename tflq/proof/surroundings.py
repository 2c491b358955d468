"""Whether an operator taken out of its model gets the operands there that it has alone.

A proof is about shapes and constants. An operator alone has those that the file declares. In the model, other operators
may compute its shapes when the model runs, or write to a tensor whose buffer has data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.errors import TflqError
from tflq.interpreter import Plan, make_plan
from tflq.ir import Model
from tflq.profiles import Profile
from tflq.proof.operator import UNKNOWN_SHAPES


def put_first(model: Model, subgraph: int) -> Model:
    """Return the model with that subgraph in the place of the first."""
    graphs = list(model.subgraphs)
    graphs[0], graphs[subgraph] = graphs[subgraph], graphs[0]
    return replace(model, subgraphs=tuple(graphs), signature_defs=None) if subgraph else model


class Surroundings:
    """The first subgraph of a model as a whole, under the first of the profiles that takes it."""

    def __init__(self, model: Model, profiles: Sequence[Profile]) -> None:
        self._model = model
        self._graph = model.subgraphs[0]
        self._plan = next((plan for plan in (_planned(model, p) for p in profiles) if plan is not None), None)
        self._made = {t for operator in self._graph.operators for t in operator.outputs}

    def objection(self, index: int) -> str:
        """Return why what an operator does alone proves nothing of the model; empty where it does."""
        read = [t for t in self._graph.operators[index].inputs if t >= 0]
        if any(t in self._made and self._has_data(t) for t in read):
            return "an operator writes to its constants"
        if not all(map(self._is_declared, read)):
            return UNKNOWN_SHAPES
        return ""

    def _has_data(self, tensor: int) -> bool:
        number = self._graph.tensors[tensor].buffer
        return 0 <= number < len(self._model.buffers) and self._model.buffers[number].data is not None

    def _is_declared(self, tensor: int) -> bool:
        """Whether a tensor has the shape that the file declares, whenever the model runs."""
        spec = self._graph.tensors[tensor]
        if tensor in self._graph.inputs:
            return True
        if self._plan is not None:
            return self._plan.known[tensor] and self._plan.operands[tensor].shape == tuple(spec.shape or ())
        return spec.shape_signature is None or -1 not in spec.shape_signature


def _planned(model: Model, profile: Profile) -> Plan | None:
    try:
        return make_plan(model, profile)
    except TflqError:
        return None
