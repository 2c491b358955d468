"""What a new user tries: pipes, several models, half a dump, overlays. Each answer leads on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import tflq
from support import commands, suites

MODELS = suites.ROOT / "golden" / "models"
INT8, FLOAT = MODELS / "digits_mobilenet_int8.tflite", MODELS / "digits_mobilenet_float.tflite"
WIDE, SMALL = MODELS / "digits_mobilenet_int16x8.tflite", MODELS / "digits_autoencoder_int8.tflite"


def run(*words: object, stdin: bytes | None = None) -> Result:
    return commands.tflq(*words, input=stdin)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of what litert-opt computes."""
    path = tmp_path_factory.mktemp("device") / "dump.npz"
    assert run("run", INT8, "--profile", "litert-opt", "--all-tensors", "-o", path).exit_code == 0
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.npy"
    np.save(path, np.float32(np.load(MODELS / "digits_test.npz")["images"][:8] / 16))
    return path


def told(result: Result) -> list[str]:
    """Lines without the ones that name paths."""
    return [line for line in result.stdout.splitlines() if "stdin-" not in line and "dump.npz" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["explain", "fit"])
def test_a_dump_from_standard_input(verb: str, device: Path) -> None:
    named, piped = run(verb, INT8, "--dump", device), run(verb, INT8, "--dump", "-", stdin=device.read_bytes())
    assert named.exit_code == piped.exit_code
    assert told(piped) == told(named)


def test_a_golden_and_inputs_from_standard_input(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", **{"serving_default_args_0:0": np.zeros((1, 8, 8, 1), np.int8)})
    done = run("run", SMALL, "--inputs", "-", stdin=(tmp_path / "in.npz").read_bytes())
    assert done.exit_code == 0, done.output
    outputs = tflq.run_many(SMALL, [np.zeros((1, 8, 8, 1), np.int8)])
    np.savez(tmp_path / "golden.npz", s0_in0=np.zeros((1, 8, 8, 1), np.int8), s0_out0=outputs[0][0])
    done = run("verify", SMALL, "--golden", "-", stdin=(tmp_path / "golden.npz").read_bytes())
    assert done.exit_code == 0, done.output


def test_a_dump_of_outputs_only_leads_to_the_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "out.npz", **{"52": np.zeros((1, 10), np.int8)})
    done = run("explain", INT8, "--dump", tmp_path / "out.npz")
    assert done.exit_code == 3
    lines = done.stdout.splitlines()
    assert lines[0] == "INCOMPLETE: none of 20 operators could be compared"
    assert lines[1].startswith("Next: tflq explain ")
    assert lines[1].endswith(" --inputs SOURCE")
    done = run("fit", INT8, "--dump", tmp_path / "out.npz")
    assert done.exit_code == 3
    assert done.stdout.splitlines()[1] == "Next: give what the device was fed with --inputs SOURCE"
    done = run("verify", INT8, "--golden", tmp_path / "out.npz")
    assert done.exit_code == 2
    assert "give them with --inputs" in done.stderr


@pytest.mark.slow
def test_profiles_of_several_models() -> None:
    words = [word for name in ("litert-ref", "litert-opt", "tflm") for word in ("--profile", name)]
    done = run("profiles", "effects", *words, INT8, SMALL)
    assert done.exit_code == 0
    first, *rest = done.stdout.splitlines()
    assert first == "CAN DIFFER 2 models: 2 can differ"
    assert all(any(str(model) in line for line in rest) for model in (INT8, SMALL))
    document = json.loads(run("profiles", "effects", *words, INT8, SMALL, "--json").stdout)
    single = json.loads(run("profiles", "effects", *words, SMALL, "--json").stdout)
    assert document["models"][1]["report"] == single
    assert run("profiles", "effects", INT8, SMALL, "--html", "x.html").exit_code == 2


@pytest.mark.slow
def test_several_models_against_one(rows: Path) -> None:
    done = run("compare", FLOAT, INT8, WIDE, "--inputs", rows)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "COMPARED 2 models: 2 compared"
    single = run("compare", FLOAT, WIDE, "--inputs", rows).stdout.splitlines()[0]
    decibels = lines[-1].split("%", 1)[1].split()[0]
    assert f"SQNR of the outputs {decibels} dB" in single
    assert run("compare", FLOAT, INT8, WIDE, "--inputs", rows, "--all").exit_code == 2


