"""The runtimes that can be started here, each named by its profile, and how to get those that are absent.

A folder holds them: environments and programs named by `Device.place`. docs/how-to/same-bits-everywhere.md makes one.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from opfuzz.releases import releases

WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Device:
    """A runtime: `command` and the model's path start it. `absent` is the reason why it cannot be started.

    It reports only, and cannot disagree, if it computes in float inside.
    """

    name: str
    command: tuple[str, ...]
    resolver: str = ""
    absent: str = ""
    reports_only: bool = False

    def started_with(self, model: Path) -> list[str]:
        """Return the command line."""
        return [*self.command, str(model), *([self.resolver] if self.resolver else [])]


#: The suffix of XNNPACK's profiles on a processor without AVX-512.
_AVX2 = "-avx2"


def devices(folder: Path) -> dict[str, Device]:
    """Return every runtime by name, present or not; XNNPACK on this processor by the plain name, too."""
    found = (*_desktop(folder), *_micro(folder), *_emulated(folder), *_float(folder))
    known = {device.name: device for device in found}
    return {**{name.removesuffix(_AVX2): device for name, device in known.items()}, **known}


def _desktop(folder: Path) -> Iterator[Device]:
    """Yield the released Python packages on this processor."""
    for release in releases(folder):
        own = release.python == Path(sys.executable)
        package = release.python.parent.parent.name.rsplit("-", 1)[0] if not own else "ai-edge-litert"
        missing = find_spec("ai_edge_litert") is None if own else not release.python.exists()
        wanted = "ai-edge-litert is not installed" if own else f"{release.python} does not exist"
        yield Device(
            release.profile, (str(release.python), str(WORKER), package), release.resolver, wanted if missing else ""
        )


def _micro(folder: Path) -> Iterator[Device]:
    """Yield TensorFlow Lite Micro: its wheel, and the programs of tools/build_micro.py."""
    yield _packaged(folder, "tflm", "tflite-micro")
    for name in ("tflm-cmsis-nn", "tflm-cmsis-nn-single"):
        program = folder / name
        absent = "" if program.exists() else f"{program} does not exist: see tools/build_micro.py"
        yield Device(name, (str(program),), absent=absent)


#: Wheels for AArch64 with the suffix of their profiles, the processor that is emulated, and the file tree with it.
_AARCH64 = (
    ("ai-edge-litert-2.3.0", "litert-ref-arm64", "BUILTIN_REF", "cortex-a76", "aarch64"),
    ("ai-edge-litert-2.3.0", "litert-opt-arm64", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "cortex-a76", "aarch64"),
    ("ai-edge-litert-2.3.0", "litert-xnnpack-arm64", "BUILTIN", "cortex-a76", "aarch64"),
    ("ai-edge-litert-2.3.0", "litert-xnnpack-arm64-a53", "BUILTIN", "cortex-a53", "aarch64-a53"),
    ("tflite-runtime-2.14.0", "tflite-2.14-opt-arm64", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "cortex-a76", "aarch64"),
)


def _emulated(folder: Path) -> Iterator[Device]:
    """Yield AArch64 wheels in a Debian file tree, under qemu's user emulation."""
    for wheel, name, resolver, processor, tree in _AARCH64:
        packages, root = folder / f"aarch64-{wheel}", folder / tree
        missing = [
            f"{path} does not exist: see tools/make_aarch64.py" for path in (root, packages) if not path.exists()
        ]
        absent = "" if shutil.which("qemu-aarch64") else "qemu-aarch64 is not installed"
        absent = absent or next(iter(missing), "")
        command = ["qemu-aarch64", "-cpu", processor, "-L", str(root), "-E", f"PYTHONPATH={packages}"]
        command += ["-E", "PYTHONDONTWRITEBYTECODE=1", str(root / "usr/bin/python3.11"), str(WORKER)]
        yield Device(name, (*command, wheel.rsplit("-", 1)[0]), resolver, absent)


def _float(folder: Path) -> Iterator[Device]:
    """Yield runtimes that compute quantized operators in float."""
    for package in ("openvino", "apache-tvm"):
        yield _packaged(folder, package, package, reports_only=True)


def _packaged(folder: Path, name: str, package: str, *, reports_only: bool = False) -> Device:
    python = folder / package / "bin" / "python"
    absent = "" if python.exists() else f"{python} does not exist: an environment with {package}"
    return Device(name, (str(python), str(WORKER), package), "", absent, reports_only)
