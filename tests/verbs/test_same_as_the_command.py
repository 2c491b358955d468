"""Every verb is one public function: `tflq VERB --json` prints the document of what the function returns."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tflq
from support import commands, suites
from tflq.engine.api.files import subject
from tflq.face.cli.main import VERBS, cli
from tflq.face.report.verbs.bench import bench_document
from tflq.face.report.verbs.compare import compare_document
from tflq.face.report.verbs.conform import verdict_document
from tflq.face.report.verbs.conform_changes import changes_document
from tflq.face.report.verbs.court import court_document
from tflq.face.report.verbs.diff import diff_document
from tflq.face.report.verbs.explain import element_run_document, explain_document
from tflq.face.report.verbs.fit import fit_document
from tflq.face.report.verbs.golden import drift_document
from tflq.face.report.verbs.inspect import inspect_document
from tflq.face.report.verbs.learn import learn_document
from tflq.face.report.verbs.lint import lint_document
from tflq.face.report.verbs.profiles import agreements_document, effects_document, pair_document
from tflq.face.report.verbs.prove import prove_document
from tflq.face.report.verbs.run import run_document
from tflq.face.report.verbs.session import session_document
from tflq.face.report.verbs.verify import verify_document
from tflq.face.report.verbs.why import Asked, why_document

GOLDEN = suites.ROOT / "golden"
INT8, FLOAT, UNET = (
    str(GOLDEN / "models" / f"digits_{name}.tflite") for name in ("mobilenet_int8", "mobilenet_float", "unet_int8")
)
RECORDED = str(GOLDEN / "recorded" / "digits_mobilenet_int8.npz")
#: A model of one operator, and what a device computed for it.
DENSE, DEVICE = str(GOLDEN / "singleop" / "models" / "tie_fc_i8_0.tflite"), "device.npz"
DECODER = str(GOLDEN / "models" / "tiny_decoder_int8.tflite")


def said(words: str) -> dict[str, Any]:
    """Return the document that a command prints."""
    found: dict[str, Any] = json.loads(commands.tflq(*shlex.split(words), "--json").stdout)
    return found


def plain(document: Any) -> Any:
    """Return a document as a reader of its JSON gets it, without times."""
    return without_times(json.loads(json.dumps(document, default=str)))


def without_times(value: Any) -> Any:
    """Return a document without what differs between two runs."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in ("seconds", "date")}
    return [without_times(one) for one in value] if isinstance(value, list) else value


CASES: dict[str, tuple[str, Callable[[], Any]]] = {
    "inspect": (f"inspect {INT8}", lambda: inspect_document(tflq.inspect(INT8))),
    "lint": (f"lint {UNET}", lambda: lint_document(tflq.lint(UNET), None, 0)),
    "profiles of a pair": (
        "profiles diff tflm tflm-cmsis-nn-single",
        lambda: pair_document(tflq.compare_profiles("tflm", "tflm-cmsis-nn-single")),
    ),
    "profiles": (f"profiles effects {INT8}", lambda: effects_document(tflq.profile_effects(INT8))),
    "profiles since": (
        f"profiles releases {DENSE} --since 2.3",
        lambda: agreements_document(tflq.profile_releases(DENSE, "2.3")),
    ),
    "run": (f"run {INT8} --inputs {RECORDED}", lambda: run_document(tflq.run(INT8, RECORDED), "")),
    "verify": (f"verify {INT8} --golden {RECORDED}", lambda: verify_document(tflq.verify(INT8, RECORDED))),
    "golden": (
        f"golden diff {RECORDED} {RECORDED} --model {INT8}",
        lambda: drift_document(tflq.diff_goldens(INT8, RECORDED, RECORDED)),
    ),
    "prove": (
        f"prove {INT8} --between litert-ref tflm",
        lambda: prove_document(tflq.prove(INT8, ["litert-ref", "tflm"])),
    ),
    "session": (
        f"session {DECODER} --between litert-ref litert-opt --steps 2",
        lambda: session_document(tflq.session(DECODER, between=("litert-ref", "litert-opt"), steps=2)),
    ),
    "explain": (
        f"explain {DENSE} --dump {DEVICE}",
        lambda: explain_document(tflq.explain(DENSE, DEVICE), DENSE, DEVICE),
    ),
    "explain an element": (
        f"explain {INT8} --op 1 --element 0,1,1,1",
        lambda: (lambda found: element_run_document(INT8, found[1], found[0]))(
            tflq.explain_element(INT8, (0, 1, 1, 1), op=1)
        ),
    ),
    "fit": (f"fit {DENSE} --dump {DEVICE}", lambda: fit_document(tflq.fit(DENSE, DEVICE))),
    "why": (f"why {DENSE} {DEVICE}", lambda: why_document(tflq.why(DENSE, DEVICE), Asked(DENSE, DEVICE, False, ()))),
    "court": (
        f"court {INT8} --with litert-ref,tflm-cmsis-nn-single --samples 2",
        lambda: court_document(tflq.court(INT8, ["litert-ref", "tflm-cmsis-nn-single"], samples=2)),
    ),
    "diff": (f"diff {INT8} {UNET}", lambda: diff_document(tflq.diff(INT8, UNET))),
}


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a device's tensors to a file, and work in its folder."""
    recorded = GOLDEN / "singleop" / "recorded"
    with np.load(recorded / "tie_fc_i8_0.npz") as given, np.load(recorded / "tie_fc_i8_0@litert-opt.npz") as own:
        graph = tflq.load(DENSE).subgraphs[0]
        np.savez(tmp_path / DEVICE, **{str(graph.inputs[0]): given["s0_in0"], str(graph.outputs[0]): own["s0_out0"]})
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CASES)
def test_the_function_returns_what_the_command_prints(name: str) -> None:
    words, call = CASES[name]
    assert plain(call()) == without_times(said(words))


