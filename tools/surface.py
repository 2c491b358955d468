"""Write what every command answers on the golden models, and compare two such files.

A restructuring that must not change an answer is checked with it: write one file before, one after, and compare.

    python tools/surface.py write before.json
    python tools/surface.py compare before.json after.json

Each command runs in a process of its own, in a folder that holds copies of golden files, 80 columns wide. Kept are its
exit code, what it printed, and digests of the files that it wrote. Seconds, sizes and paths of the machine are masked.

Exit status: 0 the files are equal; 1 answers differ; 2 nothing was compared.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

DIFFERENT, NOTHING = 1, 2
ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "golden"

#: Files of golden/ under the names that the commands use.
FILES = {
    "int8.tflite": "models/digits_mobilenet_int8.tflite",
    "float.tflite": "models/digits_mobilenet_float.tflite",
    "int16.tflite": "models/digits_mobilenet_int16x8.tflite",
    "unet.tflite": "models/digits_unet_int8.tflite",
    "lstm.tflite": "models/digits_lstm_int8.tflite",
    "decoder.tflite": "models/tiny_decoder_float.tflite",
    "small.tflite": "models/tiny_decoder_int8.tflite",
    "golden.npz": "recorded/digits_mobilenet_int8.npz",
    "unet.npz": "recorded/digits_unet_int8.npz",
    "lstm.npz": "recorded/digits_lstm_int8.npz",
    "device.npz": "dumps/digits_mobilenet_int8.cmsis_single.npz",
    "double.npz": "dumps/digits_mobilenet_int8.cmsis_double.npz",
    "layers.bin": "dumps/digits_mobilenet_int8.layer_by_layer.bin",
    "lstm_float.tflite": "models/digits_lstm_float.tflite",
    "coder.tflite": "models/digits_autoencoder_float.tflite",
    "unet_float.tflite": "models/digits_unet_float.tflite",
}

#: The commands, without `tflq`. Only quantize asks a real runtime, where one is installed.
COMMANDS = """
--help
inspect int8.tflite
inspect lstm.tflite --json
inspect int8.tflite --html inspect.html
inspect decoder.tflite
inspect nothing.tflite
inspect golden.npz
lint int8.tflite
lint unet.tflite --json
lint lstm.tflite --html lint.html
profiles
profiles --json
profiles show litert-xnnpack
profiles diff litert-ref tflm
profiles effects int8.tflite --profile litert-ref --profile tflm
profiles effects int8.tflite --json
profiles releases int8.tflite --since 2.3
run int8.tflite --inputs golden.npz -o out.npz
verify int8.tflite --golden golden.npz
verify unet.tflite --golden unet.npz --json
verify lstm.tflite --golden lstm.npz --html verify.html
verify int8.tflite --golden golden.npz --profile tflm-cmsis-nn-single
verify int8.tflite --golden unet.npz
golden show golden.npz
golden show golden.npz --json
golden prune golden.npz -o pruned.npz
golden diff golden.npz pruned.npz --model int8.tflite
prove int8.tflite --between litert-ref tflm
prove int8.tflite --between litert-ref litert-xnnpack --json
prove int8.tflite --between litert-ref litert-xnnpack --html prove.html
session decoder.tflite --between litert-ref litert-xnnpack --steps 3
session decoder.tflite small.tflite --steps 2 --json
court int8.tflite --with litert-ref,litert-opt,tflm-cmsis-nn-single --samples 2
court int8.tflite --with litert-ref,tflm --json --html court.html
why int8.tflite device.npz
why int8.tflite device.npz --json
why int8.tflite double.npz --html why.html
why int8.tflite layers.bin
explain int8.tflite --dump device.npz
explain int8.tflite --dump device.npz --json
explain int8.tflite --dump double.npz --html explain.html
fit int8.tflite --dump device.npz
fit int8.tflite --dump device.npz --json --html fit.html
reduce int8.tflite --dump device.npz -o reduced
extract int8.tflite 0 1 -o part.tflite
extract int8.tflite 900 -o none.tflite
diff int8.tflite unet.tflite
diff int8.tflite int8.tflite --json
compare float.tflite int8.tflite --inputs samples.npy
compare float.tflite int8.tflite --inputs samples.npy --json --html compare.html
quantize float.tflite --calibration samples.npy --recipe fast -o made.tflite
quantize float.tflite --calibration samples.npy --recipe fast --mode dynamic -o dynamic.tflite
quantize float.tflite --calibration samples.npy --recipe fast --mode uint8 -q -o a.tflite
quantize float.tflite --calibration samples.npy --recipe fast --mode int16x8 -q -o b.tflite
quantize float.tflite --calibration samples.npy --recipe fast --mode int8x4 -q -o c.tflite
quantize float.tflite --calibration samples.npy --recipe fast --mode dynamicx4 -q -o d.tflite
quantize float.tflite --calibration samples.npy --recipe fast --mode weights -q -o e.tflite
quantize float.tflite --calibration samples.npy --recipe fast --mode float16 -q -o f.tflite
quantize float.tflite --calibration samples.npy --recipe balanced --advise -o g.tflite
quantize float.tflite --calibration samples.npy --recipe best --json -o h.tflite
quantize float.tflite --calibration samples.npy --recipe fast --keep-float 0 --html q.html -o i.tflite
quantize float.tflite --calibration samples.npy --recipe fast --budget agreement>=0.99 -o j.tflite
quantize float.tflite --calibration samples.npy --recipe fast --norms int16 -q -o k.tflite
quantize float.tflite --calibration samples.npy --recipe fast --runtimes litert-xnnpack,tflm -q -o l.tflite
quantize float.tflite --calibration samples.npy --recipe fast --portable -o m.tflite
quantize float.tflite --calibration samples.npy --recipe fast --sensitivity -o n.tflite
quantize float.tflite --calibration samples.npy --recipe methods.yaml -o o.tflite
quantize lstm_float.tflite --calibration samples.npy --recipe fast -q -o p.tflite
quantize coder.tflite --calibration samples.npy --recipe fast -q -o q.tflite
quantize unet_float.tflite --calibration samples.npy --recipe fast -q -o r.tflite
quantize decoder.tflite -q -o s.tflite
quantize decoder.tflite --mode dynamicx4 --block 32 -o t.tflite
conform make -o suite.npz --level smoke --shard 1/40
conform run suite.npz --target profile:litert-ref
conform run suite.npz --target profile:tflm --json --html conform.html
conform diff --suite suite.npz --before profile:litert-ref --after profile:litert-2.4-ref --markdown
conform new-target npu --language c
conform pack suite.npz -o carried
conform check suite.npz carried
golden export golden.npz --model int8.tflite --samples 0:2 -o exported
golden export golden.npz --model int8.tflite --verilog 1 -o vectors
learn --target profile:tflm-cmsis-nn-single --operators RELU --fresh 2 -o learned.yaml
session decoder.tflite --between litert-ref litert-xnnpack --steps 2 --html session.html
view int8.tflite golden.npz --html view.html
bench --help
doctor --json
record int8.tflite --against nothing -o never.npz
quantise float.tflite
verify
"""

#: A recipe of published methods that no preset uses.
METHODS = """\
schema: tflq/recipe/1
candidates:
- {ranging: {watch: percentile}, refining: {rounding: adaround, samples: 32}}
- {ranging: {watch: values, activations: {objective: kl, solver: octav}}, refining: {bias: analytic}}
- {ranging: {watch: histogram, activations: {objective: earth-mover, solver: alternating-ends}, order: weights-first}}
- {ranging: {watch: first-batch, weights: {objective: cosine}, rule: symmetric}, refining: {rounding: bit-split}}
- {ranging: {watch: histogram, activations: {objective: jensen-shannon, solver: golden-section}, order: layer-by-layer,
   two_passes: true}, refining: {match_variance: true}}
