"""Compile TensorFlow Lite Micro with CMSIS-NN's kernels for this machine, as two programs for tools/agree.py.

One rounds twice (the library's default), the other is compiled with CMSIS_NN_USE_SINGLE_ROUNDING. SOURCES holds
checkouts named after their repositories on github.com: tflite-micro (tensorflow), CMSIS-NN (ARM-software), flatbuffers,
gemmlowp and ruy (google). Requires gcc and g++.

    python tools/build_micro.py SOURCES -o RUNTIMES

RUNTIMES gets tflm-cmsis-nn and tflm-cmsis-nn-single.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

PROGRAM = Path(__file__).with_name("agreement") / "micro.cc"
#: Folders of the library whose sources every program needs, below tensorflow/.
CORE = (
    "compiler/mlir/lite/core/api",
    "compiler/mlir/lite/schema",
    "lite/core/api",
    "lite/core/c",
    "lite/kernels",
    "lite/kernels/internal",
    "lite/kernels/internal/reference",
    "lite/micro",
    "lite/micro/arena_allocator",
    "lite/micro/memory_planner",
    "lite/micro/tflite_bridge",
)
#: Sources that are tests, or that need libraries which the program does not use.
LEFT_OUT = re.compile(
    r"test|fake_|mock_|kernel_runner|/(decode|decompress|ethosu|detection_post|circular|call_once|if|wh)"
)
FLAGS = ("-O2", "-fwrapv", "-ffunction-sections", "-fno-strict-aliasing", "-w", "-DTF_LITE_STATIC_MEMORY")
#: The programs, with what their kernels of CMSIS-NN are compiled with.
PROGRAMS = {"tflm-cmsis-nn": [], "tflm-cmsis-nn-single": ["-DCMSIS_NN_USE_SINGLE_ROUNDING"]}


def core_sources(root: Path) -> list[Path]:
    """Return the library's sources apart from kernels."""
    found = [p for folder in CORE for p in sorted((root / "tensorflow" / folder).glob("*.cc"))]
    return [p for p in found if not LEFT_OUT.search(p.as_posix().removeprefix(root.as_posix()))]


def kernel_sources(root: Path) -> tuple[list[Path], list[Path]]:
    """Return the kernels that CMSIS-NN has none for, and those that call it."""
    folder = root / "tensorflow/lite/micro/kernels"
    replacing = sorted((folder / "cmsis_nn").glob("*.cc"))
    names = {p.name for p in replacing}
    plain = [p for p in sorted(folder.glob("*.cc")) if p.name not in names and not LEFT_OUT.search("/" + p.name)]
    return plain, replacing


def library_sources(sources: Path) -> list[Path]:
    """Return CMSIS-NN's integer kernels."""
    found = sorted((sources / "CMSIS-NN/Source").glob("*/*.c"))
    return [p for p in found if not p.stem.endswith(("_f16", "_f32", "_flt"))]


def includes(sources: Path, folder: Path) -> list[str]:
    """Return the options for headers; FlatBuffers' are given the version that the schema asks for."""
    schema = (sources / "tflite-micro/tensorflow/lite/schema/schema_generated.h").read_text(encoding="utf-8")
    base = (sources / "flatbuffers/include/flatbuffers/base.h").read_text(encoding="utf-8")
    for part in ("MAJOR", "MINOR", "REVISION"):
        asked = re.search(rf"FLATBUFFERS_VERSION_{part} == (\d+)", schema)
        if asked:
            base = re.sub(rf"(#define FLATBUFFERS_VERSION_{part}) \d+", rf"\1 {asked[1]}", base)
    (folder / "flatbuffers").mkdir()
    (folder / "flatbuffers/base.h").write_text(base, encoding="utf-8")
    for header in (sources / "flatbuffers/include/flatbuffers").iterdir():
        if header.name != "base.h":
            (folder / "flatbuffers" / header.name).symlink_to(header.resolve())
    names = ("tflite-micro", "gemmlowp", "ruy", "CMSIS-NN", "CMSIS-NN/Include")
    return [f"-I{folder}", *(f"-I{sources / name}" for name in names)]


def compiled(files: Iterable[Path], folder: Path, options: Sequence[str], jobs: int) -> list[Path]:
    """Return the object files; equal names in different folders are kept apart by number."""
    folder.mkdir()

    def one(numbered: tuple[int, Path]) -> Path:
        number, file = numbered
        target = folder / f"{number}_{file.stem}.o"
        language = ["gcc"] if file.suffix == ".c" else ["g++", "-std=c++17", "-fno-exceptions"]
        subprocess.run([*language, *FLAGS, *options, "-c", str(file), "-o", str(target)], check=True)
        return target

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, enumerate(files)))


def build(sources: Path, into: Path, jobs: int) -> None:
    """Write the programs."""
    root = sources / "tflite-micro"
    with TemporaryDirectory() as name:
        folder = Path(name)
        headers = includes(sources, folder)
        plain, replacing = kernel_sources(root)
        shared = compiled([PROGRAM, *core_sources(root), *plain], folder / "shared", headers, jobs)
        for program, defines in PROGRAMS.items():
            files = [*replacing, *library_sources(sources)]
            objects = compiled(files, folder / program, [*headers, "-DCMSIS_NN", *defines], jobs)
            command = ["g++", "-Wl,--gc-sections", *map(str, [*shared, *objects]), "-lm", "-o", str(into / program)]
            subprocess.run(command, check=True)
            print(into / program, flush=True)


def main() -> int:
    """Build; exit code 2 if something is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, metavar="SOURCES", help="folder of the five checkouts")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="RUNTIMES", help="folder for the programs")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="compilers at a time")
    args = parser.parse_args()
    absent = [
        n for n in ("tflite-micro", "CMSIS-NN", "flatbuffers", "gemmlowp", "ruy") if not (args.sources / n).is_dir()
    ]
    if absent:
        print(f"{args.sources}: no checkout of {', '.join(absent)}", file=sys.stderr)
        return 2
    args.output.mkdir(parents=True, exist_ok=True)
    build(args.sources.resolve(), args.output, args.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