def test_a_suite_is_judged_as_the_command_does(tmp_path: Path) -> None:
    made, same = tmp_path / "suite.npz", tmp_path / "same.npz"
    said(f"conform make -o {made} --level smoke --shard 3/1200")
    tflq.make_suite(same, level="smoke", shard=(3, 1200))
    assert made.read_bytes() == same.read_bytes()
    found = tflq.conform(made, "profile:tflm", level="smoke")
    assert plain(verdict_document(found)) == without_times(
        said(f"conform run {made} --target profile:tflm --level smoke")
    )
    assert tflq.pack_suite(made, tmp_path / "packed", level="smoke") == len(found.cases)


def test_runs_are_compared_as_the_command_does(tmp_path: Path) -> None:
    made, names = tmp_path / "suite.npz", ("litert-ref", "tflm")
    tflq.make_suite(made, level="smoke", shard=(3, 300))
    runs = [tflq.conform(made, f"profile:{name}") for name in names]
    for name in names:
        text = CliRunner().invoke(cli, f"conform run {made} --target profile:{name} --json").stdout
        (tmp_path / f"{name}.json").write_text(text)
    paths = [tmp_path / f"{name}.json" for name in names]
    printed = without_times(said(f"conform diff {paths[0]} {paths[1]}"))
    assert plain(changes_document(tflq.diff_verdicts(*paths))) == printed
    assert plain(changes_document(tflq.diff_verdicts(*runs))) == printed
    words = f"conform diff --suite {made} --before profile:litert-ref --after profile:tflm"
    assert without_times(said(words)) == printed
    assert printed["verdict"] == "differs"


@pytest.mark.usefixtures("device")
def test_a_profile_is_learned_as_the_command_does(tmp_path: Path) -> None:
    words = f"learn --dump {DEVICE} --model {DENSE} -o {tmp_path / 'device.yaml'}"
    found = tflq.learn(evidence=[DEVICE], models=[DENSE])
    assert plain(learn_document(found, str(tmp_path / "device.yaml"))) == without_times(said(words))


def test_models_are_compared_as_the_command_does(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", suites.digits().images[:8])
    words = f"compare {FLOAT} {INT8} --inputs {tmp_path / 'x.npy'} --runtimes litert-ref,litert-opt"
    found = tflq.compare(FLOAT, INT8, tmp_path / "x.npy", runtimes=["litert-ref", "litert-opt"])
    document = compare_document(found, subject(FLOAT).facts, subject(INT8).facts)
    assert plain(document) == without_times(said(words))


def test_models_are_timed_as_the_command_does() -> None:
    found = plain(bench_document(tflq.bench(DENSE, against=(), runs=3)))
    assert found.keys() == without_times(said(f"bench {DENSE} --against none --runs 3")).keys()


def test_every_verb_has_a_function() -> None:
    """`view` serves a page until Ctrl-C, and so has none."""
    functions = {"doctor": "examine", "golden": "diff_goldens", "export": "export_c", "profiles": "profile_effects"}
    assert [
        verb for verb in VERBS if verb != "view" and not callable(getattr(tflq, functions.get(verb, verb), None))
    ] == []
