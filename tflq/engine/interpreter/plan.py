"""Plans and their steps, as values: `planning` makes them, `run` executes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tflq.engine.interpreter.limits import Limits
from tflq.engine.kernels.exactness import Exactness
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape
from tflq.engine.profiles import Profile
from tflq.model.ir import GraphView, Model
from tflq.typing import Array

#: Bindings of steps whose shapes are known only at run time, by step: the shapes, and the bound form.
Bindings = dict[int, tuple[object, Prepared]]
#: Shapes of a subgraph's inputs in order, None for those that change between calls.
Shapes = tuple[Shape | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operator in execution order. `prepared` is None for a step that is bound at run time."""

    index: int
    op: str
    node: Node
    kernel: Kernel
    prepared: Prepared | None
    inputs: tuple[int, ...]  # tensor indices, -1 where absent
    outputs: tuple[int, ...]  # those that are present
    last_uses: tuple[int, ...]  # tensors that no later step reads
    dtypes: tuple[np.dtype[np.generic], ...]  # of the arrays that carry its outputs
    promise: Exactness  # for its results, if its inputs are the runtime's own
    live_bytes: int = 0  # alive while it runs, if the plan is settled

    @property
    def place(self) -> str:
        """The operator's place, with which errors begin."""
        return f"operator {self.index} {self.op}: "


class Subgraphs(Protocol):
    """The plans of the subgraphs that a plan's operators call."""

    def begin(self) -> None:
        """Begin a run, which may prepare as much as any other run."""

    def plan(self, subgraph: int, shapes: Shapes) -> tuple[Plan, Bindings]:
        """Return the subgraph's plan for inputs of those shapes, and its late bindings."""


class Certain(Protocol):
    """Values of computed tensors that are certain before the model runs.

    `early` are the tensors whose shapes depend on such values: a runtime may know them only when it runs.
    """

    @property
    def early(self) -> Collection[int]:
        """Their indices."""

    def everything(self) -> Mapping[int, Array]:
        """Return them by tensor; they are computed once."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A subgraph bound to a profile, for given input shapes."""

    model: Model
    graph: GraphView
    profile: Profile
    operands: tuple[Operand, ...]  # by tensor index; shapes as far as they are known
    expected: Mapping[int, Shape | None]  # by graph input, the planned shape; None: any
    known: tuple[bool, ...]  # by tensor index: True if the operand's shape is certain before the model runs
    steps: tuple[Step, ...]
    variables: tuple[int, ...]  # tensors that keep their value from run to run
    constants: tuple[Array | None, ...]  # by tensor index, and None at the end, which index -1 reads
    makers: Mapping[int, int]  # tensor -> the operator that makes it
    kept: tuple[int, ...]  # tensors that a run holds to its end: the outputs, and unread results
    folding: Certain  # values of computed tensors that do not change between runs
    promises: Mapping[int, Exactness]  # tensor -> its promise, relative to the graph's inputs
    limits: Limits
    peak_memory: int  # bytes alive at the same time, as far as it is known before the model runs
    kept_memory: int  # bytes alive at the same time if nothing is released
    derived_memory: int  # bytes of data derived from constants
    work: int  # of one run, as far as it is known in advance, without calls
    least_work: int  # lower bound for one run, with calls: of several subgraphs the one with the least
    is_settled: bool  # all shapes are known, those of called subgraphs too
    program: Subgraphs  # the other subgraphs, bound if they are called

    @property
    def inputs(self) -> tuple[int, ...]:
        """Tensor indices of the graph's inputs."""
        return self.graph.inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        """Tensor indices of the graph's outputs."""
        return self.graph.outputs
