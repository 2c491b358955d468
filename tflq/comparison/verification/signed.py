"""Choose the signatures that a runtime can run, and those that a recording holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.engine.kernels.compiled_for import refuse_compiled
from tflq.engine.runtimes import Runtime
from tflq.errors import GoldenError, OptionError
from tflq.model.ir import Signed, view


def runnable(parts: Sequence[Signed], runtime: Runtime) -> tuple[Signed, ...]:
    """Return the signatures that a runtime can run: of some runtimes, only one of the first subgraph.

    Raises:
        OptionError: It can run none of them.
        UnsupportedError: A custom operator holds code that was compiled for an accelerator.
    """
    for part in parts:
        refuse_compiled(view(part.model))
    if getattr(runtime, "signatures", True) or all(part.signature is None for part in parts):
        return tuple(parts)
    first = next((part for part in parts if part.root.subgraph == 0), None)
    if first is None:
        names = ", ".join(part.name for part in parts)
        raise OptionError(
            f"{runtime.name} runs the first subgraph of a model only, not {names}: choose another runtime"
        )
    return (replace(first, is_first=True),)


def named(parts: Sequence[Signed], signature: str | None) -> int:
    """Return the position of the signature that a recorded step ran; None means the first subgraph.

    Raises:
        GoldenError: The model has no such signature.
    """
    for k, part in enumerate(parts):
        if part.root.signature == signature:
            return k
    first = next((k for k, part in enumerate(parts) if part.root.subgraph == 0), None)
    if signature is None and first is not None:
        return first
    raise GoldenError(f"holds steps of signature {signature!r}, which the model lacks")
