"""Make the machine code that comes with tflq, for levels of processors.

    python tools/ship_code.py                    every level, complete: for wheels
    python tools/ship_code.py --host --common    the level of this machine, what the first commands need only

A level is compiled by processes of its own from the models of golden/, see jit/collecting.py. No processor of the
level is needed, so one machine makes the code for all. How fast it is decides nothing: equal words give equal files.
The files are written to --folder, by default to tflq/machine_code of this checkout.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tflq.model.ir import Model, Quantization

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

#: Seconds that a model may take.
_LONGEST = 60.0
#: The model of README's commands, whose functions many networks with 8-bit codes need, too.
FIRST = "digits_mobilenet_int8"
#: A pointwise convolution. Of one pixel, as the last layer of many classifiers, it takes another function.
POINTWISE = "conv_u8_2"
#: Convolutions and products whose function depends on the number of channels: a tile has 1 to 4 vectors.
CONTRACTIONS = ("conv_i8_2", POINTWISE, "conv_i8_0", "conv_u8_0", "fc_i8_0", "fc_u8_1")
CHANNELS = (64, 48, 32, 16)
#: Models on which a difference between two profiles is explained, last.
DIAGNOSED = ("tie_conv_i8_0",)
PROFILES = ("litert-ref", "litert-xnnpack", "litert-opt")
SINGLE = ROOT / "golden/singleop/models"


class Piece(NamedTuple):
    """Models whose functions are made for a profile; and with `is_diagnosed` also those that explain a difference."""

    name: str
    profile: str
    models: Callable[[], list[Path | Model]]
    is_diagnosed: bool = False


def common() -> Iterator[Piece]:
    """Yield the pieces that the first commands need: `verify`, `inspect` and `why` of the model in README."""
    files = {path.stem: path for path in _files()}
    for profile in PROFILES:
        yield _plain(files[FIRST], profile)
    for name in DIAGNOSED:
        yield Piece(f"{name} explained", "litert-opt", lambda name=name: [files[name]], is_diagnosed=True)


def work() -> Iterator[Piece]:
    """Yield all pieces, the common ones first."""
    yield from common()
    rest = [path for path in _files() if path.stem != FIRST]
    rest.sort(key=lambda path: "int8" not in path.name)
    for profile in PROFILES:
        for name in CONTRACTIONS:
            yield Piece(f"{name} of other channels", profile, lambda name=name: [*variants(_single(name))])
        for path in rest:
            yield _plain(path, profile)


def _files() -> list[Path]:
    return [*sorted((ROOT / "golden/models").glob("*.tflite")), *sorted(SINGLE.glob("*.tflite"))]


def _plain(path: Path, profile: str) -> Piece:
    return Piece(
        path.stem, profile, lambda: [path, *([one_pixel(_single(path.stem))] if path.stem == POINTWISE else [])]
    )


def _single(name: str) -> Model:
    from tflq.engine.api.files import load

    return load(SINGLE / f"{name}.tflite")


def collect(name: str, file: Path, turn: int, turns: int, is_common: bool) -> None:
    """Write the code of a level for each `turns`-th piece of the common ones, or of all, as a file."""
    from tflq.engine.api.many import warm
    from tflq.engine.jit.building import CollectingCollection
    from tflq.engine.jit.code_store import pack
    from tflq.engine.jit.processors import LEVELS
    from tflq.errors import TflqError

    own = tuple(level for level in LEVELS if level.name in os.environ["TFLQ_OWN_LEVELS"].split(","))
    collection = CollectingCollection(next(level for level in LEVELS if level.name == name), own)
    for number, piece in enumerate(common() if is_common else work()):
        if number % turns == turn:
            for model in piece.models():
                # Arithmetic on memory that was never written may fail in any way.
                with suppress(TflqError, ArithmeticError, ValueError, IndexError, TimeoutError), limited(_LONGEST):
                    if piece.is_diagnosed:
                        diagnose(model, piece.profile)
                    else:
                        warm([model], piece.profile)
    file.write_bytes(pack(collection.entries))


def diagnose(model: Path | Model, profile: str) -> None:
    """Explain a device that computes as a profile does, so that what `why` compiles is made."""
    import numpy as np

    import tflq

    content = bytes(tflq.save(tflq.load(model)))
    device = tflq.Interpreter(model_content=content, profile=profile, experimental_preserve_all_tensors=True)
    device.allocate_tensors()
    random = np.random.default_rng(0)
    for detail in device.get_input_details():
        ends = np.iinfo(detail["dtype"])
        values = random.integers(ends.min, ends.max + 1, tuple(detail["shape"])).astype(detail["dtype"])
        device.set_tensor(detail["index"], values)
    device.invoke()
    dump = {detail["index"]: device.get_tensor(detail["index"]) for detail in device.get_tensor_details()}
    tflq.explain(content, dump)
    tflq.fit(content, dump)


def variants(model: Model) -> Iterator[Model]:
    """Yield a model of one convolution or product with other numbers of channels, each for one pixel or row, too."""
    for count in CHANNELS:
        other = with_channels(model, count)
        yield other
        yield one_pixel(other)


def with_channels(model: Model, count: int) -> Model:
    """Return a model of one convolution or product with `count` output channels: the first ones, repeated as needed."""
    import numpy as np

    from tflq.model.ir import Buffer
    from tflq.model.ir.constants import constant_of

    (graph,) = model.subgraphs
    (operator,) = graph.operators
    tensors, buffers = list(graph.tensors), list(model.buffers)
    for tensor in operator.inputs[1:]:
        spec = tensors[tensor]
        data = constant_of(model, spec)
        tensors[tensor] = replace(
            spec, shape=(count, *spec.shape[1:]), quantization=_repeated(spec.quantization, count)
        )
        buffers[spec.buffer] = Buffer(np.resize(data, tensors[tensor].shape).view(np.uint8).reshape(-1))
    (out,) = operator.outputs
    tensors[out] = replace(tensors[out], shape=(*tensors[out].shape[:-1], count))
    return replace(model, subgraphs=(replace(graph, tensors=tuple(tensors)),), buffers=tuple(buffers))


def _repeated(quantization: Quantization | None, count: int) -> Quantization | None:
    if quantization is None or len(quantization.scale) < 2:
        return quantization
    import numpy as np

    scale, zero_point = (np.resize(values, count) for values in (quantization.scale, quantization.zero_point))
    return replace(quantization, scale=scale, zero_point=zero_point)


def one_pixel(model: Model) -> Model:
    """Return a model of one operator for images of one pixel, or one row of a matrix."""
    (graph,) = model.subgraphs
    shapes = {
        k: (*(1 for _ in graph.tensors[k].shape[1:]), graph.tensors[k].shape[-1])
        for k in (*graph.inputs, *graph.outputs)
    }
    tensors = tuple(replace(spec, shape=shapes.get(k, spec.shape)) for k, spec in enumerate(graph.tensors))
    return replace(model, subgraphs=(replace(graph, tensors=tuple(tensors)),))


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after some seconds of processor time: loops that values end may never end on zeros."""

    def end(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def make(names: list[str], folder: Path, jobs: int, is_common: bool) -> None:
    """Make the files of levels, each by `jobs` processes."""
    from tflq.engine.jit.code_store import pack, shipped_unpacked
    from tflq.engine.jit.processors import LEVELS, levels

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        level = next(each for each in LEVELS if each.name == name)
        own = {**os.environ, "TFLQ_OWN_LEVELS": ",".join(each.name for each in levels())}
        if level.machine == "x86_64":
            own |= {"NUMBA_CPU_NAME": level.cpu, "NUMBA_CPU_FEATURES": level.words}
        parts = [folder / f".{name}.{turn}" for turn in range(jobs)]
        rest = [str(jobs), str(int(is_common))]
        started = [
            subprocess.Popen([sys.executable, __file__, "--collect", name, str(part), str(turn), *rest], env=own)
            for turn, part in enumerate(parts)
        ]
        failed = [process.wait() for process in started]
        entries: dict[str, bytes] = {}
        for part in parts:
            if part.exists():
                entries |= shipped_unpacked(part.read_bytes())
                part.unlink()
        if any(failed) or not entries:
            raise SystemExit(f"{name}: no machine code was made")
        content = pack(entries)
        (folder / f"{name}.code").write_bytes(content)
        print(f"{name}: {len(entries)} functions, {len(content):,} bytes")


def main() -> None:
    """Parse the words and make the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", action="store_true", help="only the level of this machine")
    parser.add_argument("--levels", default="", help="only these, separated by commas")
    parser.add_argument("--common", action="store_true", help="only what the first commands need")
    parser.add_argument("--folder", type=Path, default=ROOT / "tflq/machine_code")
    parser.add_argument("--jobs", type=int, default=0, help="processes; by default one a core, 2 at most with --common")
    parser.add_argument("--collect", nargs=5, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.collect:
        level, file, turn, turns, is_common = words.collect
        collect(level, Path(file), int(turn), int(turns), is_common == "1")
        return
    from tflq.engine.jit.processors import LEVELS, levels

    chosen = [level.name for level in (levels()[:1] if words.host else LEVELS)]
    jobs = words.jobs or min(os.cpu_count() or 1, 2 if words.common else 64)
    make(words.levels.split(",") if words.levels else chosen, words.folder, jobs, words.common)


if __name__ == "__main__":
    main()
