"""Orders in which activations are observed in a model that is already partly quantized."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tflq.progress import Progress
from tflq.quantization.params import Range
from tflq.quantization.ranges.choice import Chooser
from tflq.quantization.ranges.observation import Observations, check_finite
from tflq.quantization.ranges.observers import Observer
from tflq.quantization.ranges.walk import Tap, Walker
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.modes import REFERENCE_PROFILE
from tflq.quantization.scheme.scheme import Form
from tflq.typing import Array


def layer_by_layer(chooser: Chooser, samples: Iterable[Sample], progress: Progress | None = None) -> dict[int, Range]:
    """Return ranges by tensor, of one group after another, in the order in which they are complete.

    Each group is observed while all weights and all earlier groups are quantized. The samples run once for every group.
    """
    groups, begun = list(_in_order(chooser)), chooser.begin()
    walker, ranges = Walker(chooser.weighted.model, REFERENCE_PROFILE), dict[int, Range]()
    decided: dict[int, Callable[[Array], Array]] = {}
    for done, group in enumerate(groups):
        tensors = chooser.groups[group]
        watching = _Watching(chooser, {t: begun.of[t] for t in tensors})
        for number, sample in enumerate(samples):
            walker.walk(sample, watching.tap(number, lambda t, x: decided[t](x) if t in decided else x), tensors)
        chosen = chooser.range(group, watching.seen)
        ranges.update(dict.fromkeys(tensors, chosen))
        decided.update(dict.fromkeys(tensors, _quantizing(chooser, group, chosen)))
        if progress is not None:
            progress("ranging group", done + 1, len(groups))
    return ranges


def online(chooser: Chooser, samples: Iterable[Sample], progress: Progress | None = None) -> dict[int, Range]:
    """Return ranges by tensor, from one pass with quantized weights and activations.

    Every activation is quantized to the range observed so far, its own sample included.
    """
    group_of = {t: group for group, tensors in chooser.groups.items() for t in tensors}
    watching = _Watching(chooser, dict(chooser.begin().of))
    walker = Walker(chooser.weighted.model, REFERENCE_PROFILE)

    def quantized(tensor: int, value: Array) -> Array:
        group = group_of.get(tensor)
        return value if group is None else chooser.quantized(group, value, chooser.start(group, watching.seen))

    for number, sample in enumerate(samples):
        walker.walk(sample, watching.tap(number, quantized), group_of)
        if progress is not None:
            progress("observing sample", number + 1, 0)
    chosen = {group: chooser.range(group, watching.seen) for group in chooser.groups}
    return {t: chosen[group] for t, group in group_of.items()}


class _Watching:
    """Observers that see tensors as they are computed."""

    def __init__(self, chooser: Chooser, of: dict[int, tuple[Observer, ...]]) -> None:
        self._of, self._tensors = of, chooser.scheme.model.graph.tensors
        self.seen = Observations(of)

    def tap(self, number: int, then: Tap) -> Tap:
        """Return a tap that lets the observers see sample `number` before `then` replaces values."""

        def seen(tensor: int, value: Array) -> Array:
            if tensor in self._of and value.size:
                check_finite(value[None], self._tensors[tensor].name or f"#{tensor}", number)
                self._of[tensor] = tuple(observer.update(value[None]) for observer in self._of[tensor])
            return then(tensor, value)

        return seen


def _quantizing(chooser: Chooser, group: Form, chosen: Range) -> Callable[[Array], Array]:
    return lambda value: chooser.quantized(group, value, chosen)


def _in_order(chooser: Chooser) -> Iterator[Form]:
    """Yield groups in the order in which their last tensor is computed."""
    graph = chooser.scheme.model.graph

    def made_at(tensor: int) -> int:
        maker = graph.maker(tensor)
        return -1 if maker is None else maker.index

    yield from sorted(chooser.groups, key=lambda group: max(made_at(t) for t in chooser.groups[group]))
