"""Baselines and SARIF: only what is new fails, entries expire, logs are as the standard has them; the hooks run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import yaml

from support import suites
from support.commands import tflq
from tflq.errors import InputError
from tflq.face.cli.answer import Exit, gravest
from tflq.face.cli.many import Continuous, Judgement
from tflq.face.report.issues import Complaints
from tflq.model.storage.documents import read_baseline, write_baseline

SINGLE = suites.ROOT / "golden" / "singleop"
ENTRY = next(entry for entry in json.loads((SINGLE / "index.json").read_text()) if "leaky_relu_01" in entry["model"])
MODEL = SINGLE / ENTRY["model"]
UNTIL = ("--accept-until", "2999-12-31", "--reason", "ticket 7")


def golden_of(place: Path, wrong: int) -> Path:
    """A golden of the model whose first output element is wrong by so much."""
    entries = dict(np.load(SINGLE / ENTRY["golden"]))
    output = entries["s0_out0"].copy()
    output.flat[0] = int(output.flat[0]) + (wrong if output.flat[0] < 100 else -wrong)
    np.savez(place, **{**entries, "s0_out0": output})
    return place


def test_only_what_is_new_fails(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    words = ("verify", MODEL, "--golden", golden_of(tmp_path / "g.npz", 1))
    assert tflq(*words).exit_code == 1
    assert tflq(*words, "--baseline", known, *UNTIL).exit_code == 0
    assert tflq(*words, "--baseline", known).exit_code == 0
    worse = ("verify", MODEL, "--golden", golden_of(tmp_path / "worse.npz", 9))
    assert tflq(*worse, "--baseline", known).exit_code == 1


def test_entries_expire(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    words = ("verify", MODEL, "--golden", golden_of(tmp_path / "g.npz", 1), "--baseline", known)
    assert tflq(*words, *UNTIL).exit_code == 0
    known.write_text(known.read_text().replace("2999-12-31", "2001-01-01"))
    assert tflq(*words).exit_code == 1


@pytest.mark.parametrize("accepted", [7, [7], [{"key": "x"}], [{"key": "x", "reason": "y", "expires": "soon"}]])
def test_a_baseline_that_is_none_is_refused(accepted: object, tmp_path: Path) -> None:
    from datetime import date

    (tmp_path / "b.json").write_text(json.dumps({"schema": "tflq/baseline/1", "accepted": accepted}))
    with pytest.raises(InputError):
        read_baseline(tmp_path / "b.json", date(2026, 1, 1))


def test_accepting_needs_a_file_and_a_reason(tmp_path: Path) -> None:
    assert tflq("lint", MODEL, "--accept-until", "2999-12-31").exit_code == 2
    assert tflq("lint", MODEL, "--baseline", tmp_path / "b.json", "--accept-until", "tomorrow").exit_code == 2


def test_sarif_says_what_is_wrong_where_and_what_is_accepted(tmp_path: Path) -> None:
    known, log = tmp_path / "known.json", tmp_path / "log.sarif"
    words = ("verify", MODEL, "--golden", golden_of(tmp_path / "g.npz", 1), "--sarif", log, "--force")
    tflq(*words)
    run = json.loads(log.read_text())["runs"][0]
    (result,) = run["results"]
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert result["level"] == "error"
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert location == MODEL.as_posix()
    assert "suppressions" not in result
    tflq(*words, "--baseline", known, *UNTIL)
    (result,) = json.loads(log.read_text())["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "ticket 7"}]
    tflq("verify", MODEL, "--golden", SINGLE / ENTRY["golden"], "--sarif", log, "--force")
    assert json.loads(log.read_text())["runs"][0]["results"] == []


def test_findings_of_lint_go_into_both(tmp_path: Path) -> None:
    found = next(p for p in sorted((SINGLE / "models").glob("*.tflite")) if tflq("lint", p, "--json").exit_code == 1)
    words = ("lint", found, "--sarif", tmp_path / "l.sarif", "--force")
    assert tflq(*words).exit_code == 1
    assert json.loads((tmp_path / "l.sarif").read_text())["runs"][0]["results"]
    assert tflq(*words, "--baseline", tmp_path / "l.json", *UNTIL).exit_code == 0


@pytest.mark.slow
def test_the_hooks_and_the_action_run(tmp_path: Path) -> None:
    hooks = {hook["id"]: hook["entry"] for hook in yaml.safe_load((suites.ROOT / ".pre-commit-hooks.yaml").read_text())}
    action = yaml.safe_load((suites.ROOT / ".github/actions/verify/action.yml").read_text())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tflq").write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from tflq.face.cli.main import main; main()" "$@"\n'
    )
    (tmp_path / "bin" / "tflq").chmod(0o755)
    (tmp_path / "m.tflite").write_bytes(MODEL.read_bytes())
    inputs = {"model": "m.tflite", "golden": "m.npz", "profile": "litert-ref", "baseline": ""}
    step = action["runs"]["steps"][-1]
    named = {name: re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)[1] for name, value in step["env"].items()}
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(suites.ROOT),
        **{name: inputs[word] for name, word in named.items()},
    }
    for wrong, code in ((0, 0), (1, 1)):
        golden_of(tmp_path / "m.npz", wrong)
        for command in (step["run"], f"{hooks['tflq-verify']} m.tflite"):
            ended = subprocess.run(
                ["bash", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert ended.returncode == code, ended.stderr


def test_the_action_installs_tflq_from_its_own_ref(tmp_path: Path) -> None:
    """A `uses:` line that is copied works before anything is on a package index."""
    action = yaml.safe_load((suites.ROOT / ".github/actions/verify/action.yml").read_text())
    (tmp_path / "python").write_text('#!/bin/sh\nfor word; do last=$word; done; echo "$last"\n')
    (tmp_path / "python").chmod(0o755)
    place = suites.ROOT / ".github" / "actions" / "verify"
    known = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(place)}
    for package, wanted in (("", suites.ROOT), ("tflq==9", "tflq==9")):
        command = ["bash", "-ec", action["runs"]["steps"][0]["run"]]
        done = subprocess.run(
            command, env={**known, "TFLQ_PACKAGE": package}, capture_output=True, text=True, check=True
        )
        said = done.stdout.strip()
        assert (Path(said).resolve() if package == "" else said) == wanted
    assert action["inputs"]["version"]["default"] == ""


@pytest.mark.slow
def test_the_action_takes_patterns(tmp_path: Path) -> None:
    action = yaml.safe_load((suites.ROOT / ".github/actions/verify/action.yml").read_text())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tflq").write_text(f'#!/bin/sh\nexec {sys.executable} -m tflq.face.cli.main "$@"\n')
    (tmp_path / "bin" / "tflq").chmod(0o755)
    for name, wrong in (("a", 0), ("deep/b c", 1)):
        place = tmp_path / "models" / f"{name}.tflite"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(MODEL.read_bytes())
        golden_of(tmp_path / f"{place.stem}.npz", wrong)
    words = {"GOLDEN": "{stem}.npz", "PROFILE": "litert-ref", "BASELINE": ""}
    base = {**os.environ, "PYTHONPATH": str(suites.ROOT), **{f"TFLQ_{name}": word for name, word in words.items()}}
    base["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    patterns = (("models/*.tflite", 0), ("models/**/*.tflite", 1), ("models/a.tflite\nmodels/deep/*", 1), ("none/*", 2))
    for pattern, code in patterns:
        command = ["bash", "-ec", action["runs"]["steps"][-1]["run"]]
        ended = subprocess.run(
            command, cwd=tmp_path, env={**base, "TFLQ_MODEL": pattern}, capture_output=True, text=True, check=False
        )
        assert ended.returncode == code, ended.stderr
    log = json.loads((tmp_path / "tflq-verify.sarif").read_text())
    assert [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in log["runs"][0]["results"]] == [
        "models/deep/b%20c.tflite"
    ]


def test_an_interrupted_run_is_compared_with_no_baseline(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(str(path), set(), "known", date(2999, 1, 1), {"a part": 5})
    kept = Continuous(str(path))
    assert kept.judge("interrupted", Complaints("interrupted", ())) == Judgement(Exit.INTERRUPTED)
    assert gravest([Exit.SAME, Exit.DIFFERS, Exit.INTERRUPTED]) is Exit.INTERRUPTED
