"""The comparison of one run of an operator, and comparisons that several profiles share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from tflq.comparison.inspection.constants import Constants, constants_of
from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.results import Located
from tflq.engine.api.part import Part
from tflq.engine.interpreter import Plan, State
from tflq.engine.kernels.kernel import Prepared
from tflq.engine.profiles import Profile
from tflq.errors import ShapeError
from tflq.model.ir import TensorSpec
from tflq.typing import Array

UNKNOWN = "the runtime holds no value for it"
REWRITTEN = "several operators write it, and only its last value is known"


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One run of an operator: its comparison, its results, and its variables afterwards, by original index."""

    located: Located
    results: Mapping[int, Array] = field(default_factory=dict)
    variables: Mapping[int, Array] = field(default_factory=dict)

    @property
    def apart(self) -> int:
        """The distance of all elements, by histograms, whose reach limits each element's share."""
        found = self.located.differences.values()
        return sum(d.differing + sum(abs(step) * count for step, count in d.histogram) for d in found)


class Shared:
    """Comparisons of one operator at a time that several profiles share: equal keys of `computes` mean equal bits."""

    def __init__(self, computes: Callable[[Part, Profile], Hashable]) -> None:
        self._computes = computes
        self._index = -1
        self._known: dict[Hashable, tuple[Part, Mapping[int, Array], Compared]] = {}
        self._keys: dict[tuple[int, int], tuple[Hashable, Part, Profile]] = {}

    def _key(self, part: Part, profile: Profile) -> Hashable:
        """Return the key of `computes`, which depends on the part's model and the profile, not on the inputs."""
        of = id(part.model), id(profile)
        if of not in self._keys:  # part and profile stay alive, so their identities stay valid
            self._keys[of] = self._computes(part, profile), part, profile
        return self._keys[of][0]

    def get(
        self, part: Part, profile: Profile, sample: int, variables: Mapping[int, Array], compare: Callable[[], Compared]
    ) -> Compared:
        """Return the earlier comparison of the same arrays, or a new one."""
        if part.index != self._index:
            self._index, self._known, self._keys = part.index, {}, {}
        arrays = (*sorted(part.inputs.items()), *sorted(variables.items()))
        key = self._key(part, profile), sample, tuple((t, id(value)) for t, value in arrays)
        if key not in self._known:
            self._known[key] = part, dict(variables), compare()  # the arrays stay alive, so their identities stay valid
        return self._known[key][2]


def readable(dump: Dump, makers: Mapping[int, int], index: int) -> dict[int, Array]:
    """Return the dumped values from before operator `index`.

    Tensors that it or a later operator writes are left out.
    """
    return {t: value for t, value in dump.tensors.items() if makers.get(t, -1) < index}


def require_shape(plan: Plan, tensor: int, spec: TensorSpec, value: Array | None) -> None:
    """Raise a ShapeError if a dumped value has neither the file's shape nor the planned one.

    It is raised only if the planned shape is certain.
    """
    if value is not None and plan.known[tensor]:
        shape = plan.operands[tensor].shape
        if value.shape not in (shape, spec.shape):
            raise ShapeError(spec.name or f"#{tensor}", shape, value.shape)


def constants_after(prepared: Prepared | None, state: State, index: int) -> Constants | None:
    """Return the prepared constants of step `index`, from before the run or during it."""
    if prepared is None and index in state.bound:
        prepared = state.bound[index][1]
    return None if prepared is None else constants_of(prepared)
