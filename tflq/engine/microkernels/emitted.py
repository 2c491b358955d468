"""Intrinsics of numba whose LLVM code is written here, and the digest of all such code."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

#: The value of an argument as LLVM code.
Value = Any


@cache
def sources() -> str:
    """Return a digest of the files that write code: all of this folder."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Arguments:
    """The arguments of an intrinsic as the values that its code takes, by name."""

    def __init__(self, names: list[str], context: Any, builder: Any, kinds: tuple[Any, ...], values: Any) -> None:
        self.builder = builder
        self._context = context
        self._places = {name: place for place, name in enumerate(names)}
        self._kinds, self._values = kinds, values

    def number(self, name: str, kind: str = "int64") -> Value:
        """Convert a number to a type of numba."""
        from numba.core import types

        place = self._places[name]
        return self._context.cast(self.builder, self._values[place], self._kinds[place], getattr(types, kind))

    def code(self, name: str) -> Value:
        """Cut a number to int32."""
        from llvmlite import ir

        return self.builder.trunc(self.number(name), ir.IntType(32))

    def address(self, name: str, *indices: Value) -> Value:
        """Return the address of an array's element, whose first indices are given and whose others are 0."""
        from llvmlite import ir

        place = self.builder.bitcast(self._array(name).data, ir.IntType(8).as_pointer())
        for axis, index in enumerate(indices):
            place = self.builder.gep(place, [self.builder.mul(index, self.step(name, axis))])
        return place

    def step(self, name: str, axis: int) -> Value:
        """Return the distance of neighbours along an axis, in bytes."""
        return self.builder.extract_value(self._array(name).strides, axis)

    def size(self, name: str, axis: int) -> Value:
        """Return the number of elements along an axis."""
        return self.builder.extract_value(self._array(name).shape, axis)

    def _array(self, name: str) -> Any:
        place = self._places[name]
        return self._context.make_array(self._kinds[place])(self._context, self.builder, self._values[place])


def intrinsic_of(definition: Callable[..., None], write: Callable[[Arguments], None]) -> Any:
    """Return the numba intrinsic with the parameters of `definition` whose code `write` writes."""
    from numba.core import types
    from numba.extending import intrinsic

    parameters = inspect.signature(definition).parameters

    def typed(typing: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            write(Arguments(list(parameters), context, builder, kinds, values))
            return context.get_dummy_value()

        return types.void(*kinds), generate

    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = inspect.Signature([first, *parameters.values()])  # type: ignore[attr-defined]
    typed.__name__ = definition.__name__
    return intrinsic(typed)
