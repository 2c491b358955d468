"""Record a released runtime's results for the models of a suite, on the suite's recorded inputs.

A suite is a folder with an index.json, as in golden/singleop: each entry names a model and a golden of LiteRT 2.3.

    python tools/record_release.py golden/singleop --profile tf-2.5-ref --releases FOLDER --into golden/singleop

FOLDER holds virtual environments named PACKAGE-VERSION, such as tensorflow-cpu-2.5.3. INTO/PROFILE.json then has one
entry per model: "same" (as the golden), the file in INTO with its outputs, "refused", "crashed" (aborts and hangs), or
"undefined" (two processes disagree, one of which runs the models in reverse). Outputs that are already in another
profile's file in INTO are not written again.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opfuzz.case import Array
from opfuzz.releases import Release, releases
from opfuzz.remote import Ran, Refused, Remote

Outputs = dict[str, Array]
#: Limits for a model; some releases hang on newer models.
SECONDS = 60.0


def samples_of(golden: Outputs) -> Iterator[tuple[str, list[Array]]]:
    """Yield name and inputs of every sample, in order."""
    for name in sorted({key.split("_")[0] for key in golden}, key=lambda name: int(name[1:])):
        count = sum(key.startswith(f"{name}_in") for key in golden)
        yield name, [golden[f"{name}_in{i}"] for i in range(count)]


def recorded(runtime: Remote, model: bytes, golden: Outputs) -> Outputs | str:
    """Return the outputs by the golden's names, each sample in a fresh interpreter, or the reason if there are none."""
    made: Outputs = {}
    for name, inputs in samples_of(golden):
        answered = runtime.outputs(model, [inputs])
        if not isinstance(answered, Ran):
            return "refused" if isinstance(answered, Refused) else "crashed"
        made.update((f"{name}_out{i}", value) for i, value in enumerate(answered.outputs[0]))
    return made


def agreed(one: Outputs | str, other: Outputs | str) -> Outputs | str:
    """Return the results of two processes if they agree."""
    if isinstance(one, str) or isinstance(other, str):
        return one if one == other else "undefined"
    return one if equal(one, other) else "undefined"


def same(one: Array, other: Array) -> bool:
    """Return whether two arrays have the same type, shape and bytes."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def equal(one: Outputs, other: Outputs) -> bool:
    """Return whether every output of `one` is in `other` with the same bits."""
    return all(key in other and same(value, other[key]) for key, value in one.items())


def place(made: Outputs, golden: Outputs, into: Path, stem: str, profile: str) -> str:
    """Return the file with the outputs; it is written unless the golden or another profile has them."""
    if equal(made, golden):
        return "same"
    for known in sorted((into / "recorded").glob(f"{stem}@*.npz")):
        if equal(made, dict(np.load(known, allow_pickle=False))):
            return str(known.relative_to(into))
    file = Path("recorded") / f"{stem}@{profile}.npz"
    (into / file).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(into / file, **made)  # type: ignore[arg-type]
    return str(file)


def record(suite: Path, entries: Sequence[Any], release: Release, into: Path) -> dict[str, str]:
    """Return the result of each entry, by the model's path in the suite without its folder and ending."""
    forwards, backwards = one_way(suite, entries, release), one_way(suite, entries[::-1], release)
    found = {}
    for entry in entries:
        stem = entry["model"].removeprefix("models/").removesuffix(".tflite")
        golden = dict(np.load(suite / entry["golden"], allow_pickle=False))
        made = agreed(forwards[entry["model"]], backwards[entry["model"]])
        found[stem] = made if isinstance(made, str) else place(made, golden, into, stem, release.profile)
    return found


def one_way(suite: Path, entries: Sequence[Any], release: Release) -> dict[str, Outputs | str]:
    """Return one process's results for every model, in order."""
    runtime, made = Remote([str(release.python)], release.module, release.resolver, SECONDS), {}
    for entry in entries:
        golden = dict(np.load(suite / entry["golden"], allow_pickle=False))
        made[entry["model"]] = recorded(runtime, (suite / entry["model"]).read_bytes(), golden)
    runtime.close()
    return made


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, help="folder with an index.json")
    parser.add_argument("--profile", required=True, help="the profile of the recorded runtime")
    parser.add_argument("--releases", type=Path, required=True, help="folder of virtual environments")
    parser.add_argument("--into", type=Path, required=True, help="folder for PROFILE.json and recorded/")
    parser.add_argument("--kinds", default="", help="only entries of these kinds, such as int8,int16x8")
    return parser.parse_args()


def main() -> int:
    """Record, and print the number of models with each result."""
    args = arguments()
    release = next((r for r in releases(args.releases) if r.profile == args.profile), None)
    if release is None or not release.python.exists():
        print(f"{args.profile}: no Python of its runtime in {args.releases}", file=sys.stderr)
        return 2
    kinds = args.kinds.split(",") if args.kinds else []
    index = json.loads((args.suite / "index.json").read_text(encoding="utf-8"))
    found = record(args.suite, [e for e in index if not kinds or e["kind"] in kinds], release, args.into)
    runtime = f"{release.python.parent.parent.name}, {release.resolver or 'its only resolver'}, one thread, "
    about = {"profile": args.profile, "runtime": runtime + f"{platform.machine()}, {' '.join(platform.libc_ver())}"}
    (args.into / f"{args.profile}.json").write_text(
        json.dumps({**about, "outputs": found}, indent=1) + "\n", encoding="utf-8"
    )
    words = ("same", "refused", "crashed", "undefined")
    counts = {word: sum(value == word for value in found.values()) for word in words}
    print({**counts, "differs": len(found) - sum(counts.values())})
    return 0


if __name__ == "__main__":
    sys.exit(main())
