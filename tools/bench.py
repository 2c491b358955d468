"""Time tflq against LiteRT on the same models: ratios of medians, interleaved, one thread each.

    python tools/bench.py MODEL [MODEL ...] [--repeats 30] [--burst 4] [--profile litert-ref] [--json FILE]
    python tools/bench.py MODEL [MODEL ...] --profiles [NAME ...]

With --profiles tflq's profiles (all of them by default) race `litert-ref` instead of the runtimes. Every contestant
runs in a process of its own, which separates first-call time, import time and peak memory. The processes are driven in
turn (tflq, reference, builtin, XNNPACK, tflq, ...), so that a drift of the machine affects all equally. A turn is a
short burst of invokes, each with a fresh random input. The first of a burst runs with the caches that the others left,
and is not counted (`--burst 1` counts it). Needs the extra `litert`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Prefix of the profile in the name of a tflq contestant.
TFLQ = "tflq "
RESOLVERS = {
    "litert-ref": "BUILTIN_REF",
    "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "BUILTIN",
}


def contestant(name: str, path: str, pipe: Connection) -> None:
    """Load the model in a child process, then answer every burst's length with its seconds, one per invoke."""
    import resource
    import time

    start = time.perf_counter()
    if name.startswith(TFLQ):
        import tflq

        profile = name.removeprefix(TFLQ)
        make = lambda: tflq.Interpreter(model_path=path, profile=profile)  # noqa: E731
        _ = tflq.Interpreter
    else:
        from ai_edge_litert import interpreter as litert

        resolver = getattr(litert.OpResolverType, RESOLVERS[name])
        make = lambda: litert.Interpreter(path, num_threads=1, experimental_op_resolver_type=resolver)  # noqa: E731
    imported = time.perf_counter() - start

    import numpy as np

    start = time.perf_counter()
    interpreter = make()
    interpreter.allocate_tensors()
    allocated = time.perf_counter() - start
    details = interpreter.get_input_details()
    random = np.random.default_rng(os.getpid())
    pipe.send({"import": imported, "allocate": allocated})
    while burst := pipe.recv():
        seconds = []
        for _ in range(burst):
            for detail in details:
                interpreter.set_tensor(detail["index"], _random(np, random, detail))
            start = time.perf_counter()
            interpreter.invoke()
            seconds.append(time.perf_counter() - start)
        pipe.send({"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})


def _random(np: Any, random: Any, detail: dict[str, Any]) -> Any:
    dtype, shape = np.dtype(detail["dtype"]), tuple(detail["shape"])
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        wide = dtype.itemsize > 2
        low, high = (0, 2) if wide else (np.iinfo(dtype).min, int(np.iinfo(dtype).max) + 1)
        return random.integers(low, high, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def measure(path: str, repeats: int, burst: int, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return all contestants on one model: seconds, and megabytes of peak resident memory."""
    context = multiprocessing.get_context("spawn")
    pipes, children = {}, {}
    for name in names:
        pipes[name], end = context.Pipe()
        children[name] = context.Process(target=contestant, args=(name, path, end), daemon=True)
        children[name].start()
        end.close()
    results: dict[str, dict[str, Any]] = {}
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        try:
            results[name] = pipes[name].recv()
        except EOFError:
            results[name] = {}
    alive = [name for name in names if results[name]]
    for turn in range(repeats + 1):
        for name in list(alive):
            try:
                pipes[name].send(burst if turn else 1)  # the first call is separate
                answer = pipes[name].recv()
            except (EOFError, BrokenPipeError):
                alive.remove(name)
                continue
            times[name] += answer["seconds"][1 if turn and burst > 1 else 0 :]
            results[name]["peak"] = answer["peak"]
    for name in names:
        if name in alive:
            pipes[name].send(0)
        children[name].join(10)
        if len(times[name]) > 1:
            results[name]["first"] = times[name][0]
            results[name]["median"] = statistics.median(times[name][1:])
    return results


def table(path: str, results: dict[str, dict[str, float]]) -> str:
    """Return one model's figures as text: the ratio is the first contestant's median to each one's."""
    width = max(len(name) for name in results) + 2
    first = next(iter(results))
    lines = [
        path,
        f"  {'':{width}}{'median':>12}{'first / it':>11}{'first call':>12}{'import':>9}{'allocate':>10}{'peak':>10}",
    ]
    ours = results[first].get("median")
    for name, r in results.items():
        if "median" not in r:
            lines.append(f"  {name:{width}}{'did not run':>12}")
            continue
        ratio = f"{ours / r['median']:.3f}" if ours else "-"
        lines.append(
            f"  {name:{width}}{r['median'] * 1e3:>9.3f} ms{ratio:>11}{r['first'] * 1e3:>9.1f} ms{r['import']:>7.2f} s"
            f"{r['allocate'] * 1e3:>7.1f} ms{r['peak']:>7.0f} MB"
        )
    return "\n".join(lines)


def main() -> int:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--repeats", type=int, default=30, help="turns of each contestant (default 30)")
    parser.add_argument("--burst", type=int, default=4, help="invokes in one turn, the first not counted (default 4)")
    parser.add_argument("--profile", default="litert-ref", help="profile of tflq.Interpreter (default litert-ref)")
    parser.add_argument("--profiles", nargs="*", metavar="NAME", help="race these profiles (default: all)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    names = [TFLQ + args.profile, *RESOLVERS] if args.profiles is None else racing(args.profiles)
    figures = {}
    for model in args.models:
        figures[str(model)] = measure(str(model), args.repeats, args.burst, names)
        print(table(str(model), figures[str(model)]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all("median" in f[names[0]] for f in figures.values()) else 1


def racing(profiles: Sequence[str]) -> list[str]:
    """Return the contestants: `litert-ref`, then the others."""
    from tflq.profiles import PROFILES

    return list(dict.fromkeys(TFLQ + name for name in ("litert-ref", *(profiles or PROFILES))))


if __name__ == "__main__":
    sys.exit(main())
