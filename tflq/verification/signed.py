"""The signatures of a model that are compared, each as a model of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflq.errors import GoldenError, OptionError
from tflq.ir import Model, Root, chosen_roots, rooted
from tflq.ir.signatures import is_plain
from tflq.runtimes import Runtime


@dataclass(frozen=True, slots=True, eq=False)
class Signed:
    """One signature: its root in the file, the model rooted there, and its name in reports.

    A model that callers run in one way only has one without a name, whose model is the file's. `is_first` is set for a
    runtime that runs the first subgraph only.
    """

    root: Root
    model: Model
    name: str
    is_first: bool = False

    @property
    def signature(self) -> str | None:
        """The signature to run it by; None for the first subgraph."""
        return self.root.signature if self.name and not self.is_first else None


def signed(model: Model, signature: str | None = None) -> tuple[Signed, ...]:
    """Return all signatures, or one by its name.

    Raises:
        UnknownNameError: The model has no such signature.
        ModelError: A signature refers to a subgraph that the model does not have.
    """
    chosen = chosen_roots(model, signature)
    if is_plain(model):
        return (Signed(chosen[0], model, ""),)
    return tuple(Signed(root, rooted(model, root), str(root)) for root in chosen)


def runnable(parts: Sequence[Signed], runtime: Runtime) -> tuple[Signed, ...]:
    """Return the signatures that a runtime can run: of some runtimes, only one of the first subgraph.

    Raises:
        OptionError: It can run none of them.
    """
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
