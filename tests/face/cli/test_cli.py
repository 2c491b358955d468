"""The command line in this process: exit codes, documents, errors."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pytest

from support import suites
from support.commands import document, tflq
from support.each import each
from tflq.face.cli.main import VERBS, cli

MODEL = str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")
SINGLE = suites.ROOT / "golden" / "singleop"
ENTRY = next(entry for entry in json.loads((SINGLE / "index.json").read_text()) if "leaky_relu_01" in entry["model"])
LEAKY = str(SINGLE / ENTRY["model"])


def golden_of(tmp_path: Path, *, wrong: bool = False) -> Path:
    """A golden of this model made of the recording that the project carries."""
    entries = dict(np.load(SINGLE / ENTRY["golden"]))
    if wrong:
        entries["s0_out0"] = entries["s0_out0"] ^ np.uint8(1)
    np.savez(tmp_path / "g.npz", **entries)
    return tmp_path / "g.npz"


def test_help_names_every_verb_and_exit_code() -> None:
    result = tflq("--help")
    assert result.exit_code == 0
    for word in (*VERBS, "0 same", "1 differs", "2 misuse", "3 unsupported", "4 the runtime"):
        assert word in " ".join(result.stdout.split())
    for verb in VERBS:
        assert tflq(verb, "--help").exit_code == 0


def test_zero_where_all_bits_agree(tmp_path: Path) -> None:
    result = tflq("verify", LEAKY, "--golden", golden_of(tmp_path))
    assert (result.exit_code, result.stdout[:4]) == (0, "SAME")


def test_one_where_bits_differ(tmp_path: Path) -> None:
    golden = golden_of(tmp_path, wrong=True)
    result = tflq("verify", LEAKY, "--golden", golden, "--junit", tmp_path / "j.xml")
    assert (result.exit_code, result.stdout[:7]) == (1, "DIFFERS")
    assert (tmp_path / "j.xml").read_text().startswith("<?xml")
    result = tflq("verify", LEAKY, "--golden", golden, "--json")
    found = document(result, "verify")
    assert (result.exit_code, found["verdict"], found["mode"]) == (1, "differs", "cumulative")


@each(
    "words",
    [
        ["verify"],
        ["verify", MODEL, "--mode", "sideways"],
        ["verify", MODEL, "--no-such-option"],
        ["verify", MODEL, "--against", "nothing"],
        ["verify", MODEL, "--against", "litert-ref", "--golden", "x.npz"],
        ["verify", MODEL, "--golden", "no-such.npz"],
        ["verify", MODEL, "--profile", "nothing"],
        ["verify", MODEL, "--samples", "0"],
        ["verify", "no-such-model.tflite"],
        ["verify", __file__],
        ["inspect", MODEL, "--op", "1000"],
        ["run", MODEL, "--inputs", "nothing=x.npy"],
        ["run", MODEL, "--inputs", "no-such.npy"],
        ["frobnicate"],
    ],
    ids=lambda words: " ".join(Path(w).name for w in words),
)
def test_two_for_misuse_and_bad_input(words: list[str]) -> None:
    plain = tflq(*words)
    assert (plain.exit_code, plain.stdout) == (2, "")
    assert plain.stderr.strip()
    assert "Traceback" not in plain.stderr
    asked = tflq(*words, "--json")
    assert (asked.exit_code, document(asked, "error")["exit_code"]) == (2, 2)


def unsupported(folder: Path) -> Path:
    from dataclasses import replace

    from tflq.engine.api.files import load, save

    model = load(LEAKY)
    save(
        replace(model, operator_codes=tuple(replace(c, version=120) for c in model.operator_codes)), folder / "m.tflite"
    )
    return folder / "m.tflite"


def test_three_for_what_is_not_supported(tmp_path: Path) -> None:
    path = unsupported(tmp_path)
    result = tflq("run", path, "--json")
    assert (result.exit_code, document(result, "error")["kind"]) == (3, "UnsupportedError")
    result = tflq("inspect", path)
    assert (result.exit_code, "not supported" in result.stdout) == (0, True)


def test_four_where_the_runtime_is_not_there() -> None:
    result = tflq("verify", MODEL, "--python", "/no/such/python", "--json")
    found = document(result, "error")
    assert (result.exit_code, found["kind"]) == (4, "RuntimeMissing")
    assert found["facts"]["runtime"] == "litert-ref"


def test_an_interrupt_is_its_own_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tflq.comparison.inspection.operators.inspect", interrupted)
    assert tflq("inspect", MODEL).exit_code == 130


def test_record_then_verify(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    golden = tmp_path / "g.npz"
    result = tflq("record", MODEL, "-o", golden, "--all-tensors", "--samples", 2, "--json")
    found = document(result, "record")
    assert (result.exit_code, found["samples"], found["tensors"]) == (0, 2, True)
    assert found["runtime"]["package"] == "ai-edge-litert"
    for mode in ("isolated", "cumulative"):
        result = tflq("verify", MODEL, "--golden", golden, "--mode", mode, "--json")
        assert (result.exit_code, document(result, "verify")["verdict"]) == (0, "same")
    first = tflq("verify", MODEL, "--json").stdout
    assert first == tflq("verify", MODEL, "--json").stdout


def test_run_writes_what_was_recorded(tmp_path: Path) -> None:
    recorded = np.load(golden_of(tmp_path))
    np.save(tmp_path / "x.npy", recorded["s0_in0"])
    out = tmp_path / "out.npz"
    result = tflq("run", LEAKY, "--inputs", tmp_path / "x.npy", "-o", out, "--all-tensors", "--json")
    found = document(result, "run")
    assert (result.exit_code, found["file"]) == (0, str(out))
    made = np.load(out)
    assert sorted(made.files) == sorted(entry["name"] for entry in found["arrays"])
    assert made["t1"].tobytes() == recorded["s0_out0"].tobytes()
    assert made["t0"].tobytes() == recorded["s0_in0"].tobytes()


def test_inspect_shows_the_numbers_behind_an_operator() -> None:
    found = document(tflq("inspect", MODEL, "--json"), "inspect")
    convolution = next(o for o in found["operators"] if o["op"] == "CONV_2D")
    x, w, y = (
        found["tensors"][t] for t in (convolution["inputs"][0], convolution["inputs"][1], convolution["outputs"][0])
    )
    stage = convolution["constants"]["stages"][0]
    wanted = [x["scale"][0] * scale / y["scale"][0] for scale in w["scale"]]
    np.testing.assert_allclose(stage["real"], wanted, rtol=1e-15)
    np.testing.assert_allclose(np.ldexp(np.array(stage["mantissa"]) / 2**31, stage["shift"]), wanted, rtol=2**-30)
    assert convolution["macs"] == int(np.prod(y["shape"])) * int(np.prod(w["shape"][1:]))
    one = tflq("inspect", MODEL, "--op", convolution["index"])
    assert one.exit_code == 0
    assert str(stage["mantissa"][0]) in one.stdout


def test_commands_are_found_lazily() -> None:
    context = click.Context(cli)
    assert cli.get_command(context, "nothing") is None
    assert {name: cli.get_command(context, name).name for name in VERBS} == {name: name for name in VERBS}


def every_option() -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command below `tflq`, with its words."""
    found: list[tuple[tuple[str, ...], click.Command]] = []
    groups: list[tuple[tuple[str, ...], click.Group]] = [((), cli)]
    for words, group in groups:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                groups.append(((*words, name), command))
            else:
                found.append(((*words, name), command))
    return found


