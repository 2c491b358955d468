"""Functions of micro-kernels that compiled code calls by address: one call for all kernels of a family.

A family is a function of two bodies: LLVM code, which is written for each kernel, and a definition in plain Python. A
kernel's address is that of its machine code. Where the source runs as Python, it is the number of its definition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from tflq.engine.jit.addresses import address_of
from tflq.engine.jit.compiled import Compiled, compiling_is_off
from tflq.engine.microkernels.emitted import Arguments, intrinsic_of, sources

#: Definitions by number, where the source runs as Python.
_DEFINITIONS: list[Callable[..., None]] = []


class Called(Compiled[..., None]):
    """The call of a family's function, whose first parameter `at` is the address.

    Args:
        function: Calls the definition; its parameters are those of the call.
        write: Writes a kernel's function: (module, kernel, name).
        operands: Returns what that function takes, as a tuple of LLVM values, from the arguments of the call.
    """

    writes_code = True

    def __init__(
        self,
        function: Callable[..., None],
        write: Callable[[Any, Any, str], Any],
        operands: Callable[[Arguments], tuple[Any, ...]],
    ) -> None:
        super().__init__(function)
        self._write, self._operands = write, operands

    def address(self, kernel: object, definition: Callable[..., None]) -> int:
        """Return the address of a kernel's function. Equal kernels have equal code, so the representation of `kernel`
        states all of it.

        Raises:
            Unavailable: The system has no memory that may be executed.
        """
        if compiling_is_off():
            _DEFINITIONS.append(definition)
            return len(_DEFINITIONS) - 1
        return address_of(self._name, self.digest_of(kernel), lambda module, name: self._write(module, kernel, name))

    def digest_of(self, kernel: object) -> str:
        """Return a digest of a kernel's code: of the kernel, and of what writes it."""
        return hashlib.sha256(f"{kernel} {sources()}".encode()).hexdigest()[:16]

    def digest(self) -> str:
        """Return a digest of the code that writes the call."""
        return hashlib.sha256(f"{self._name} {sources()}".encode()).hexdigest()[:16]

    @property
    def _name(self) -> str:
        return f"{self.python.__module__}.{self.python.__qualname__}"

    def _link(self) -> Any:
        from llvmlite import ir

        def write(at: Arguments) -> None:
            values = list(self._operands(at))
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
            at.builder.call(at.builder.inttoptr(at.number("at"), kind.as_pointer()), values)

        return intrinsic_of(self.python, write)


def by_address(
    write: Callable[[Any, Any, str], Any], operands: Callable[[Arguments], tuple[Any, ...]]
) -> Callable[[Compiled[..., None]], Called]:
    """Make a function the call of a family. Put it above `@compiled`."""
    return lambda function: Called(function.python, write, operands)


def definition_at(number: int) -> Callable[..., None]:
    """Return the definition of a kernel by what `Called.address` returned for it."""
    return _DEFINITIONS[number]