@pytest.mark.slow
def test_every_verb_that_knows_operators_writes_an_overlay(device: Path, rows: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    for name, words in {
        "verify": ("verify", INT8),
        "explain": ("explain", INT8, "--dump", device),
        "fit": ("fit", INT8, "--dump", device),
        "profiles": ("profiles", "effects", INT8, "--profile", "litert-ref", "--profile", "litert-opt"),
        "diff": ("diff", FLOAT, INT8),
        "compare": ("compare", FLOAT, INT8, "--inputs", rows),
        "quantize": (
            "quantize",
            FLOAT,
            "--calibration",
            rows,
            "--recipe",
            "fast",
            "--sensitivity",
            "-o",
            tmp_path / "q",
        ),
    }.items():
        path = tmp_path / f"{name}.json"
        done = run(*words, "--overlay", path)
        assert path.exists(), done.output
        data: dict[str, Any] = json.loads(path.read_text())
        assert data["name"].startswith("tflq: ")
        assert set(data["results"]) <= set(map(str, range(20)))
        assert len(data["results"]) >= 2
        assert all({"value", "bgColor"} <= set(result) for result in data["results"].values())
    made = json.loads((tmp_path / "quantize.json").read_text())
    assert made["name"] == "tflq: what the operator costs alone, noise of the outputs, ppm"
    outputs = tmp_path / "outputs.npz"
    assert run("record", INT8, "-o", outputs).exit_code == 0
    done = run("verify", INT8, "--golden", outputs, "--overlay", tmp_path / "none.json")
    assert done.exit_code == 2
    assert "isolated mode compares each" in done.stderr


@pytest.mark.slow
def test_a_budget_that_is_met_is_said(rows: Path, tmp_path: Path) -> None:
    words = ("--recipe", "fast", "--budget", "sqnr>=20,bytes<=60000", "-o", tmp_path / "q.tflite")
    done = run("quantize", FLOAT, "--calibration", rows, *words)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("budget met")]
    assert "(at least 20 dB)" in line
    assert "bytes (at most 60,000)" in line
    assert line.startswith("budget met by the recipe alone, no operator is spared: ") or "spared, in int16x8" in line


def test_the_module_is_the_command() -> None:
    command = [sys.executable, "-m", "tflq", "-V"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=suites.ROOT)
    assert done.stdout == f"tflq {tflq.__version__}\n"


@pytest.mark.parametrize("verb", ["explain", "fit", "reduce"])
def test_a_golden_of_another_model_is_bad_input(verb: str, tmp_path: Path) -> None:
    """The rule is that of verify, even if the models share tensors."""
    golden = suites.ROOT / "golden" / "recorded" / "digits_mobilenet_int8.npz"
    more = ("-o", tmp_path / "o.tflite") if verb == "reduce" else ()
    result = run(verb, WIDE, "--dump", golden, *more)
    assert (result.exit_code, "was recorded from another model (SHA-256" in result.stderr) == (2, True), result.output


GROUPS = {
    "": ("look", "check", "find why", "make", "ship"),
    "conform": ("tflq conform make", "tflq conform run"),
    "golden": ("tflq golden show", "tflq golden diff"),
    "profiles": ("tflq profiles show", "tflq profiles effects"),
}


@pytest.mark.parametrize("group", sorted(set(GROUPS) - {"profiles"}))  # without words, it lists the profiles
def test_a_group_without_words_prints_its_first_screen(group: str) -> None:
    """The screen is at most 12 lines on standard output that fit a terminal; nothing failed."""
    bare = run(*group.split())
    assert (bare.exit_code, bare.stderr) == (0, "")
    lines = bare.stdout.splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    assert all(f"\n  {word}" in bare.stdout for word in GROUPS[group])
    assert lines[-1].endswith(f"one verb: tflq {group} VERB --help" if group else "one verb: tflq help VERB")


def test_every_group_is_tried_by_a_newcomer() -> None:
    from importlib import import_module

    import click

    from tflq.face.cli.main import VERBS

    commands = {verb: getattr(import_module(module), name) for verb, (module, name) in VERBS.items()}
    assert {verb for verb, command in commands.items() if isinstance(command, click.Group)} == set(GROUPS) - {""}


def test_verbs_without_words_say_what_is_missing() -> None:
    from tflq.face.cli.main import VERBS

    for verb in set(VERBS) - set(GROUPS) - {"doctor"}:
        result = run(verb)
        assert (result.exit_code, result.stdout) == (2, ""), verb
        assert "Missing" in result.stderr.splitlines()[-1]
        assert "\\n" not in result.stderr


def test_help_needs_no_numbers() -> None:
    """Help is printed without NumPy and without a compiler, and so at once."""
    code = (
        "import sys\nfrom tflq.face.cli.main import main\nsys.argv = ['tflq', *sys.argv[1:]]\n"
        "try: main()\nexcept SystemExit: print(sorted({'numpy', 'numba'} & set(sys.modules)), file=sys.stderr)"
    )
    for group in sorted(set(GROUPS) - {"profiles"}):
        done = subprocess.run([sys.executable, "-c", code, *group.split()], capture_output=True, text=True, check=True)
        assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("key", ["s0_t99999", "s0_t999999999", "t99999", "s0_in7", "s0_out7"])
