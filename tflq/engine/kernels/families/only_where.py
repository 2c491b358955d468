"""A row that is known for some geometries only, and refuses the others.

A geometry is described by the names that the conformance suite gives to options and extents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import OptionError, UnknownNameError

_ACTIVATIONS = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}
_PADDINGS = {0: "SAME", 1: "VALID"}


def _option(name: str, usual: int | None = None) -> Callable[[Node], object]:
    return lambda node: int(node.options[name] if usual is None else node.options.get(name, usual))


def _kernel(axis: int, option: str) -> Callable[[Node], object]:
    return lambda node: int(node.options[option]) if option in node.options.fields else node.input(1).shape[axis]


#: Properties that may limit a row, by name. Extents of images are left out: rules on them are hardly about one number.
NAMES: Mapping[str, Callable[[Node], object]] = {
    **{f"stride_{a}": _option(f"stride_{a}") for a in "hw"},
    **{f"dilation_{a}": _option(f"dilation_{a}_factor", 1) for a in "hw"},
    "kernel_h": _kernel(1, "filter_height"),
    "kernel_w": _kernel(2, "filter_width"),
    "padding": lambda node: _PADDINGS.get(int(node.options["padding"]), ""),
    "batch": lambda node: node.input(0).shape[0],
    "depth": lambda node: node.input(0).shape[-1],
    "filters": lambda node: node.outputs[0].shape[-1],
    "units": lambda node: node.outputs[0].shape[-1],
    "groups": lambda node: node.input(0).shape[-1] // max(1, node.input(1).shape[-1]),
    "multiplier": _option("depth_multiplier", 1),
    "rank": lambda node: len(node.input(0).shape),
    "activation": lambda node: _ACTIVATIONS.get(int(node.options.get("fused_activation_function", 0)), ""),
}


@dataclass(frozen=True, slots=True)
class Only:
    """The geometries that are known: values of some names together, as text."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def only_of(stated: Mapping[str, Any]) -> Only:
    """Return the geometries that `stated` gives: `names`, and lists of their `values`.

    Raises:
        UnknownNameError: There is no such name.
        OptionError: A key is missing or unknown, or a list of values does not suit the names.
    """
    names, values = stated.get("names"), stated.get("values")
    lists = (list, tuple)
    if set(stated) != {"names", "values"} or not isinstance(names, lists) or not isinstance(values, lists):
        raise OptionError("only: expected names and lists of their values")
    unknown = next((name for name in names if name not in NAMES), None)
    if unknown is not None:
        raise UnknownNameError("name of a geometry", str(unknown)[:80], tuple(NAMES))
    if not all(isinstance(one, lists) and len(one) == len(names) for one in values):
        raise OptionError(f"only: expected {len(names)} values each")
    return Only(tuple(names), tuple(tuple(map(str, one)) for one in values))


def only_where(row: Kernel, point: Only) -> Kernel:
    """Return the row that refuses geometries that are not known."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        own = tuple(str(NAMES[name](node)) for name in point.names)
        listed = " or ".join(", ".join(map(" ".join, zip(point.names, one, strict=True))) for one in point.values)
        node.check(own in point.values, "is known for some geometries only", expected=listed, got=", ".join(own))
        return row.prepare(node, arithmetic)

    return replace(row, prepare=prepare, takes=None)
