"""The signatures of a model, each as a model of its own: verbs work on them in turn."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.model.ir.model import Model
from tflq.model.ir.signatures import Root, choose_roots, is_plain, only_root, rooted


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
    chosen = choose_roots(model, signature)
    if is_plain(model):
        return (Signed(chosen[0], model, ""),)
    return tuple(Signed(root, rooted(model, root), str(root)) for root in chosen)


def only_signed(model: Model, signature: str | None = None) -> Signed:
    """Return one signature by its name, or the only one.

    Raises:
        UnknownNameError: The model has no such signature.
        InputError: The model has several signatures, and none is named.
    """
    root = only_root(model, signature)
    return Signed(root, model, "") if is_plain(model) else Signed(root, rooted(model, root), str(root))
