"""Time tflq against LiteRT on the same models: ratios of medians, interleaved, one thread each.

    python tools/bench.py MODEL [MODEL ...] [--repeats 30] [--burst 4] [--profile litert-ref] [--json FILE]

Every contestant lives in a process of its own, so that first-call time, import time and peak memory are its own. The
processes are driven in turn (tflq, reference, builtin, XNNPACK, tflq, ...), so that a drift of the machine hits all of
them alike. A turn is a short burst of invokes, each with a fresh random input; the first of a burst finds the caches as
the others left them and is run but not counted (`--burst 1` counts it). Needs the extra `litert`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
RESOLVERS = {
    "litert-ref": "BUILTIN_REF",
    "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "BUILTIN",
}


def contestant(name: str, path: str, profile: str, pipe: Connection) -> None:
    """Child process: load the model, then answer every burst's length with its seconds, one an invoke."""
    import resource
    import time

    start = time.perf_counter()
    if name == "tflq":
        import tflq

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


def measure(path: str, repeats: int, burst: int, profile: str) -> dict[str, dict[str, float]]:
    """All contestants on one model: seconds, and megabytes of peak resident memory."""
    context = multiprocessing.get_context("spawn")
    names = ["tflq", *RESOLVERS]
    pipes, children = {}, {}
    for name in names:
        pipes[name], end = context.Pipe()
        children[name] = context.Process(target=contestant, args=(name, path, profile, end), daemon=True)
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
                pipes[name].send(burst if turn else 1)  # the first call stands apart
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
    """One model's figures as text."""
    lines = [
        path,
        f"  {'':15}{'median':>12}{'tflq / it':>11}{'first call':>12}{'import':>9}{'allocate':>10}{'peak':>10}",
    ]
    ours = results["tflq"].get("median")
    for name, r in results.items():
        if "median" not in r:
            lines.append(f"  {name:15}{'did not run':>12}")
            continue
        ratio = f"{ours / r['median']:.3f}" if ours else "-"
        lines.append(
            f"  {name:15}{r['median'] * 1e3:>9.3f} ms{ratio:>11}{r['first'] * 1e3:>9.1f} ms{r['import']:>7.2f} s"
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
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    args = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    figures = {}
    for model in args.models:
        figures[str(model)] = measure(str(model), args.repeats, args.burst, args.profile)
        print(table(str(model), figures[str(model)]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all("median" in f["tflq"] for f in figures.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
