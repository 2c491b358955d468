"""A pytest plugin that replaces an interpreter by tflq before the tests are collected.

It reads these environment variables: PEER_PACKAGE, the package whose interpreter is replaced ("" for none: that of
PEER_ORIGINAL is counted), and PEER_ALIAS, "name=target" for a package that the tests import under another name. Each
test that creates an Interpreter gets the property `interpreter` in the JUnit report.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

_made = 0


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports of `name.*` give `target.*`."""

    def __init__(self, name: str, target: str) -> None:
        self._name, self._target = name, target

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return a spec that returns the target's module; None if there is none."""
        if not fullname.startswith(f"{self._name}."):
            return None
        try:
            importlib.import_module(self._target + fullname[len(self._name) :])
        except ImportError:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the target's own module."""
        return sys.modules[self._target + spec.name[len(self._name) :]]

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has already been executed."""


class Below(importlib.abc.MetaPathFinder):
    """Modules of `target` that the installed package lacks are files of `name` below the working directory."""

    def __init__(self, name: str, target: str) -> None:
        self._name, self._target = name, target

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the file's spec, if there is one."""
        if not fullname.startswith(f"{self._target}."):
            return None
        words = (self._name + fullname[len(self._target) :]).split(".")
        file = os.path.join(os.getcwd(), *words) + ".py"
        return importlib.util.spec_from_file_location(fullname, file) if os.path.isfile(file) else None


def stub(name: str, **members: Any) -> None:
    """Install a stub of a module that only the other project's build creates."""
    module = ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


def stub_test_data() -> None:
    """Install stubs of the native modules of tflite/python/testdata.

    They are a registerer that counts its calls, and a TensorFlow operator.
    """
    calls: list[object] = []
    stub("tflite.python.testdata", __path__=[])
    stub(
        "tflite.python.testdata._pywrap_test_registerer",
        TF_TestRegisterer=calls.append,
        get_num_test_registerer_calls=lambda: len(calls),
    )
    stub("tflite.python.testdata.double_op")


def counted(init: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor, which also counts its calls."""

    def __init__(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
        global _made
        _made += 1
        init(self, *arguments, **options)

    return __init__


def replace_interpreter() -> None:
    """Replace the interpreter, and count created ones."""
    alias, package = os.environ.get("PEER_ALIAS", ""), os.environ.get("PEER_PACKAGE", "")
    if alias:
        sys.meta_path.insert(0, Alias(*alias.split("=")))
        sys.meta_path.append(Below(*alias.split("=")))
        stub_test_data()
    if package:
        import tflq

        interpreter: Any = tflq.install_as(package)
    else:
        interpreter = importlib.import_module(os.environ["PEER_ORIGINAL"])
    interpreter.Interpreter.__init__ = counted(interpreter.Interpreter.__init__)


@pytest.fixture(autouse=True)
def _count(record_property: Callable[[str, object], None]) -> Any:
    before = _made
    yield
    if _made > before:
        record_property("interpreter", "made")


replace_interpreter()  # before any conftest.py is imported, which may import the package under test
