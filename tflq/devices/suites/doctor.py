"""Examine the installation: runtimes, the profile of each, and a self-test against recorded bits."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from importlib import metadata

import numpy as np

from tflq.devices.grids import drafts
from tflq.devices.grids.geometric import choice_of
from tflq.devices.suites.draft import Draft
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.jit import code_store
from tflq.engine.jit.code_store import code_folder
from tflq.engine.jit.processors import machine
from tflq.engine.microkernels.kernel import choose
from tflq.engine.profiles import PROFILES, by_name
from tflq.engine.profiles.profile import Source
from tflq.engine.runtimes import RUNTIMES, Description
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.errors import TflqError
from tflq.model.ir import view
from tflq.texts import Tabular, display_by

#: Every n-th draft of the standard suite is a case of the self-test.
_STEP = 500
#: SHA-256 of their scales, zero points and inputs, and of the outputs of LiteRT 2.3.0, BUILTIN_REF, x86-64, one thread.
DRAWN = "e43afa1837c7622589e9379176f7bf4671df574262b7f8e5249720f5d88f25ef"
RECORDED = "5aead5a4aca9488bf9e30d055ceb3a47e63c4f4643e5988c54bb28cf18cd33b5"


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A runtime: its package's version if it is installed, else the reason; and its profile."""

    name: str
    package: str
    version: str
    profile: str
    reason: str


@display_by("models:doctor_card", "doctor_document", "runtimes")
@dataclass(frozen=True, slots=True)
class Examination(Tabular):
    """The machine, the runtimes and the self-test. `kernels` are the instructions that integer products use."""

    tflq: str
    python: str
    numpy: str
    numba: str
    platform: str
    kernels: str
    machine_code: str
    shipped: str
    runtimes: tuple[Diagnosed, ...]
    tested: int
    failing: str  # the error of the self-test; empty if it passes


def examine(python: str | None = None) -> Examination:
    """Examine everything. `python` is the path of the Python with the runtimes, None for this one.

    Example:
        >>> tflq.examine().failing
        ''
    """
    form = choose(is_wide=False)
    tested, failing = _self_test()
    return Examination(
        tflq=metadata.version("tflq"),
        python=platform.python_version(),
        numpy=np.__version__,
        numba=metadata.version("numba"),
        platform=f"{platform.system()} {platform.machine()}",
        kernels="none" if form is None else form.name,
        machine_code=str(code_folder().path),
        shipped=code_store.digest(),
        runtimes=tuple(_runtime(name, python) for name in RUNTIMES),
        tested=tested,
        failing=failing,
    )


def _runtime(name: str, python: str | None) -> Diagnosed:
    package = RUNTIMES[name].package
    try:
        description = runtime_by_name(name, python=python).describe()
    except TflqError as error:
        return Diagnosed(name, package, "", "", str(error))
    profile = next((p for p, known in PROFILES.items() if _describes(known.source, description)), "")
    return Diagnosed(
        name, description.package, description.version, profile, "" if profile else "no profile of this version"
    )


def _describes(source: Source, description: Description) -> bool:
    """Return whether a profile's source matches a runtime's description of itself.

    A daily build has the time of the day in its version, which a profile leaves out.
    """
    is_here = source.cpu == "any" or ("AArch64" in source.cpu) == (machine() == "aarch64")
    time = description.version.removeprefix(source.version)
    is_version = not time or (".dev" in source.version and time != description.version and time.isdecimal())
    is_kind = (source.package, source.resolver) == (description.package, description.resolver)
    return is_here and is_version and is_kind


def cases() -> list[Draft]:
    """Return the one-operator models of the self-test, which cover all kinds of operators in suites."""
    return [draft for draft in drafts(0, "standard") if choice_of(draft.aim) is None][::_STEP]


def digests() -> tuple[int, str, str]:
    """Return the number of cases, and the SHA-256 of their inputs and of the results of `litert-ref`."""
    profile, drawn, computed, count = by_name("litert-ref"), hashlib.sha256(), hashlib.sha256(), 0
    for draft in cases():
        model = load(draft.model())
        for spec in view(model).tensors:
            if spec.quantization is not None:
                drawn.update(spec.quantization.scale.tobytes() + spec.quantization.zero_point.tobytes())
        plan = make_plan(model, profile)
        for sample in draft.samples:
            for value in sample:
                drawn.update(np.ascontiguousarray(value).tobytes())
            values = run(plan, dict(zip(plan.inputs, sample, strict=True))).values
            for tensor in plan.outputs:
                computed.update(np.ascontiguousarray(values[tensor]).tobytes())
        count += 1
    return count, drawn.hexdigest(), computed.hexdigest()


def _self_test() -> tuple[int, str]:
    try:
        count, drawn, computed = digests()
    except TflqError as error:
        return 0, str(error)
    if drawn != DRAWN:  # another NumPy or C library draws different scales
        return 0, ""
    return count, "" if computed == RECORDED else "results differ from those recorded from LiteRT 2.3"
