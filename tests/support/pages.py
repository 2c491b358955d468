"""Every page that tflq makes, of small models: the words of the verb for each, and the files that they read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from support import suites
from support.commands import tflq
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.results import InputFacts
from tflq.devices.suites.run import SuiteOrder, make_suite
from tflq.engine.api.files import load, save
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.face.cli.main import cli
from tflq.model.ir import Model

GOLDEN = suites.ROOT / "golden" / "models"
INT8, FLOAT = GOLDEN / "digits_mobilenet_int8.tflite", GOLDEN / "digits_mobilenet_float.tflite"
#: Names of tensors that no column is wide enough for.
LONG = "model/block_{0}/expanded_conv_with_a_long_name/separable/BiasAdd;model/block_{0}/depthwise/Relu6;StatefulCall"

#: Words of the verbs, by the page they make.
PAGES = {
    "inspect": "inspect {int8}",
    "run": "run {int8}",
    "record": "record {int8} --all-tensors -o {folder}/recorded.npz",
    "verify": "verify {int8} --golden {golden}",
    "verify-same": "verify {int8} --golden {equal}",
    "explain": "explain {int8} --dump {golden}",
    "explain-same": "explain {int8} --dump {equal}",
    "explain-device": "explain {int8} --dump {device}",
    "why": "why {int8} {device}",
    "why-same": "why {int8} {equal}",
    "fit": "fit {int8} --dump {golden}",
    "profiles": "profiles effects {int8}",
    "list": "profiles list",
    "pair": "profiles diff litert-ref litert-opt",
    "diff": "diff {float} {int8}",
    "diff-same": "diff {int8} {int8}",
    "lint": "lint {uint8} --target tflm",
    "lint-clean": "lint {unet}",
    "compare": "compare {float} {int8} --inputs {rows}",
    "quantize": "quantize {float} --calibration {rows} --recipe fast --sensitivity -o {folder}/q.tflite",
    "bench": "bench {int8} --against none --seconds 0",
    "unet": "inspect {unet}",
    "lstm": "run {lstm}",
    "long": "inspect {long}",
    "view": "view {int8}",
    "session": "session {decoder} --steps 3 --between litert-ref litert-xnnpack",
    "prove": "prove {int8} --between litert-ref tflm",
    "prove-all": "prove {int8} --all -o {folder}/certificate.json",
    "conform": "conform run {suite} --target profile:tflm --work {folder}/work",
    "conform-same": "conform run {suite} --target profile:litert-ref",
    "conform-check": "conform check {suite} {folder}/work",
    "conform-merge": "conform merge {part}",
    "conform-diff": "conform diff {part} {part}",
    "court": "court {int8} --with litert-ref,litert-opt,tflm-cmsis-nn-single",
    "learn": "learn --target profile:litert-opt --operators RELU,MEAN --fresh 6 -o {folder}/learned.yaml",
}
#: Those that draw no model.
WITHOUT_GRAPH = {"list", "pair", "session"} | {name for name in PAGES if name.startswith(("conform", "learn"))}
#: Pages that another one has to precede.
_AFTER = {"conform-check": "conform"}


def verbs() -> Iterator[str]:
    """Every verb that can draw a page."""
    return _verbs(cli, click.Context(cli), ())


def _verbs(command: click.Command, context: click.Context, words: tuple[str, ...]) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _verbs(inner, click.Context(inner, parent=context, info_name=name), (*words, name))
    elif not command.hidden and any("--html" in option.opts for option in command.params):
        yield " ".join(words)


def recording_of(model: Model, profile: str) -> Golden:
    """What a device that computes another profile would record."""
    graph = model.subgraphs[0]
    sample = [
        np.random.default_rng(2).integers(-128, 128, graph.tensors[t].shape).astype(np.int8) for t in graph.inputs
    ]
    values = run(make_plan(model, by_name(profile)), dict(zip(graph.inputs, sample, strict=True)), keep_all=True).values
    observation = Observation(tuple(sample), tuple(values[t] for t in graph.outputs), values)
    digest = hashlib.sha256(INT8.read_bytes()).hexdigest()
    return Golden((observation,), True, InputFacts("made", None, 1), {"name": "device"}, digest)


def long_names(model: Model) -> Model:
    """Return the model with names of tensors as converters make them."""
    graph = model.subgraphs[0]
    tensors = tuple(replace(tensor, name=LONG.format(i)) for i, tensor in enumerate(graph.tensors))
    return replace(model, subgraphs=(replace(graph, tensors=tensors),))


def files_for_pages(folder: Path) -> dict[str, object]:
    """Write what the pages are made of into a folder, and return the names that their words use."""
    recording_of(load(INT8), "litert-opt").save(folder / "golden.npz")
    recording_of(load(INT8), "litert-ref").save(folder / "equal.npz")
    np.save(folder / "rows.npy", np.random.default_rng(0).random((8, 8, 8, 1), np.float32) * 16)
    (folder / "long.tflite").write_bytes(save(long_names(load(INT8))))
    suite, part = folder / "suite.npz", folder / "part.json"
    make_suite(str(suite), SuiteOrder(every=60))
    part.write_text(_invoke("conform", "run", str(suite), "--target", "profile:tflm", "--json"), encoding="utf-8")
    return {
        "folder": folder,
        "int8": INT8,
        "float": FLOAT,
        "uint8": suites.ROOT / "golden" / "singleop" / "models" / "add_u8_0.tflite",
        "unet": GOLDEN / "digits_unet_int8.tflite",
        "lstm": GOLDEN / "digits_lstm_int8.tflite",
        "decoder": GOLDEN / "tiny_decoder_int8.tflite",
        "device": suites.ROOT / "golden" / "dumps" / "digits_mobilenet_int8.cmsis_double.npz",
        "golden": folder / "golden.npz",
        "equal": folder / "equal.npz",
        "rows": folder / "rows.npy",
        "long": folder / "long.tflite",
        "suite": suite,
        "part": part,
    }


def _invoke(*words: str) -> str:
    result = tflq(*words)
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def page_of(name: str, files: dict[str, object]) -> Path:
    """Return a page's file; it is made once."""
    path = Path(str(files["folder"])) / f"{name}.html"
    if not path.exists():
        if name in _AFTER:
            page_of(_AFTER[name], files)
        words = [word.format(**files) for word in PAGES[name].split()]
        result = tflq(*words, "--html", path)
        assert path.exists(), result.output
    return path
