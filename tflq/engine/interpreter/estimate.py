"""The resources of a plan, added up while its steps are bound and compared with the limits."""

from __future__ import annotations

from collections.abc import Iterable

from tflq.engine.interpreter.footprint import Footprint
from tflq.engine.interpreter.limits import Limits, Meter
from tflq.engine.interpreter.memory import Budget, beyond
from tflq.engine.interpreter.plan import Step
from tflq.engine.interpreter.program import Surroundings
from tflq.engine.kernels.kernel import Operand
from tflq.typing import Array

#: Bytes that may always be derived from constants: a few tables for each operator.
_DERIVED = 1 << 28


class Estimate:
    """Memory and work of one plan. `derived_before` are bytes that other plans of its program derived from constants.

    `is_settled` is True if every shape was known so far.
    """

    def __init__(self, limits: Limits, derived_before: int) -> None:
        self.is_settled = True
        self._limits = limits
        self._budget, self._derived = Budget(limits.memory), Footprint()
        self._meter, self._least = Meter(limits.work), Meter(limits.work)
        self._derived_before = derived_before

    @property
    def room(self) -> int:
        """Bytes that are left at the present step."""
        return self._budget.room

    @property
    def live_bytes(self) -> int:
        """Bytes that are alive at the present step."""
        return self._budget.total

    @property
    def peak_memory(self) -> int:
        """Peak of the bytes that are alive at the same time."""
        return self._budget.peak

    @property
    def kept_memory(self) -> int:
        """Bytes alive at the same time if nothing is released."""
        return self._budget.kept + self._budget.beside

    @property
    def derived_memory(self) -> int:
        """Bytes of arrays that were derived from constants."""
        return self._derived.bytes

    @property
    def work(self) -> int:
        """Passes of innermost loops, without those of subgraphs that are called."""
        return self._meter.spent

    @property
    def least_work(self) -> int:
        """The least work that the subgraphs can take."""
        return self._least.spent

    def derive(self, values: Iterable[Array | None], place: str = "") -> None:
        """Count memory derived from the file's constants: converted constants, or a step's prepared data."""
        self._derived.add(*values)
        total, limit = self._derived_before + self._derived.bytes, max(self._limits.memory, _DERIVED)
        if total > limit:
            raise beyond(place, total, limit, "data derived from constants")

    def start(self, operand: Operand) -> None:
        """Count a tensor that exists before the first step."""
        self._budget.hold(operand, operand.shape)

    def call(self, step: Step, around: Surroundings) -> None:
        """Count the work of a step, and the memory of the subgraphs that it calls."""
        self._budget.check(around.peak_memory, step.place, "the subgraphs that it calls")
        if step.prepared is None:
            self.is_settled = False
            return
        self._meter.spend(step.prepared.work or 0, step.place)
        self._least.spend((step.prepared.work or 0) + around.least_work, step.place)
        self.derive([step.prepared.data], step.place)
        self.is_settled &= (
            around.is_settled and None not in step.prepared.shapes and isinstance(step.prepared.scratch, int)
        )

    def make(self, step: Step, operand: Operand) -> None:
        """Count an output of a step."""
        self._budget.hold(operand, operand.shape, step.place)

    def finish(self, step: Step) -> None:
        """Count a step's working memory, then release tensors that are no longer read."""
        if step.prepared is not None and isinstance(step.prepared.scratch, int):
            self._budget.check(step.prepared.scratch, step.place, "its working memory")
        self._budget.release(step.last_uses)
