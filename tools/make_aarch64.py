"""Make the folders that tools/agree.py needs to run AArch64 wheels under qemu's user emulation.

Needs a Debian with apt-get and dpkg-deb whose Python is 3.11 (Debian 12), pip, and qemu-aarch64 to run the result.
Nothing is installed on the machine: packages of arm64 are unpacked below RUNTIMES.

    python tools/make_aarch64.py RUNTIMES

RUNTIMES gets aarch64 (a file tree with Python, and a Cortex-A76 in proc/cpuinfo), aarch64-a53 (the
same tree, Cortex-A53) and one folder for each of `WHEELS`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGES = ("python3.11-minimal", "libpython3.11-stdlib", "libstdc++6", "libgomp1")
#: Folder of packages for Python -> what pip gets for it.
WHEELS = {
    "aarch64-ai-edge-litert-2.3.0": ("ai-edge-litert==2.3.0", "numpy==2.2.6"),
    "aarch64-tflite-runtime-2.14.0": ("tflite-runtime==2.14.0", "numpy==1.26.4"),
}
PLATFORMS = ("manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_34_aarch64")
#: Tree -> part number, variant and features in /proc/cpuinfo, by which XNNPACK chooses kernels.
PROCESSORS = {
    "aarch64": (
        0xD0B,
        4,
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp",
    ),
    "aarch64-a53": (0xD03, 0, "fp asimd evtstrm aes pmull sha1 sha2 crc32"),
}


def unpack_system(root: Path) -> None:
    """Unpack the packages of arm64 with all that they depend on; apt keeps its state in a folder that is removed."""
    with TemporaryDirectory() as name:
        state = Path(name)
        for folder in ("lists/partial", "archives/partial"):
            (state / folder).mkdir(parents=True)
        (state / "status").touch()
        settings = {
            "APT::Architecture": "arm64",
            "APT::Architectures": "arm64",
            "APT::Sandbox::User": "",
            "Debug::NoLocking": "1",
            "Dir::State": name,
            "Dir::State::status": str(state / "status"),
            "Dir::Cache": name,
        }
        apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in settings.items())]
        run([*apt, "update"])
        run([*apt, "install", "--yes", "--no-install-recommends", "--download-only", *PACKAGES])
        for package in sorted((state / "archives").glob("*.deb")):
            run(["dpkg-deb", "--extract", str(package), str(root)])


def describe_processor(root: Path, part: int, variant: int, features: str) -> None:
    """Write the files about processors: without them a runtime would read those of this machine."""
    (root / "proc").mkdir(parents=True, exist_ok=True)
    facts = {"processor": "0", "Features": features, "CPU implementer": "0x41", "CPU architecture": "8"}
    facts |= {"CPU variant": f"{variant:#x}", "CPU part": f"{part:#x}", "CPU revision": "1"}
    text = "".join(f"{key}\t: {value}\n" for key, value in facts.items())
    (root / "proc" / "cpuinfo").write_text(text + "\n", encoding="utf-8")
    processors = root / "sys/devices/system/cpu"
    processors.mkdir(parents=True, exist_ok=True)
    for name in ("possible", "present", "online"):
        (processors / name).write_text("0\n", encoding="utf-8")


def unpack_wheels(into: Path, wanted: Sequence[str]) -> None:
    """Unpack wheels of AArch64 for CPython 3.11."""
    with TemporaryDirectory() as name:
        platforms = [f"--platform={platform}" for platform in PLATFORMS]
        options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311"]
        run([sys.executable, "-m", "pip", "download", "--quiet", *options, *platforms, "--dest", name, *wanted])
        for wheel in Path(name).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(into)


def run(command: Sequence[str]) -> None:
    """Run a command; its failure ends this program."""
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed with exit status {done.returncode}")


def main() -> int:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="RUNTIMES")
    folder = parser.parse_args().folder.resolve()
    tree = folder / "aarch64"
    if not tree.exists():
        unpack_system(tree)
    for name, facts in PROCESSORS.items():
        root = folder / name
        root.mkdir(exist_ok=True)
        for part in ("bin", "lib", "usr", "etc"):
            if not (root / part).exists():
                (root / part).symlink_to(tree / part)
        describe_processor(root, *facts)
    for name, wanted in WHEELS.items():
        if not (folder / name).exists():
            unpack_wheels(folder / name, wanted)
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
