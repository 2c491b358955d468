"""The names of the package: complete, callable whatever was imported before, and cheap to import."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import tflq
from support.each import each

FUNCTIONS = ("load", "save", "verify", "record", "Interpreter")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@each("name", tflq.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(tflq, name) is not None
    assert name in dir(tflq)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        tflq.nothing_of_that_name  # noqa: B018


@pytest.mark.slow
def test_names_stay_callable_after_every_submodule_import() -> None:
    modules = [m.name for m in pkgutil.walk_packages(tflq.__path__, "tflq.") if not m.name.endswith("__main__")]
    assert len(modules) > 30
    imports = "; ".join(f"import {name}" for name in modules)
    checks = "; ".join(f"assert callable(tflq.{name}), {name!r}" for name in FUNCTIONS)
    run(f"{imports}; {checks}")


def test_no_public_name_is_a_submodule() -> None:
    assert not set(tflq.__all__) & {module.name for module in pkgutil.iter_modules(tflq.__path__)}


def test_import_loads_nothing_heavy() -> None:
    heavy = "('numpy', 'numba', 'llvmlite', 'flatbuffers', 'click', 'rich')"
    assert run(f"import tflq, sys; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_an_interpreter_without_a_run_does_not_load_numba() -> None:
    assert run("import tflq, sys; tflq.Interpreter; print('numba' in sys.modules)") == "False"


def test_no_tflite_runtime_is_imported() -> None:
    runtimes = "('ai_edge_litert', 'tensorflow', 'tflite_runtime', 'tflite_micro')"
    assert (
        run(f"import tflq, sys; tflq.Interpreter, tflq.verify; print([m for m in {runtimes} if m in sys.modules])")
        == "[]"
    )
