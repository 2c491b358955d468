"""The subgraphs that other subgraphs of a model call: bound at the first call, and then kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tflq.engine.interpreter.limits import DEFAULT_WORK, PREPARE_STEP_WORK, PREPARE_WORK, Limits, Meter, call_work
from tflq.engine.interpreter.plan import Bindings, Plan, Shapes
from tflq.engine.kernels.exactness import Exactness
from tflq.engine.kernels.kernel import Callee, Shape
from tflq.engine.profiles import Profile
from tflq.errors import LimitError, ModelError
from tflq.model.ir import Model, view

#: Maximum number of levels of subgraphs that call each other.
_DEEPEST = 50
#: Number of kept plans of one subgraph, each for a combination of input shapes.
_KEPT = 16


class Program:
    """Plans of called subgraphs, by subgraph and input shapes, on which alone they depend."""

    def __init__(self, model: Model, profile: Profile, limits: Limits, planner: Callable[..., Plan]) -> None:
        self.model, self.profile, self.limits = model, profile, limits
        self._planner = planner
        self._plans: dict[int, dict[Shapes, tuple[Plan, Bindings]]] = {}
        self._planning: list[int] = []
        self._handles: dict[tuple[str, str], int] | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a run, which may prepare as much as any other run."""
        self._planned = Meter(max(self.limits.work, DEFAULT_WORK))

    def plan(self, subgraph: int, shapes: Shapes) -> tuple[Plan, Bindings]:
        """Return the subgraph's plan for inputs of those shapes, and its late bindings."""
        known = self._plans.setdefault(subgraph, {})
        entry = known.get(shapes)
        if entry is None:
            if len(known) == _KEPT:
                del known[next(iter(known))]
            entry = known[shapes] = (self._make(subgraph, shapes), {})
        return entry

    @property
    def derived_memory(self) -> int:
        """Bytes that the kept plans have derived from constants."""
        return sum(plan.derived_memory for plans in self._plans.values() for plan, _ in plans.values())

    def handles(self) -> dict[tuple[str, str], int]:
        """Return numbers of the model's resource variables by (container, name), in the order of their VAR_HANDLEs.

        Source: LiteRT 2.3 var_handle.cc Init.
        """
        if self._handles is None:
            self._handles = {}
            graphs = [view(self.model, index) for index in range(len(self.model.subgraphs))]
            for op in (op for graph in graphs for op in graph.ops if op.builtin == "VAR_HANDLE"):
                fields = op.options.fields if op.options else {}
                name = fields.get("container") or "", fields.get("shared_name") or ""
                self._handles.setdefault(name, len(self._handles))
        return self._handles

    def _make(self, subgraph: int, shapes: Shapes) -> Plan:
        graph = view(self.model, subgraph)
        if subgraph in self._planning:
            raise ModelError("a subgraph calls itself", got=subgraph)
        if len(self._planning) == _DEEPEST:
            raise LimitError(f"subgraphs call each other more than {_DEEPEST} levels deep")
        self._planned.spend(PREPARE_WORK + len(graph.ops) * PREPARE_STEP_WORK, f"preparing subgraph {subgraph}: ")
        inputs = graph.inputs
        if len(inputs) != len(shapes):
            raise ModelError("number of inputs of a called subgraph", expected=len(inputs), got=len(shapes))
        self._planning.append(subgraph)
        try:
            shape_of = dict(zip(inputs, shapes, strict=True))
            return self._planner(self.model, self.profile, subgraph, shape_of, self.limits, self)
        finally:
            self._planning.pop()


class Surroundings:
    """The part of its program that one operator sees during preparation; it counts the called subgraphs."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.peak_memory = 0  # bytes, of the largest requested subgraph
        self.is_settled = True  # True if the plans of those subgraphs are settled
        self.promises: list[Exactness] = []  # of the results of those subgraphs
        self._least_works: list[int] = []  # of each

    @property
    def least_work(self) -> int:
        """Lower bound on the work of the operator's calls: one of the requested subgraphs runs once."""
        return min(self._least_works, default=0)

    def subgraph(self, index: int, shapes: Sequence[Shape]) -> Callee:
        """Bind a subgraph to the shapes of its inputs; everything that it cannot run is refused here."""
        plan = self._plan(index, tuple(shapes))
        return Callee(
            index=index,
            inputs=tuple(plan.operands[tensor] for tensor in plan.inputs),
            outputs=tuple(plan.operands[tensor] for tensor in plan.outputs),
            shapes=tuple(plan.operands[t].shape if plan.known[t] else None for t in plan.outputs),
        )

    def check(self, index: int) -> None:
        """Refuse operators that a subgraph cannot run for any shapes of its inputs."""
        graphs = self._program.model.subgraphs
        count = len(graphs[index].inputs) if 0 <= index < len(graphs) else 0
        self._plan(index, (None,) * count)

    def handle(self, container: str, name: str) -> int:
        """Return the number by which all subgraphs refer to the resource of that name."""
        return self._program.handles()[container, name]

    def operators(self, index: int) -> tuple[str, ...]:
        """Return the names of a subgraph's operators, in order."""
        return tuple(op.builtin for op in view(self._program.model, index).ops)

    def _plan(self, index: int, shapes: Shapes) -> Plan:
        plan, _ = self._program.plan(index, shapes)
        self.peak_memory = max(self.peak_memory, plan.peak_memory)
        self.is_settled &= plan.is_settled
        self.promises.extend(plan.promises.values())
        self._least_works.append(call_work(len(plan.steps)) + plan.least_work)
        return plan
