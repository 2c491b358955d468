"""Every verb that writes checks where before it works, and says the same thing of what it will not destroy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from support import suites
from support.commands import tflq
from support.each import each
from tflq.face.cli.main import VERBS
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite"
FLOAT = suites.ROOT / "golden" / "models" / "digits_mobilenet_float.tflite"

#: What is written by which option, with all that the verb needs besides.
OUTPUTS = {
    "run": ("{model}", "-o"),
    "record": ("{model}", "-o"),
    "extract": ("{model}", "0", "-o"),
    "lint": ("{model}", "--fix"),
    "verify": ("{model}", "--golden", "{golden}", "--junit"),
    "run --html": ("{model}", "--html"),
    "record --html": ("{model}", "-o", "{folder}/new.npz", "--html"),
    "lint --html": ("{model}", "--html"),
    "diff": ("{model}", "{model}", "--html"),
    "court": ("{model}", "--html"),
    "fit": ("{model}", "--dump", "{golden}", "--html"),
    "profiles": ("effects", "{model}", "--html"),
    "view --html": ("{model}", "{golden}", "--html"),
    "view --overlay": ("{model}", "--overlay"),
    "inspect": ("{model}", "--html"),
    "verify --html": ("{model}", "--golden", "{golden}", "--html"),
    "explain --html": ("{model}", "--dump", "{golden}", "--html"),
    "why": ("{model}", "{golden}", "--html"),
    "explain --discriminate": ("{model}", "--dump", "{golden}", "--discriminate"),
    "compare": ("{model}", "{model}", "--inputs", "{golden}", "--html"),
    "quantize": ("{model}", "--calibration", "{golden}", "-o"),
    "quantize --html": ("{model}", "--calibration", "{golden}", "-o", "{folder}/new.tflite", "--html"),
    "prove": ("{model}", "--between", "litert-ref", "tflm", "--witnesses"),
    "session": ("{model}", "--html"),
    "bench": ("{model}", "--html"),
    "learn": ("--dump", "{golden}", "--model", "{model}", "-o"),
    "reduce": ("{model}", "--dump", "{golden}", "-o"),
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {"folder": tmp_path, "model": tmp_path / "m.tflite", "golden": tmp_path / "g.npz", "old": tmp_path / "old"}
    found["model"].write_bytes(MODEL.read_bytes())
    found["golden"].write_bytes((MODEL.parents[1] / "recorded" / "tie_conv_i8_0.npz").read_bytes())
    found["old"].write_bytes(b"precious")
    for ending in (".tflite", ".npz", ".expected.npz"):
        Path(f"{found['old']}{ending}").write_bytes(b"precious")
    return found


def of(words: tuple[str, ...], files: dict[str, Path]) -> list[str]:
    return [word.format(**files) for word in words]


def test_every_verb_that_writes_is_here() -> None:
    writing = {verb for verb in VERBS if "--force" in tflq(verb, "--help").stdout} | {"profiles"}  # effects
    assert writing == {name.split()[0] for name in OUTPUTS}


@each("name", OUTPUTS)
def test_what_exists_stays(name: str, files: dict[str, Path]) -> None:
    before = {path: path.read_bytes() for path in files["folder"].iterdir()}
    result = tflq(name.split()[0], *of(OUTPUTS[name], files), files["old"])
    assert (result.exit_code, "exists already; --force replaces it" in result.stderr) == (2, True), result.output
    assert {path: path.read_bytes() for path in files["folder"].iterdir()} == before


@each("name", OUTPUTS)
@each("alias", ["same", "hard", "soft"])
def test_what_is_read_stays_even_by_force(name: str, alias: str, files: dict[str, Path]) -> None:
    model = files["model"]
    target = files["folder"] / "alias.tflite"
    target.unlink(missing_ok=True)
    if alias == "hard":
        target.hardlink_to(model)
    elif alias == "soft":
        target.symlink_to(model)
    path = model if alias == "same" else target
    named = str(path).removesuffix(".tflite") if name == "reduce" else path
    result = tflq(name.split()[0], *of(OUTPUTS[name], files), named, "--force")
    assert (result.exit_code, "is an input of this command" in result.stderr) == (2, True), result.output
    assert model.read_bytes() == MODEL.read_bytes()


@each("name", OUTPUTS)
@each("place", ["no/such/folder/x", "."])
def test_places_are_checked_before_anything_else(name: str, place: str, files: dict[str, Path]) -> None:
    missing = {**files, "model": files["folder"] / "missing.tflite"}
    result = tflq(
        name.split()[0], *of(OUTPUTS[name], missing), files["folder"] / place if place != "." else f"{files['folder']}/"
    )
    assert result.exit_code == 2, result.output
    assert "no folder" in result.stderr or "is a folder" in result.stderr


def test_force_replaces(files: dict[str, Path]) -> None:
    for words in (("run", "{model}", "-o"), ("extract", "{model}", "0", "-o"), ("lint", "{model}", "--fix")):
        files["old"].write_bytes(b"precious")
        assert tflq(*of(words, files), files["old"], "--force").exit_code in (0, 1)
        assert files["old"].read_bytes() != b"precious"
    assert not [path for path in files["folder"].iterdir() if path.name.startswith(".")]


def test_record_renews_what_is_of_the_same_model(files: dict[str, Path]) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    path = files["folder"] / "new.npz"
    assert tflq("record", files["model"], "-o", path).exit_code == 0
    first = path.read_bytes()
    kept = path.read_bytes()
    assert tflq("record", files["model"], "-o", path, "--seed", 1).exit_code == 2
    assert path.read_bytes() == kept
    assert tflq("record", files["model"], "-o", path, "--seed", 1, "--force").exit_code == 0
    assert path.read_bytes() != first
    assert tflq("record", FLOAT, "-o", path).exit_code == 2
    assert tflq("record", FLOAT, "-o", path, "--force").exit_code == 0


def test_the_same_file_twice_is_refused(files: dict[str, Path]) -> None:
    words = ("explain", files["model"], "--dump", files["golden"], "--html", "{}", "--discriminate", "{}")
    place = files["folder"] / "new"
    result = tflq(*(str(word).format(place) for word in words))
    assert (result.exit_code, "two outputs" in result.stderr) == (2, True)


def test_devices_are_no_files_to_be_spared(files: dict[str, Path]) -> None:
    result = tflq("run", files["model"], "-o", "/dev/null")
    assert result.exit_code == 0, result.output


NAMES = ("allow_pickle", "file", "t1", "../../up", "\x1b]0;x\x07", "nul\0", "\udcff\udcfe", "x" * 70000, "s0_out0", "")


def test_outputs_of_any_name_are_kept(tmp_path: Path) -> None:
    from dataclasses import replace

    from tflq.engine.api.files import load, save
    from tflq.model.storage.arrays import opened

    model = load(MODEL)
    graph = view(model)
    (output,) = graph.outputs
    expected = None
    for number, name in enumerate(NAMES):
        spec = replace(graph.tensors[output], name=name)
        tensors = (*graph.tensors[:output], spec, *graph.tensors[output + 1 :])
        named = replace(model, subgraphs=(replace(graph.record, tensors=tensors),))
        save(named, tmp_path / f"{number}.tflite")
        out = tmp_path / f"{number}.npz"
        result = tflq("run", tmp_path / f"{number}.tflite", "-o", out, "--all-tensors")
        assert result.exit_code == 0, result.output
        with opened(out) as found:
            value = found[name or f"t{output}"]
            assert found[f"t{graph.inputs[0]}"].shape == graph.tensors[graph.inputs[0]].shape
        read_back = tflq("explain", tmp_path / f"{number}.tflite", "--dump", out)
        assert read_back.exit_code == 0, read_back.output
        expected = value if expected is None else expected
        assert np.array_equal(value, expected)


def wrote(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("wrote ")]


def wrong_golden(files: dict[str, Path]) -> Path:
    """A golden with one wrong element."""
    entries = dict(np.load(files["golden"]))
    entries["s0_out0"] = np.bitwise_xor(entries["s0_out0"], np.int8(1))
    np.savez(files["folder"] / "wrong.npz", **entries)
    return files["folder"] / "wrong.npz"


def test_files_beside_the_answer_are_named_after_it(files: dict[str, Path]) -> None:
    place = files["folder"]
    words = ["verify", files["model"], "--golden", wrong_golden(files)]
    for option, name in (("--junit", "r.xml"), ("--sarif", "r.sarif"), ("--html", "r.html")):
        words += [option, place / name]
    result = tflq(*words)
    assert result.exit_code == 1
    assert set(wrote(result)) == {
        f"wrote {place}/r.xml (JUnit, 1 case, 1 failed)",
        f"wrote {place}/r.sarif (SARIF, 1 result)",
        f"wrote {place}/r.html (HTML page)",
    }
    assert "wrote" not in result.stdout
    document = json.loads(tflq(*words, "--json", "--force").stdout)  # nothing else is on standard output
    assert document["schema"].startswith("tflq/verify/")
    drawn = tflq("view", files["model"], "--overlay", place / "o.json")
    assert wrote(drawn) == [f"wrote {place}/o.json (node data for Model Explorer)"]
    quiet = tflq(*words, "-q", "--force")
    assert (quiet.exit_code, wrote(quiet), len(quiet.stdout.splitlines())) == (1, [], 1)


def test_counts_of_junit_files_are_those_of_the_file(files: dict[str, Path]) -> None:
    place = files["folder"] / "r.xml"
    words = ("verify", files["model"], files["folder"] / "missing.tflite", "--golden", files["golden"])
    pattern = files["folder"] / "{stem}.npz"
    pattern.with_name("m.npz").write_bytes(files["golden"].read_bytes())
    result = tflq(*words[:-1], pattern, "--junit", place)
    assert wrote(result) == [f"wrote {place} (JUnit, 2 cases, 0 failed, 1 error)"]
    clean = tflq("lint", files["model"], "--junit", files["folder"] / "lint.xml")
    assert wrote(clean) == [f"wrote {files['folder']}/lint.xml (JUnit, 1 case, 0 failed)"]


def test_a_baseline_that_is_written_is_named(files: dict[str, Path]) -> None:
    place = files["folder"] / "known.json"
    words = ("verify", files["model"], "--golden", wrong_golden(files), "--baseline", place)
    until = ("--accept-until", "2999-12-31", "--reason", "ticket 7")
    assert wrote(tflq(*words, *until)) == [f"wrote {place} (baseline, 1 finding accepted until 2999-12-31)"]
    assert wrote(tflq(*words)) == []


def test_streams_and_odd_names_of_files_keep_the_terminal_whole(files: dict[str, Path]) -> None:
    words = ("verify", files["model"], "--golden", files["golden"], "--junit")
    assert wrote(tflq(*words, "/dev/null")) == []
    (line,) = wrote(tflq(*words, files["folder"] / "a\x1b[2J\n.xml"))
    assert "a\\x1b[2J\\n.xml (JUnit" in line


def test_a_file_is_named_only_if_it_was_written(files: dict[str, Path]) -> None:
    page = files["folder"] / "r.html"
    missing = tflq("verify", files["folder"] / "missing.tflite", "--golden", files["golden"], "--html", page)
    assert (missing.exit_code, wrote(missing), page.exists()) == (2, [], False)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "{model}", "--profile", "{old}", "-o", "{old}"),
        ("run", "{model}", "--labels", "{old}", "-o", "{old}"),
        ("fit", "{model}", "--dump", "{golden}", "--profile", "{old}", "--html", "{old}"),
        ("prove", "{model}", "--between", "litert-ref", "{old}", "--witnesses", "{old}"),
        ("verify", "{model}", "--golden", "{golden}", "--baseline", "{json}", "--sarif", "{json}"),
    ],
    ids=lambda words: " ".join((words[0], words[2])),
)
def test_no_file_that_a_word_names_is_replaced(words: tuple[str, ...], files: dict[str, Path]) -> None:
    kept = files["old"].rename(files["folder"] / "old.json") if "{json}" in words else files["old"]
    result = tflq(*(word.format(json=kept, **files) for word in words), "-f")
    assert result.exit_code == 2, result.output
    assert kept.read_bytes() == b"precious"
    assert "input" in result.output


def test_standard_input_is_read_by_one_word_alone(files: dict[str, Path]) -> None:
    result = tflq("fit", files["model"], "--dump", "-", "--inputs", "-")
    assert result.exit_code == 2
    assert "'-' stands for dump already" in result.output


def test_options_of_a_dump_are_refused_without_one(files: dict[str, Path]) -> None:
    words = ("explain", files["model"], "--op", "0", "--element", "0,0,0,0")
    for more in (("--mean", "100"), ("--sample", "7"), ("--mode", "cumulative")):
        result = tflq(*words, *more)
        assert result.exit_code == 2
        assert f"{more[0]}: only with --dump" in result.output
