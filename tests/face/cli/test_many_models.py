"""Several models in one call, defaults from pyproject.toml, tolerances, --quiet, --watch, misspelt words."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from support.each import each
from tflq.comparison.verification.report import Verification
from tflq.errors import InputError
from tflq.face.cli.answer import Exit
from tflq.face.cli.main import VERBS, cli
from tflq.face.cli.many import Continuous, each_model, verify_several
from tflq.face.cli.settings import files_of, watch
from tflq.face.report.several import SummaryRow
from tflq.model.ir.model import data_text

SINGLE = suites.ROOT / "golden" / "singleop"
ENTRIES = [entry for entry in json.loads((SINGLE / "index.json").read_text()) if "leaky_relu_0" in entry["model"]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models a and b with goldens, that of b wrong by one LSB in one element."""
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        shutil.copy(SINGLE / ENTRIES[0]["model"], f"{name}.tflite")
        entries = dict(np.load(SINGLE / ENTRIES[0]["golden"]))
        if name == "b":
            output = entries["s0_out0"].copy()
            output.flat[0] ^= 1
            entries["s0_out0"] = output
        np.savez(f"{name}.npz", **entries)
    return tmp_path


def test_several_models_get_a_summary_and_one_exit_code(folder: Path) -> None:
    done = tflq("verify", "a.tflite", "b.tflite", "missing.tflite", "--golden", "{stem}.npz")
    lines = done.stdout.splitlines()
    assert done.exit_code == 1
    assert lines[0] == "DIFFERS 3 models: 1 differs, 1 failed, 1 same"
    assert lines[1].startswith("First: b.tflite: ")
    assert lines[2] == "Next: tflq verify b.tflite --golden b.npz"
    assert [line.split()[0] for line in lines[3:]] == ["verdict", "same", "differs", "failed"]
    assert tflq("verify", "a.tflite", "missing.tflite", "--golden", "{stem}.npz").exit_code == 2
    assert tflq("verify", "a.tflite", "a.tflite", "--golden", "{stem}.npz").exit_code == 0


def test_the_summary_is_a_document_too(folder: Path) -> None:
    done = tflq("verify", "a.tflite", "b.tflite", "missing.tflite", "--golden", "{stem}.npz", "--json")
    found = json.loads(done.stdout)
    validate(found, "verify-summary")
    validate(found["models"][1]["report"], "verify")
    validate(found["models"][2]["error"], "error")
    assert (found["exit_code"], [m["verdict"] for m in found["models"]]) == (1, ["same", "differs", "failed"])


@pytest.mark.parametrize("key", ["LEAKY_RELU=1", "0=1", "*=1"])
def test_a_tolerated_difference_is_close_not_the_same(folder: Path, key: str) -> None:
    words = ["verify", "b.tflite", "--golden", "b.npz"]
    assert tflq(*words).exit_code == 1
    done = tflq(*words, "--tolerance", key)
    assert (done.exit_code, done.stdout.split()[0]) == (5, "CLOSE")
    assert "allowed (1 by a tolerance)" in done.stdout
    assert tflq(*words, "--tolerance", "LEAKY_RELU=0").exit_code == 1
    assert tflq(*words, "--tolerance", "LEAKY_RELU").exit_code == 2