@pytest.mark.parametrize("verb", ["explain", "fit", "reduce"])
def test_a_dump_of_another_model_is_bad_input(verb: str, key: str, tmp_path: Path) -> None:
    golden = suites.ROOT / "golden" / "recorded" / "digits_autoencoder_int8.npz"
    entries = dict(np.load(golden))
    np.savez(tmp_path / "d.npz", **entries, **{key: entries["s0_out0"]})
    more = ("-o", tmp_path / "o.tflite") if verb == "reduce" else ()
    result = run(verb, SMALL, "--dump", tmp_path / "d.npz", *more)
    assert result.exit_code == (2 if key.startswith("s0_") else result.exit_code)
    assert result.exit_code in (0, 1, 2, 3)
    if key.startswith("s0_"):
        assert "d.npz" in result.stderr


@pytest.mark.parametrize(("samples", "left"), [(10, ""), (11, "1 more sample"), (25, "15 more samples")])
def test_run_lists_ten_samples_and_counts_the_others(samples: int, left: str, tmp_path: Path) -> None:
    lines = run("run", INT8, "--samples", samples).stdout.splitlines()
    listed = [line for line in lines if line.startswith("s")]
    assert [line.partition("_")[0] for line in listed] == [f"s{k}" for k in range(10)]
    assert [line for line in lines if line.startswith("not listed")] == (
        [f"not listed: {left}; -o FILE.npz writes all of them"] if left else []
    )
    document = json.loads(run("run", INT8, "--samples", samples, "--json").stdout)
    assert len(document["arrays"]) == samples


def test_run_lists_the_classes_of_ten_images(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for k in range(12):
        images.fromarray(np.full((8, 8), 20 * k, np.uint8)).save(tmp_path / f"{k:02}.png")
    lines = run("run", INT8, "--inputs", tmp_path, "--std", 255).stdout.splitlines()
    assert sum(line.startswith("top 5 of s") for line in lines) == 10
    assert any(line.startswith("not listed: 2 more samples") for line in lines)
    assert sum(line.startswith("likeliest of 12 outputs: ") for line in lines) == 1


def test_a_source_of_all_inputs_excludes_others(tmp_path: Path) -> None:
    np.save(tmp_path / "a=b.npy", np.zeros((1, 8, 8, 1), np.int8))
    assert run("run", INT8, "--inputs", tmp_path / "a=b.npy").exit_code == 0
    for words in (("random", "smooth"), ("random", "x=x.npy")):
        refused = run("run", INT8, "--inputs", words[0], "--inputs", words[1])
        assert (refused.exit_code, "once for each input" in refused.stderr) == (2, True)


def test_a_golden_that_is_not_there_names_the_command_that_records_it(tmp_path: Path) -> None:
    result = run("verify", INT8, "--golden", tmp_path / "no.npz")
    assert result.exit_code == 2
    assert f"tflq record {INT8} -o {tmp_path / 'no.npz'}" in result.stderr


@pytest.mark.parametrize("verb", ["explain", "fit", "why"])
def test_a_dump_is_given_after_the_model_or_by_its_option(verb: str) -> None:
    folder = suites.ROOT / "golden" / "singleop"
    model, dump = folder / "models" / "tie_add_i8_0.tflite", folder / "recorded" / "tie_add_i8_0.npz"
    after = run(verb, model, dump)
    assert after.exit_code == 0, after.output
    if verb != "why":
        assert run(verb, model, "--dump", dump).stdout == after.stdout
        assert run(verb, model, dump, "--dump", dump).exit_code == 2


def test_what_differs_anew_is_never_explained(tmp_path: Path) -> None:
    """A recording of litert-opt under litert-ref is EXPLAINED, but not where a baseline accepts none of it."""
    golden, baseline = tmp_path / "opt.npz", tmp_path / "known.json"
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    assert run("record", INT8, "--against", "litert-opt", "--all-tensors", "-o", golden).exit_code == 0
    asked = ("verify", INT8, "--golden", golden, "--profile", "litert-ref")
    assert (run(*asked).exit_code, run(*asked).stdout.split()[0]) == (6, "EXPLAINED")
    known = (*asked, "--baseline", baseline)
    accepted = run(*known, "--accept-until", "2999-12-31", "--reason", "litert-opt")
    assert (accepted.exit_code, accepted.stdout.split()[0]) == (0, "ACCEPTED")
    assert len(accepted.stdout.splitlines()) < 10
    none = json.loads(baseline.read_text())
    baseline.write_text(json.dumps({**none, "accepted": []}))
    new = run(*known)
    assert (new.exit_code, new.stdout.split()[0]) == (1, "DIFFERS")


def test_export_makes_a_folder_that_is_named_as_one(tmp_path: Path) -> None:
    golden = tmp_path / "g.npz"
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    assert run("record", SMALL, "-o", golden).exit_code == 0
    assert run("golden", "export", golden, "-o", f"{tmp_path}/new/deep/").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "new" / "deep").iterdir()) == ["g.h", "g_test.c"]
    assert run("golden", "export", golden, "-o", f"{golden}/").exit_code == 2
