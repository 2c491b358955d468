"""Every command that tflq prints as the next step works as it is printed."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tflq
from support import suites
from tflq.face.cli.main import cli

MODELS = suites.ROOT / "golden/models"
#: Words for what only the user can name: (placeholder, an example).
_BY_USER = {"SOURCE": "x.npy", "OTHER_SAMPLES": "samples.npz", "INPUTS": "x.npy"}
_PRINTED = re.compile(r"^(?:Next|  or): (tflq .*)$", re.MULTILINE)
_QUOTED = re.compile(r"`(tflq .*?)`")
_ADVICE = re.compile(r"^what to do +(tflq .*)$", re.MULTILINE)


def run(command: str) -> Result:
    return CliRunner().invoke(cli, shlex.split(command)[1:], terminal_width=400)


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
    for name in ("digits_mobilenet_int8", "digits_autoencoder_int8", "digits_mobilenet_float"):
        shutil.copy(MODELS / f"{name}.tflite", folder)
    model = folder / "digits_mobilenet_int8.tflite"
    rng = np.random.default_rng(0)
    real = rng.random((3, 8, 8, 1)).astype(np.float32)
    codes = (np.rint(real / np.float32(1 / 255)) - 128).clip(-128, 127).astype(np.int8)
    np.save(folder / "x.npy", real)
    np.save(folder / "pixels.npy", np.rint(real * 255).astype(np.uint8))
    np.savez(folder / "samples.npz", **{f"s{k}_in0": one[None] for k, one in enumerate(codes)})
    every = tflq.Interpreter(model, profile="litert-opt", experimental_preserve_all_tensors=True)
    every.allocate_tensors()
    outputs, dump = [], {}
    for k, one in enumerate(codes):
        every.set_tensor(0, one[None])
        every.invoke()
        outputs.append(every.get_tensor(52))
        for detail in every.get_tensor_details():
            dump[f"s{k}_t{detail['index']}"] = every.get_tensor(detail["index"])
    wrong = np.concatenate(outputs) ^ 1
    np.save(folder / "right.npy", np.concatenate(outputs))
    np.save(folder / "wrong.npy", wrong)
    np.savez(folder / "dump.npz", **dump)
    np.savez(folder / "s0.npz", **{"52": wrong[:1], "51": dump["s0_t51"]})
    return folder


COMMANDS = (
    "inspect MODEL",
    "lint MODEL",
    "verify MODEL --golden wrong.npy --inputs x.npy --quantize-inputs",
    "verify MODEL --golden right.npy --inputs pixels.npy --mean 0 --std 255",
    "verify MODEL --golden dump.npz --profile litert-ref",
    "explain MODEL --dump dump.npz",
    "explain MODEL --dump wrong.npy",
    "explain MODEL --dump wrong.npy --inputs x.npy",
    "explain MODEL --dump wrong.npy --inputs pixels.npy --mean 0 --std 255",
    "explain MODEL --dump s0.npz --sample 0",
    "fit MODEL --dump wrong.npy",
    "fit MODEL --dump wrong.npy --inputs pixels.npy",
    "why MODEL dump.npz",
    "why MODEL dump.npz --sample 1",
    "why MODEL wrong.npy --inputs x.npy",
    "why MODEL wrong.npy --inputs pixels.npy --mean 0 --std 255 --profile tflm",
    "why MODEL s0.npz",
    "why MODEL wrong.npy",
    "profiles --model MODEL",
    "prove MODEL --between litert-ref litert-ref-arm64",
    "extract MODEL 4 -o part.tflite",
    "reduce MODEL --dump dump.npz -o reduced",
    "diff MODEL digits_autoencoder_int8.tflite",
    "run MODEL --inputs samples.npz -o out.npz",
    "compare digits_mobilenet_float.tflite MODEL --inputs x.npy",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_next_steps_run_as_they_are_printed(
    words: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(place, tmp_path / "a b")
    monkeypatch.chdir(tmp_path / "a b")
    first = run("tflq " + words.replace("MODEL", "digits_mobilenet_int8.tflite"))
    assert first.exit_code not in (2, 70), first.output
    for command in printed(first.output):
        for placeholder, example in _BY_USER.items():
            command = re.sub(rf"\b{placeholder}\b", example, command)
        if "TARGET" in command or "CMD" in command:
            continue
        done = run(command)
        assert done.exit_code not in (2, 70), (command, done.output)