- {equalize: 0.3, ranging: {weights: {objective: weighted-l2, solver: alternating-codes}, order: online, rule: extend}}
"""

#: Texts that differ from run to run or from machine to machine, and what is written in their place.
MASKS = (
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms|us|min|MiB)\b"), "<measured>"),
    (re.compile(r'"(seconds|elapsed|milliseconds)": [\d.e-]+'), r'"\1": <measured>'),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"), "<time>"),
)
#: Lines that report the progress of long work: whether there are any depends on the machine.
PROGRESS = re.compile(r"^tflq: .*<measured> gone")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="run the commands and write their answers")
    write.add_argument("file", type=Path)
    write.add_argument("--only", default="", metavar="TEXT", help="the commands that begin with this")
    compare = verbs.add_parser("compare", help="compare two files")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    return parser.parse_args()


def mask(text: str, folder: Path) -> str:
    """Return a text without what differs between two runs of one command."""
    text = text.replace(str(folder), "<folder>").replace(str(ROOT), "<root>").replace(sys.executable, "<python>")
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    return "".join(line for line in text.splitlines(True) if not PROGRESS.search(line))


def answer(command: str, folder: Path) -> dict[str, Any]:
    """Run a command in a folder; return its exit code, what it printed, and digests of the files that are new."""
    before = set(folder.rglob("*"))
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TZ": "UTC"}
    words = [sys.executable, "-m", "tflq", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    files = {}
    for path in sorted(set(folder.rglob("*")) - before):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix in {".html", ".json", ".md", ".txt"}:
                content = mask(content.decode(), folder).encode()
            name = str(path.relative_to(folder))
            files[name] = "an archive" if path.suffix in {".npz", ".zip"} else hashlib.sha256(content).hexdigest()[:16]
    printed = {"out": mask(done.stdout, folder).splitlines(), "err": mask(done.stderr, folder).splitlines()}
    return {"exit": done.returncode, **printed, "files": files}


def write(path: Path, only: str) -> int:
    """Write the answers of all commands that begin with `only`."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, source in FILES.items():
            shutil.copy(GOLDEN / source, folder / file)
        with np.load(GOLDEN / "models" / "digits_test.npz") as test:
            np.save(folder / "samples.npy", test["images"][:40].astype(np.float32) / 16)
        (folder / "methods.yaml").write_text(METHODS, encoding="utf-8")
        for command in COMMANDS.strip().splitlines():
            if command.startswith(only):
                print(command, file=sys.stderr)
                found[command] = answer(command, folder)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if found else NOTHING


def compare(before: Path, after: Path) -> int:
    """Print the commands whose answers differ, and how."""
    first, second = (json.loads(path.read_text("utf-8")) for path in (before, after))
    both = [command for command in first if command in second]
    differing = [command for command in both if first[command] != second[command]]
    for command in differing:
        lines = [json.dumps(side[command], indent=1, ensure_ascii=False).splitlines() for side in (first, second)]
        print(f"tflq {command}", *difflib.unified_diff(*lines, "before", "after", lineterm="", n=1), "", sep="\n")
    alone = len(first) + len(second) - 2 * len(both)
    print(f"{len(both)} commands compared, {len(differing)} differ, {alone} in one file only")
    return NOTHING if not both else DIFFERENT if differing else 0


def main() -> int:
    """Run the script."""
    options = arguments()
    if options.verb == "write":
        return write(options.file, options.only)
    return compare(options.before, options.after)


if __name__ == "__main__":
    sys.exit(main())
