"""Plant changes into kernels of TensorFlow Lite Micro, and count those that `tflq conform diff` names.

Each change of kernel_changes.yaml is made in a copy of one source file, which is compiled and linked with the unchanged
rest. Both programs run a suite, and their runs are compared. A change is *named* if the changed operators are those
that it is made in. Its *formula* is right if the arithmetic or place that `diff` names for every changed type matches
its `truth`; "nearest" and "unknown" name none.

    tflq conform make -o suite.npz --level smoke --profile tflm-2026.9
    python tools/plant_changes.py SOURCES suite.npz -o CHANGED
    python tools/plant_changes.py SOURCES suite.npz -o CHANGED --only "conv rounds once" --json

SOURCES are the checkouts of tools/build_micro.py. CHANGED keeps programs and runs, so that a second call only compares
what is new. Exit status: 0 all changes are named, and no formula is wrong; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from build_micro import FLAGS, LEFT_OUT, PROGRAM, core_sources, includes

from tflq.face.report.verbs.conform_changes import computed_text
from tflq.verbs.conform import diff_verdicts

HERE = Path(__file__).resolve().parent
REFERENCE = "kernels/internal/reference"
#: Texts that name no arithmetic.
SILENT = ("unknown", "not run")
#: Names of a program and of its run in the folder of a change.
BUILT, RAN = "program", "run.json"


def changes() -> list[dict[str, Any]]:
    """Return the changes."""
    found: list[dict[str, Any]] = yaml.safe_load((HERE / "kernel_changes.yaml").read_text(encoding="utf-8"))
    return found


def planted(text: str, change: Mapping[str, Any]) -> str:
    """Return a file's text with a change.

    Raises:
        ValueError: The text lacks what is replaced.
    """
    pattern = r"\s+".join(re.escape(word) for word in change["old"].split())
    pattern = re.sub(r"(\\\(|\\;|;)", r"\1", pattern).replace(r"\s+", r"(?:\s|//[^\n]*\n)+")
    changed, count = re.subn(pattern, lambda _: change["new"], text, count=0 if change.get("every") else 1)
    if not count:
        raise ValueError(f"{change['name']}: {change['file']} has no {change['old']}")
    return changed


class Build:
    """Programs of one folder: the unchanged objects, and one program for each change."""

    def __init__(self, sources: Path, folder: Path) -> None:
        """Compile what is missing of the unchanged program, with a list of headers for each object."""
        self.lite = sources / "tflite-micro/tensorflow/lite"
        self.folder, self.plain = folder, folder / "plain"
        if not (self.plain / BUILT).exists():
            self.plain.mkdir(parents=True, exist_ok=True)
            self.includes = includes(sources, self.plain)
            kernels = sorted((self.lite / "micro/kernels").glob("*.cc"))
            files = [PROGRAM, *core_sources(self.lite.parents[1])]
            files += [p for p in kernels if not LEFT_OUT.search(f"/{p.name}")]
            for number, file in enumerate(files):
                self.compile(file, self.plain / f"{number}.o", self.includes)
            self.link(sorted(self.plain.glob("*.o")), self.plain / BUILT)
        self.includes = [f"-I{self.plain}"]
        self.includes += [f"-I{sources / name}" for name in ("tflite-micro", "gemmlowp", "ruy")]

    def compile(self, file: Path, target: Path, options: Sequence[str]) -> None:
        """Compile one source, with a list of its headers beside the object."""
        header = HERE / "agreement/planted.h"
        command = ["g++", "-std=c++17", "-fno-exceptions", *FLAGS, *options, "-MMD", "-include", str(header)]
        subprocess.run([*command, "-c", str(file), "-o", str(target)], check=True)

    def link(self, objects: Sequence[Path], target: Path) -> None:
        """Link a program."""
        subprocess.run(["g++", "-Wl,--gc-sections", *map(str, objects), "-lm", "-o", str(target)], check=True)

    def changed(self, change: Mapping[str, Any]) -> Path:
        """Return the program with a change: only what reads the changed file is compiled again."""
        folder = self.folder / change["name"].replace(" ", "_")
        program = folder / BUILT
        if program.exists():
            return program
        name = change["file"].replace("{R}", REFERENCE)
        copy = folder / "tensorflow/lite" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(planted((self.lite / name).read_text(encoding="utf-8"), change), encoding="utf-8")
        original = str(self.lite / name)
        objects = []
        for one in sorted(self.plain.glob("*.o")):
            read = one.with_suffix(".d").read_text(encoding="utf-8").replace("\\\n", " ").split()
            if original in read:
                again = folder / one.name
                source = copy if read[1] == original else Path(read[1] if read[1].endswith(".cc") else read[2])
                self.compile(source, again, [f"-I{folder}", *self.includes])
                objects.append(again)
            else:
                objects.append(one)
        self.link(objects, program)
        return program


def run_of(program: Path, suite: Path) -> Path:
    """Return the document of a program's run of a suite."""
    target = program.parent / RAN
    if not target.exists():
        words = [sys.executable, "-m", "tflq", "conform", "run", str(suite), "--target", "micro-program"]
        words += ["--target-option", f"program={program}", "--json"]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode not in (0, 1):
            raise RuntimeError(ran.stderr)
        target.write_text(ran.stdout, encoding="utf-8")
    return target


