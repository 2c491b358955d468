"""Write schemas/tflm_memory.json: sizes of tflite-micro's structures, and the methods that register operators.

SOURCES holds checkouts named after their repositories: tflite-micro (tensorflow), flatbuffers, gemmlowp and ruy
(google). Requires g++, nm and arm-none-eabi-g++ with its C++ library.

    python tools/make_micro_memory.py SOURCES --version 0.dev20260820164721

Each kernel is compiled with a tail of arrays as long as its structures: for the Python wheel, which is built with
compression, and for Cortex-M4. What parsers and `init` allocate is read from the sources.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

PATH = Path(__file__).resolve().parent.parent / "schemas" / "tflm_memory.json"
#: Compilers by layout, as `tflq.comparison.inspection.arena.BuildLayout` names them.
COMPILERS = {
    "wheel": ("g++", "-DUSE_TFLM_COMPRESSION"),
    "cortex-m": ("arm-none-eabi-g++", "-mcpu=cortex-m4", "-mthumb", "-fno-exceptions"),
}
FLAGS = ("-std=c++17", "-c", "-w", "-DNDEBUG", "-DTF_LITE_STATIC_MEMORY")
KERNELS = "tensorflow/lite/micro/kernels/"
HEADERS = (
    "tensorflow/lite/micro/recording_micro_allocator.h",
    "tensorflow/lite/micro/memory_planner/greedy_memory_planner.h",
    "tensorflow/lite/micro/arena_allocator/recording_single_arena_buffer_allocator.h",
    "tensorflow/lite/c/builtin_op_data.h",
)
#: Structures of the interpreter.
INTERPRETER = (
    "SingleArenaBufferAllocator",
    "MicroAllocator",
    "GreedyMemoryPlanner",
    "SubgraphAllocations",
    "TfLiteEvalTensor",
    "NodeAndRegistration",
    "ScratchBufferHandle",
    "void*",
    "TfLiteTensor",
    "TfLiteAffineQuantization",
)
#: Structures that the wheel's interpreter, which prints allocations, has instead.
RECORDING = {
    "SingleArenaBufferAllocator": "RecordingSingleArenaBufferAllocator",
    "MicroAllocator": "RecordingMicroAllocator",
}
#: Structures that kernels allocate while they are prepared.
PREPARED = {
    "AddNData": ("add_n.cc", "OpData"),
    "CumSumData": ("cumsum.cc", "OpData"),
    "LogSoftmaxData": ("log_softmax.cc", "LogSoftmaxOpData"),
}

Sizes = dict[str, list[int]]  # bytes and alignment


def sizes(root: Path, includes: tuple[str, ...], names: list[str], compiler: tuple[str, ...]) -> Sizes:
    """Return bytes and alignment of structures that the included files define in namespace tflite."""
    arrays = "".join(
        f'extern "C" char size_{k}[sizeof({name})]; char size_{k}[sizeof({name})];\n'
        f'extern "C" char align_{k}[alignof({name})]; char align_{k}[alignof({name})];\n'
        for k, name in enumerate(names)
    )
    paths = [f"-I{root / name}" for name in ("tflite-micro", "flatbuffers/include", "gemmlowp", "ruy")]
    with TemporaryDirectory() as folder:
        source, made = Path(folder, "sizes.cc"), Path(folder, "sizes.o")
        lines = "".join(f'#include "{path}"\n' for path in includes)
        source.write_text(f"{lines}namespace tflite {{\n{arrays}}}\n", encoding="utf-8")
        subprocess.run([*compiler, *FLAGS, "-o", made, source, *paths], check=True)
        listed = subprocess.run(["nm", "-S", made], check=True, capture_output=True, text=True).stdout
    found = {name: int(size, 16) for size, name in re.findall(r"^\S+ (\S+) \S (\w+)$", listed, re.M)}
    return {name: [found[f"size_{k}"], found[f"align_{k}"]] for k, name in enumerate(names)}


def registered(micro: Path) -> dict[str, dict[str, str | None]]:
    """Return, by operator: the method that registers it, its parser, and the name of its registration."""
    text = (micro / "tensorflow/lite/micro/micro_mutable_op_resolver.h").read_text(encoding="utf-8")
    found: dict[str, dict[str, str | None]] = {}
    for method, body in re.findall(r"TfLiteStatus (Add\w+)\((.*?)\n  }", text, re.S):
        builtin = re.search(r"AddBuiltin\(\s*BuiltinOperator_(\w+),\s*\w[^,]*,\s*(\w+)\)", body)
        custom = re.search(r'AddCustom\("([^"]+)"', body)
        registration = re.search(r"Register_(\w+)\(", body)
        name = builtin[1] if builtin else custom[1] if custom else None
        if name is not None and registration is not None:
            found[name] = {"add": method, "parser": builtin[2] if builtin else None, "of": registration[1]}
    return found


def parameters(micro: Path) -> dict[str, str]:
    """Return the structure that each parser allocates."""
    text = (micro / "tensorflow/lite/core/api/flatbuffer_conversions.cc").read_text(encoding="utf-8")
    bodies = re.findall(r"^TfLiteStatus (Parse\w+)\((.*?)^}", text, re.S | re.M)
    return {name: made[1] for name, body in bodies if (made := re.search(r"Allocate<(\w+)>", body))}


def kernels(micro: Path, compressed: bool) -> dict[str, str]:
    """Return the source of each kernel, with or without what is compiled for compression alone."""
    texts = {p.name: p.read_text(encoding="utf-8") for p in (micro / KERNELS).glob("*.cc") if "test" not in p.name}
    pattern = re.compile(r"^#ifdef USE_TFLM_COMPRESSION\n(.*?)(?:^#else[^\n]*\n(.*?))?^#endif", re.S | re.M)
    return {name: pattern.sub(lambda m: m[1] if compressed else m[2] or "", text) for name, text in texts.items()}


def data_of(texts: Mapping[str, str], registration: str) -> tuple[str, str] | None:
    """Return the file of a kernel and the structure that its `init` allocates, "" for none; None if it is not clear."""
    pattern = re.compile(rf"Register_{registration}\(\)\s*{{(.*?)}}", re.S)
    for name, text in texts.items():
        if found := pattern.search(text):
            if other := re.search(r"return Register_(\w+)\(\)", found[1]):
                return data_of(texts, other[1])
            init = re.search(r"RegisterOp\(\s*(?:/\*init=\*/)?\s*(?:tflite::)?(\w+)", found[1])
            if init is None or init[1] == "nullptr":
                return (name, "") if init else None
            body = re.compile(rf"\b{init[1]}\([^)]*\)\s*{{(.*?)\n}}", re.S)
            own = [text, *texts.values()] if body.search(text) else texts.values()
            bodies = [found for other in own for found in body.findall(other)]
            structures = re.findall(r"sizeof\((\w+)\)", bodies[0]) if bodies else []
            if bodies and bodies[0].strip() == "return nullptr;":
                return name, ""
            return (name, structures[0]) if structures else None
    return None


def layout(root: Path, name: str, operators: Mapping[str, Mapping[str, str | None]]) -> dict[str, object]:
    """Return the bytes and alignments of one layout: of structures, and of what operators hold."""
    micro, compiler = root / "tflite-micro", COMPILERS[name]
    parsed, texts = parameters(micro), kernels(micro, name == "wheel")
    kept = {op: data_of(texts, str(one["of"])) for op, one in operators.items()}
    wanted: dict[str, list[str]] = {}
    for file, structure in (*filter(None, kept.values()), *PREPARED.values()):
        if structure and structure not in wanted.setdefault(file, []):
            wanted[file].append(structure)
    options = {op: parsed[one["parser"]] for op, one in operators.items() if one["parser"] in parsed}
    names = {own: RECORDING.get(own, own) if name == "wheel" else own for own in INTERPRETER}
    common = sizes(root, HEADERS, sorted({*options.values(), *names.values()}), compiler)
    made = {file: sizes(root, (KERNELS + file,), own, compiler) for file, own in wanted.items() if own}
    pointer = common["void*"][0]
    return {
        "structures": {
            "MicroBuiltinDataAllocator": [2 * pointer, pointer],  # a table of methods, and a pointer
            **{own: common[there] for own, there in names.items()},
            **{own: made[file][there] for own, (file, there) in PREPARED.items()},
        },
        "parameters": {op: common[there] for op, there in sorted(options.items())},
        "data": {
            op: made[place[0]][place[1]][0] if place[1] else 0
            for op, place in sorted(kept.items())
            if place is not None
        },
    }


def document(root: Path, version: str) -> dict[str, object]:
    """Return the document."""
    operators = registered(root / "tflite-micro")
    return {
        "source": f"tflite-micro {version}",
        "methods": {op: one["add"] for op, one in sorted(operators.items())},
        **{name: layout(root, name, operators) for name in COMPILERS},
    }


def text_of(made: dict[str, object]) -> str:
    """Return the document as JSON with one line for each structure and operator."""
    return re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", json.dumps(made, indent=1)) + "\n"


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--version", required=True)
    given = parser.parse_args()
    PATH.write_text(text_of(document(given.sources, given.version)), encoding="utf-8")


if __name__ == "__main__":
    main()
