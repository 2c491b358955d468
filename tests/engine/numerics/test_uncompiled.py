"""The compiled code is the readable code: the same bits where nothing is compiled and numba is never imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support import uncompiled_cases
from support.each import each

SCRIPT = Path(uncompiled_cases.__file__)


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory):
    out = tmp_path_factory.mktemp("uncompiled") / "results.npz"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    # numba is made impossible to import: plain Python must not even look for it.
    code = (
        f"import runpy, sys; sys.modules['numba'] = None; sys.argv = ['', {str(out)!r}]; "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return dict(np.load(out))


@pytest.fixture(scope="module")
def compiled():
    return uncompiled_cases.results()


@each("name", uncompiled_cases.CASES)
def test_same_bits(name, compiled, uncompiled):
    assert compiled[name].dtype.kind == uncompiled[name].dtype.kind
    np.testing.assert_array_equal(compiled[name], uncompiled[name], strict=False)
    assert compiled[name].size > 0


def test_importing_numerics_does_not_import_numba():
    modules = [p.stem for p in Path(uncompiled_cases.rounding.__file__).parent.glob("*.py") if p.stem != "__init__"]
    names = ", ".join(f"tflq.engine.numerics.{m}" for m in modules)
    code = f"import sys, {names}; sys.exit('numba' in sys.modules or 'llvmlite' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