def judged(change: Mapping[str, Any], before: Path, after: Path) -> dict[str, Any]:
    """Return what `diff` names for a change, and whether it is right."""
    found = diff_verdicts(before, after)
    expected = {change["op"], *change.get("also", [])}
    operators = sorted({kernel.op for kernel in found.kernels})
    own = [kernel for kernel in found.kernels if kernel.op == change["op"]]
    kernels = [
        {
            "types": k.types,
            "changed": len(k.changes),
            "cases": k.cases,
            "before": computed_text(k.before),
            "after": computed_text(k.after),
        }
        for k in own
    ]
    known = [one["after"] for one in kernels if not one["after"].startswith("nearest: ") and one["after"] not in SILENT]
    right = [bool(re.search(change["truth"], text)) for text in known]
    named = bool(own) and (change.get("also") == "*" or set(operators) <= expected)
    formula = (
        "none" if not known else "wrong" if not all(right) else "right" if len(known) == len(kernels) else "in part"
    )
    return {
        "name": change["name"],
        "kind": change["kind"],
        "operators": operators,
        "named": named,
        "formula": formula,
        "kernels": kernels,
    }


def main() -> int:
    """Build, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, metavar="SOURCES")
    parser.add_argument("suite", type=Path, metavar="SUITE")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="CHANGED")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this change")
    parser.add_argument("--build", action="store_true", help="compile only")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    build = Build(args.sources.resolve(), args.output.resolve())
    chosen = [one for one in changes() if not args.only or one["name"] in args.only]
    results = []
    for one in chosen:
        program = build.changed(one)
        if not args.build:
            results.append(judged(one, run_of(build.plain / BUILT, args.suite), run_of(program, args.suite)))
            if not args.json:
                print(describe(results[-1]), flush=True)
    if args.json:
        print(json.dumps(results, indent=1))
    count = sum(one["named"] for one in results)
    counts = Counter(one["formula"] for one in results)
    print(f"{count} of {len(results)} named; formula: {dict(counts)}", file=sys.stderr)
    return 0 if count == len(results) and not counts["wrong"] else 1


def describe(one: Mapping[str, Any]) -> str:
    """Return a result in lines."""
    lines = [f"{'named' if one['named'] else 'NOT NAMED'}, formula {one['formula']}: {one['name']}"]
    lines.append(f"   operators: {', '.join(one['operators'])}")
    lines += [f"   {s['types']}: {s['changed']} of {s['cases']}: {s['before']} -> {s['after']}" for s in one["kernels"]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
