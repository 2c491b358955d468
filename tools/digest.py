"""Write a digest of every output of recorded models under every profile, and compare two such files.

A restructuring that must not change a bit is checked with it: write one file before, one after, and compare.

    python tools/digest.py write before.json SUITE [SUITE ...] [--profiles NAME ...] [--processes 2]
    python tools/digest.py compare before.json after.json

A suite is a folder with an `index.json`: entries with `model` and `golden`, whose arrays `s{k}_in{i}` are the inputs.

Exit status: 0 the files are equal; 1 results differ; 2 nothing was compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tflq import Interpreter
from tflq.engine.profiles import PROFILES
from tflq.errors import TflqError

DIFFERENT, NOTHING = 1, 2
#: Digests by profile, then by "suite/model".
Digests = dict[str, dict[str, str]]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="run the suites and write their digests")
    write.add_argument("file", type=Path)
    write.add_argument("suites", type=Path, nargs="+", metavar="SUITE")
    write.add_argument("--profiles", nargs="+", default=list(PROFILES), metavar="NAME", help="default: all")
    write.add_argument("--processes", type=int, default=1, help="number of worker processes (default: 1)")
    compare = verbs.add_parser("compare", help="compare two files")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    return parser.parse_args()


def entries(suite: Path) -> Iterator[tuple[str, Path, Path]]:
    """Yield name, model and golden of each entry of a suite."""
    for entry in json.loads((suite / "index.json").read_text("utf-8")):
        yield f"{suite.name}/{entry['model']}", suite / entry["model"], suite / entry["golden"]


def samples(golden: Path) -> list[list[np.ndarray[Any, Any]]]:
    """Return the inputs of each recorded sample, in the order of their positions."""
    with np.load(golden, allow_pickle=False) as arrays:
        names = sorted({key.split("_")[0] for key in arrays.files}, key=lambda name: int(name[1:]))
        counts = {name: sum(key.startswith(f"{name}_in") for key in arrays.files) for name in names}
        return [[arrays[f"{name}_in{position}"] for position in range(counts[name])] for name in names]


def digest(model: bytes, recorded: list[list[np.ndarray[Any, Any]]], profile: str) -> str:
    """Return a digest of the outputs of all samples, or the class and a digest of the text of a refusal."""
    sums = blake2b(digest_size=12)
    try:
        for inputs in recorded:
            interpreter = Interpreter(model_content=model, profile=profile)
            for detail, value in zip(interpreter.get_input_details(), inputs, strict=False):
                if tuple(detail["shape"]) != value.shape:
                    interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
            for detail, value in zip(interpreter.get_input_details(), inputs, strict=False):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
            for detail in interpreter.get_output_details():
                value = np.asarray(interpreter.get_tensor(detail["index"]))
                data = repr(value.tolist()).encode() if value.dtype.kind in "OSU" else value.tobytes()
                sums.update(f"{value.dtype} {value.shape}".encode() + data)
    except TflqError as error:
        return f"{type(error).__name__} {blake2b(str(error).encode(), digest_size=6).hexdigest()}"
    except Exception as error:  # a defect is a result, too: it must not go unnoticed, nor end the run
        return f"DEFECT {type(error).__name__}"
    return sums.hexdigest()


def work(entry: tuple[str, Path, Path], profiles: list[str]) -> tuple[str, dict[str, str]]:
    """Return the digests of one model under all profiles."""
    name, model, golden = entry
    content, recorded = model.read_bytes(), samples(golden)
    return name, {profile: digest(content, recorded, profile) for profile in profiles}


def write(file: Path, suites: list[Path], profiles: list[str], processes: int) -> int:
    """Run every model of the suites under every profile and write the digests."""
    every = [entry for suite in suites for entry in entries(suite)]
    found: Digests = {profile: {} for profile in profiles}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        results = pool.map(work, every, [profiles] * len(every))
        for done, (name, digests) in enumerate(results, 1):
            for profile, value in digests.items():
                found[profile][name] = value
            if done % 100 == 0 or done == len(every):
                print(f"{done} of {len(every)} models", file=sys.stderr, flush=True)
    file.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", "utf-8")
    print(f"{sum(map(len, found.values()))} digests of {len(every)} models under {len(profiles)} profiles")
    return 0 if every else NOTHING


def compare(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> int:
    """Print what differs; texts of refusals may differ, their classes may not."""
    compared = texts = 0
    different: list[str] = []
    for profile in sorted(before.keys() & after.keys()):
        ours, theirs = before[profile], after[profile]
        for name in sorted(ours.keys() & theirs.keys()):
            compared += 1
            if ours[name] == theirs[name]:
                continue
            if ours[name].split(" ")[0] == theirs[name].split(" ")[0]:
                texts += 1
                continue
            different.append(f"{profile} {name}: {ours[name]} before, {theirs[name]} after")
    for line in different[:50]:
        print(line)
    missing = sorted(before.keys() ^ after.keys())
    print(
        f"{compared} compared: {len(different)} differ, {texts} texts of refusals differ; "
        f"profiles in one file only: {', '.join(missing) or 'none'}"
    )
    return DIFFERENT if different else 0 if compared else NOTHING


def main() -> int:
    """Do what the command line asks for."""
    args = arguments()
    if args.verb == "write":
        return write(args.file, args.suites, args.profiles, args.processes)
    return compare(json.loads(args.before.read_text("utf-8")), json.loads(args.after.read_text("utf-8")))


if __name__ == "__main__":
    sys.exit(main())
