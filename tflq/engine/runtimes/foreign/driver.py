"""A foreign system behind the interface of drivers.py. Part of the program in child.py."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from typing import Any, Optional

_HERE = os.path.dirname(os.path.abspath(__file__))


class Foreign:
    """A model that a foreign system has loaded. It has no signatures, and no state between runs."""

    def __init__(self, load: Any, model: Any) -> None:
        """Load `model`, a path or the bytes of a file, which stays until this object ends."""
        self.folder = None
        if not isinstance(model, str):
            self.folder = tempfile.TemporaryDirectory()
            path = os.path.join(self.folder.name, "model.tflite")
            with open(path, "wb") as file:
                file.write(model)
            model = path
        self.path = model
        self.run = load(model)

    def step(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Run the model; return outputs by position."""
        if signature is not None:
            raise NotImplementedError("a foreign system runs the first subgraph, not signatures")
        stage("invoking")
        return {str(i): value for i, value in enumerate(self.run(self.given(inputs)))}

    def given(self, inputs: Any) -> Any:
        """Return inputs that are named by position, in order."""
        return [inputs[name] for name in sorted(inputs, key=int)]

    def poison(self, signature: Optional[str], inputs: Any, names: Any, stage: Any) -> None:  # noqa: UP045
        """Do nothing: outputs are arrays of the system's own."""

    def bound(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Return a function that does nothing, and one that runs the model: see Desktop.bound."""
        values = self.given(inputs)
        return (lambda: None), (lambda: self.run(values))

    def delegated(self) -> int:
        """Return 0: there are no delegates."""
        return 0


def ready(adapter: str, settings: Any) -> Any:
    """Import a system; return the function that loads a model.

    The model that was loaded last is not loaded again, because it has no state.
    """
    load_path = _load_beside(adapter).ready(settings, _load_beside("tools"))
    latest: Any = [None, None]

    def load(model: Any, job: Any) -> Any:
        if latest[0] != model:
            latest[:] = [None, None]
            latest[:] = [model, Foreign(load_path, model)]
        return latest[1]

    return load


def _load_beside(name: str) -> Any:
    """Load a module of this folder by its path; it may have the name of the system that it imports."""
    spec = importlib.util.spec_from_file_location("tflq_foreign_" + name, os.path.join(_HERE, name + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
