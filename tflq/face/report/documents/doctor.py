"""The document of `tflq doctor`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import Printed


class DoctorDocument(Printed):
    """The output of `tflq doctor --json`: this machine, its runtimes, and a self-test."""

    schema: Literal["tflq/doctor/1"]
    tflq: str
    python: str
    numpy: str
    numba: str
    platform: str
    kernels: Annotated[str, "the instructions that integer products take, or none"]
    machine_code: Annotated[str, "the folder of compiled code"]
    shipped: Annotated[
        str,
        "the beginning of the SHA-256 of the machine code that came with tflq for this processor; empty if "
        "there is none",
    ]
    runtimes: list[InstalledDocument]
    self_test: SelfTestDocument


class SelfTestDocument(TypedDict):
    cases: Annotated[int, "0: left out, as inputs are drawn otherwise here"]
    problem: str | None


class InstalledDocument(TypedDict):
    name: str
    package: str
    version: Annotated[str | None, "null: not installed"]
    profile: Annotated[str | None, "the profile that it stands for"]
    reason: str
