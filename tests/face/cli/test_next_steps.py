"""Every command that tflq prints as the next step works as it is printed."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import tflq
from support import commands, suites
from tflq.engine.api.files import load, save
from tflq.model.ir import view
from tflq.model.surgery.cut import extract

MODELS = suites.ROOT / "golden/models"
#: Words for what only the user can name: (placeholder, an example).
_BY_USER = {"SOURCE": "x.npy", "OTHER_SAMPLES": "samples.npz", "INPUTS": "x.npy"}
_PRINTED = re.compile(r"^(?:Next|  or): (tflq .*)$", re.MULTILINE)
_QUOTED = re.compile(r"`(tflq .*?)`")
_ADVICE = re.compile(r"^what to do +(tflq .*)$", re.MULTILINE)


#: Commands that ran, with the files that all tests have.
_RAN: set[str] = set()


def run(command: str) -> Result:
    return commands.tflq(*shlex.split(command)[1:], terminal_width=400)


def printed(text: str) -> Iterator[str]:
    """The commands of an output; lines that continue a command are joined."""
    text = re.sub(r" \\\n\s*", " ", text)
    for pattern in (_PRINTED, _QUOTED, _ADVICE):
        for command in pattern.findall(text):
            yield from (part.strip() for part in command.split("; "))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, and evidence of devices in many forms: right, wrong, and without inputs."""
    folder = tmp_path_factory.mktemp("next steps")
    shutil.copy(MODELS / "digits_autoencoder_int8.tflite", folder)
    for kind in ("float", "int8"):
        part, _ = extract(load(MODELS / f"digits_mobilenet_{kind}.tflite"), ["0..1"])
        save(part, folder / f"{kind}.tflite")
    model = folder / "int8.tflite"
    rng = np.random.default_rng(0)
    real = rng.random((3, 8, 8, 1)).astype(np.float32)
    codes = (np.rint(real / np.float32(1 / 255)) - 128).clip(-128, 127).astype(np.int8)
    np.save(folder / "x.npy", real)
    np.save(folder / "pixels.npy", np.rint(real * 255).astype(np.uint8))
    np.savez(folder / "samples.npz", **{f"s{k}_in0": one[None] for k, one in enumerate(codes)})
    made = {}
    for profile in ("litert-ref", "litert-xnnpack"):
        every = tflq.Interpreter(model, profile=profile, experimental_preserve_all_tensors=True)
        every.allocate_tensors()
        output, dump = every.get_output_details()[0]["index"], {}
        for k, one in enumerate(codes):
            every.set_tensor(0, one[None])
            every.invoke()
            dump |= {f"s{k}_t{d['index']}": every.get_tensor(d["index"]) for d in every.get_tensor_details()}
        made[profile] = np.concatenate([dump[f"s{k}_t{output}"] for k in range(len(codes))])
    np.save(folder / "right.npy", made["litert-ref"])
    np.save(folder / "xnnpack.npy", made["litert-xnnpack"])
    np.save(folder / "wrong.npy", made["litert-ref"] ^ 1)
    np.savez(folder / "dump.npz", **dump)
    middle = view(load(model)).op(1).inputs[0]
    np.savez(folder / "s0.npz", **{f"{t}": dump[f"s0_t{t}"] for t in (middle, output)})
    return folder


COMMANDS = (
    "inspect MODEL",
    "lint MODEL",
    "verify MODEL --golden xnnpack.npy --inputs x.npy --quantize-inputs",
    "verify MODEL --golden right.npy --inputs pixels.npy --mean 0 --std 255",
    "verify MODEL --golden dump.npz --profile litert-ref",
    "explain MODEL --dump dump.npz",
    "explain MODEL --dump xnnpack.npy",
    "fit MODEL --dump wrong.npy",
    "fit MODEL --dump wrong.npy --inputs pixels.npy",
    "why MODEL dump.npz",
    "why MODEL dump.npz --sample 1",
    "why MODEL xnnpack.npy --inputs x.npy",
    "profiles effects MODEL",
    "prove MODEL --between litert-ref litert-ref-arm64",
    "extract MODEL 1 -o part.tflite",
    "reduce MODEL --dump dump.npz -o reduced",
    "diff MODEL digits_autoencoder_int8.tflite",
    "run MODEL --inputs samples.npz -o out.npz",
    "compare float.tflite MODEL --inputs x.npy",
)
#: A device that no hypothesis explains, or of which little is known.
HARD = (
    "why MODEL xnnpack.npy",
    "explain MODEL --dump xnnpack.npy --inputs pixels.npy --mean 0 --std 255",
    "why MODEL s0.npz",
    "explain MODEL --dump s0.npz --sample 0",
    "explain MODEL --dump wrong.npy --inputs x.npy",
    "why MODEL wrong.npy --inputs pixels.npy --mean 0 --std 255 --profile tflm",
    "why MODEL wrong.npy",
)


@pytest.mark.parametrize("words", [*COMMANDS, *(pytest.param(one, marks=pytest.mark.slow) for one in HARD)])
def test_next_steps_run_as_they_are_printed(
    words: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(place, tmp_path / "a b")
    monkeypatch.chdir(tmp_path / "a b")
    first = run("tflq " + words.replace("MODEL", "int8.tflite"))
    assert first.exit_code not in (2, 70), first.output
    for command in printed(first.output):
        for placeholder, example in _BY_USER.items():
            command = re.sub(rf"\b{placeholder}\b", example, command)
        if "TARGET" in command or "CMD" in command or command in _RAN:
            continue
        _RAN.add(command)
        done = run(command)
        assert done.exit_code not in (2, 70), (command, done.output)