def test_no_option_takes_the_next_option_as_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tried = 0
    for words, command in every_option():
        for option in (p for p in command.params if isinstance(p, click.Option) and not p.is_flag and not p.count):
            if option.flag_value is None or not getattr(option, "_flag_needs_value", False):
                refused = tflq(*words, option.opts[0], "--help")
                assert (refused.exit_code, refused.stdout) == (2, ""), (words, option.opts)
                assert f"{option.opts[0]} needs a value, and --help is an option" in refused.stderr
                assert f" {' '.join(words)} [OPTIONS]" in refused.stderr
                tried += 1
    assert tried > 150
    assert list(tmp_path.iterdir()) == []
    assert tflq("quantize", "--portable", "--help").exit_code == 0  # a value that may be left out
    written = tflq("run", MODEL, "--output=--json")
    assert (written.exit_code, [path.name for path in tmp_path.iterdir()]) == (0, ["--json"]), written.output


def test_names_of_profiles_and_runtimes_are_completed() -> None:
    named: dict[str, int] = {"profile": 0, "against": 0}
    for words, command in every_option():
        for option in (p for p in command.params if isinstance(p, click.Option)):
            name = option.opts[-1].removeprefix("--")
            if name in named:
                context = click.Context(command)
                found = [item.value for item in option.shell_complete(context, "litert-r")]
                assert "litert-ref" in found, (words, option.opts)
                (file,) = option.shell_complete(context, "./my")
                assert (file.value, file.type) == ("./my", "file")
                named[name] += 1
    assert named["profile"] >= 12
    assert named["against"] >= 4