def test_pyproject_gives_defaults_that_the_command_line_overrules(folder: Path) -> None:
    Path("pyproject.toml").write_text('[tool.tflq]\nprofile = "litert-opt"\ngolden = "{stem}.npz"\ninputs = "smooth"\n')
    done = tflq("verify", "b.tflite", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["profile"], found["golden"]) == (1, "litert-opt", "b.npz")
    done = tflq("verify", "a.tflite", "--golden", "a.npz", "--profile", "litert-ref", "--json")
    assert (done.exit_code, json.loads(done.stdout)["profile"]) == (0, "litert-ref")
    assert json.loads(tflq("run", "a.tflite", "--json").stdout)["inputs"]["source"] == "smooth"
    told = tflq("run", "a.tflite", "--profile", "litert-ref").stderr
    assert "pyproject.toml: --inputs smooth\n" in told  # not the profile, which the command line gives
    assert "pyproject.toml" not in tflq("run", "a.tflite", "-q").stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.tflq]\nprofil = "tflm"\n', "did you mean profile"),
        ("[tool.tflq.verify]\nsample = 3\n", "did you mean samples"),
        ("[tool.tflq\n", "is not TOML"),
        ('[tool.tflq]\nprofile = "litert-rf"\n', "did you mean litert-ref"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(folder: Path, text: str, message: str) -> None:
    Path("pyproject.toml").write_text(text)
    done = tflq("verify", "a.tflite", "--golden", "a.npz")
    assert done.exit_code == 2
    assert message in done.stderr


def test_quiet_prints_the_verdict_only(folder: Path) -> None:
    done = tflq("verify", "b.tflite", "--golden", "b.npz", "--quiet")
    assert (done.exit_code, len(done.stdout.splitlines())) == (1, 1)
    assert done.stdout.startswith("DIFFERS b.tflite")


@pytest.mark.parametrize(("word", "meant"), [("verfy", "verify"), ("quantise", "quantize")])
def test_a_misspelt_verb_is_answered_with_the_one_that_may_be_meant(word: str, meant: str) -> None:
    assert f"Did you mean {meant}?" in tflq(word).stderr


def test_version_and_module() -> None:
    short = subprocess.run([sys.executable, "-m", "tflq", "-V"], capture_output=True, text=True, check=True)
    assert short.stdout.split()[1] == tflq("--version").stdout.split()[1]
    assert short.stdout.startswith("tflq ")


@each("verb", sorted(VERBS))
def test_help_has_examples(verb: str) -> None:
    lines = [line.split() for line in tflq(verb, "--help").stdout.splitlines() if line.startswith(f"  tflq {verb}")]
    command = cli.get_command(click.Context(cli), verb)
    assert lines
    for words in lines:
        assert words[:2] == ["tflq", verb]
        command.make_parser(click.Context(command)).parse_args(words[2:])


def test_watching_runs_again_after_a_change(folder: Path) -> None:
    runs = []

    def run() -> int:
        runs.append(Path("a.npz").stat().st_size)
        if len(runs) == 1:
            Path("a.npz").write_bytes(b"changed")
        return 130 if len(runs) == 2 else 0

    assert files_of(["verify", "a.tflite", "--golden=a.npz", "-o", "b.npz"]) == ["a.tflite", "a.npz"]
    assert watch(run, ["a.npz"], lambda text: None) == 130
    assert runs[1] == len(b"changed")


@pytest.mark.parametrize("verb", ["inspect", "lint", "run"])
def test_other_verbs_take_several_models_too(folder: Path, verb: str) -> None:
    done = tflq(verb, "a.tflite", "b.tflite", "missing.tflite")
    assert done.exit_code == 2
    head, following, *_ = done.stdout.splitlines()
    assert head.startswith("FAILED 3 models: 1 failed, 2 ")
    assert following == f"Next: tflq {verb} missing.tflite"
    assert tflq(verb, "a.tflite", "b.tflite").exit_code == 0
    found = json.loads(tflq(verb, "a.tflite", "missing.tflite", "--json").stdout)
    validate(found, "summary")
    validate(found["models"][0]["report"], verb)
    assert found["exit_code"] == 2
    assert found["models"][1]["error"]["exit_code"] == 2


def test_one_model_that_is_not_supported_decides(folder: Path) -> None:
    newer = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
    done = tflq("inspect", "a.tflite", newer, "--profile", "tf-1.15-ref")
    assert done.exit_code == 3
    assert done.stdout.startswith("UNSUPPORTED 2 models: 1 unsupported, 1 supported")


def test_outputs_of_several_models_have_files_of_their_own(folder: Path) -> None:
    done = tflq("run", "a.tflite", "b.tflite", "-o", "out-{stem}.npz")
    assert done.exit_code == 0
    alone = tflq("run", "a.tflite", "-o", "alone.npz")
    assert alone.exit_code == 0
    assert set(np.load("out-a.npz")) == set(np.load("alone.npz"))
    same = tflq("run", "a.tflite", "b.tflite", "-o", "out.npz")
    assert same.exit_code == 2
    assert "{stem}" in same.stderr
    assert not Path("out.npz").exists()


@pytest.mark.parametrize("words", [("inspect", "--op", "0"), ("lint", "--fix", "fixed.tflite"), ("run", "--html", "x")])
def test_options_of_one_model_are_refused_for_several(folder: Path, words: tuple[str, ...]) -> None:
    done = tflq(words[0], "a.tflite", "b.tflite", *words[1:])
    assert done.exit_code == 2
    assert "for one model only, but 2 are given" in done.stderr


def test_several_models_have_one_junit_one_log_and_one_baseline(folder: Path) -> None:
    models = ("a.tflite", "b.tflite", "missing.tflite")
    words = ("verify", *models, "--golden", "{stem}.npz")
    assert tflq(*words, "--junit", "j.xml", "--sarif", "s.json").exit_code == 1
    root = ElementTree.parse("j.xml").getroot()
    assert [suite.get("name") for suite in root] == [f"tflq verify {model}" for model in models]
    assert (root.get("failures"), root.get("errors")) == ("1", "1")
    log = json.loads(Path("s.json").read_text())
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["bits-differ", "failed"]
    known = ("--baseline", "known.json")
    until = ("--accept-until", "2999-12-31", "--reason", "x")
    assert tflq(*words, *known, *until).exit_code == 2  # a model that cannot be read is not accepted
    two = ("verify", "a.tflite", "b.tflite", "--golden", "{stem}.npz")
    assert tflq(*two).exit_code == 1
    assert tflq(*two, *known).exit_code == 0


def test_one_golden_is_not_compared_with_several_models(folder: Path) -> None:
    done = tflq("verify", "a.tflite", "b.tflite", "--golden", "a.npz")
    assert (done.exit_code, "name a pattern" in done.stderr) == (2, True)


def test_lint_of_several_models_has_one_junit_and_one_log(folder: Path) -> None:
    shutil.copy(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite", "c.tflite")
    words = ("lint", "a.tflite", "c.tflite", "missing.tflite", "--target", "tflm")
    done = tflq(*words, "--junit", "j.xml", "--sarif", "s.json")
    assert done.exit_code in (1, 2)
    root = ElementTree.parse("j.xml").getroot()
    assert (len(root), root.get("errors")) == (3, "1")
    found = json.loads(Path("s.json").read_text())["runs"][0]["results"]
    assert "failed" in [result["ruleId"] for result in found]
    until = ("--accept-until", "2999-12-31", "--reason", "x")
    assert tflq(*words, "--baseline", "k.json", *until).exit_code == 2


def test_a_default_golden_is_verify_s_alone(folder: Path) -> None:
    Path("pyproject.toml").write_text('[tool.tflq]\ngolden = "{stem}.npz"\n')
    assert tflq("lint", "a.tflite").exit_code == 0
    assert tflq("verify", "a.tflite").exit_code == 0
    assert tflq("verify", "b.tflite").exit_code == 1


def test_defaults_are_printed_without_control_characters(folder: Path) -> None:
    Path("pyproject.toml").write_text('[tool.tflq.run]\nhtml = "p\\u001b[31m.html"\n')
    told = tflq("run", "a.tflite").stderr
    assert "--html p\\x1b[31m.html" in told
    assert "\x1b" not in told


def test_evidence_beside_a_model_names_the_verb_that_reads_it(folder: Path) -> None:
    (folder / "board log.txt").write_text("[00:00:01] score[0] = -63\n", encoding="utf-8")
    for word in ("board log.txt", "a.npz"):
        done = tflq("verify", "a.tflite", word)
        assert done.exit_code == 2
        assert f"`tflq why a.tflite {shlex.quote(word)}`" in done.output


def test_an_interrupt_leaves_a_summary_of_the_models_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    def one(model: str) -> SummaryRow:
        if model == "b":
            raise KeyboardInterrupt
        return SummaryRow("done", ("7",), {}, Exit.SAME)

    assert each_model("run", ["a", "b", "c"], [("samples", ">")], one, as_json=True) is Exit.INTERRUPTED
    document = json.loads(capsys.readouterr().out)
    assert [model["path"] for model in document["models"]] == ["a"]


def test_every_verb_of_several_models_is_in_the_schema() -> None:
    verbs = json.loads(data_text("summary.schema.json"))["properties"]["verb"]["enum"]
    calls = [file.read_text() for file in (suites.ROOT / "tflq" / "face" / "cli").glob("*.py")]
    used = {verb for text in calls for verb in re.findall(r'each_model\(\s*"([a-z ]+)"', text)}
    assert used <= set(verbs)
    assert {"bench", "compare", "run"} <= used


def test_an_interrupted_verification_is_summarized_without_its_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def one(model: str) -> Verification:
        raise KeyboardInterrupt if model == "b" else InputError("no such file", name=model)

    path = tmp_path / "baseline.json"
    kept = Continuous(str(path), accept_until=date(2999, 1, 1), reason="known")
    assert verify_several(["a", "b"], one, kept, as_json=True) is Exit.INTERRUPTED
    assert [model["path"] for model in json.loads(capsys.readouterr().out)["models"]] == ["a"]
    assert not path.exists()
