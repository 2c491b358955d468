"""Machine code has no bounds checks, so every compiled function says who guarantees its sizes and indices."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import tflq
from tflq.engine.jit.compiled import Compiled

PACKAGES = (
    "tflq.engine.kernels",
    "tflq.engine.numerics",
    "tflq.engine.jit",
    "tflq.engine.microkernels",
    "tflq.diagnosis",
    "tflq.quantization",
)
#: Annotations of parameters that hold no elements.
SCALARS = frozenset({"Int", "Real", "Complex", "Any", "bool", "int", "float", "Window", "Window3D"})
STATED = re.compile(r"\b(Prepare|Eval|The caller|This function) guarantees: ")


def compiled_functions() -> Iterator[Compiled[..., object]]:
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for found in pkgutil.walk_packages(path, package + "."):
            module = importlib.import_module(found.name)
            yield from (v for v in vars(module).values() if isinstance(v, Compiled) and v.__module__ == found.name)


FUNCTIONS = sorted(compiled_functions(), key=lambda f: (f.__module__, f.__qualname__))


def definition(function: Compiled[..., object]) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function.python))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def handles_elements(node: ast.FunctionDef) -> bool:
    """Whether it reads or writes elements of anything, or hands arrays on to something that does."""
    annotations = {ast.unparse(a.annotation) for a in node.args.args if a.annotation is not None}
    return bool(annotations - SCALARS) or any(isinstance(n, ast.Subscript) for b in node.body for n in ast.walk(b))


def test_all_of_them_are_found() -> None:
    """As many as there are decorators, so that none hides within another function or another package."""
    files = Path(tflq.__file__).parent.rglob("*.py")
    assert len(FUNCTIONS) == sum(len(re.findall(r"^ *@compiled$", f.read_text("utf-8"), re.M)) for f in files)
    assert sum(handles_elements(definition(f)) for f in FUNCTIONS) > 100


def states_guarantees(function: Compiled[..., object]) -> bool:
    return bool(STATED.search(" ".join((function.__doc__ or "").split())))


def test_sizes_and_indices_are_guaranteed() -> None:
    """Each says who guarantees what: 'Prepare guarantees: ...'."""
    handling = [function for function in FUNCTIONS if handles_elements(definition(function))]
    assert not [f"{f.__module__}.{f.__qualname__}" for f in handling if not states_guarantees(f)]
