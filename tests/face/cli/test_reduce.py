"""`tflq reduce`: files that show the difference again, by the line that it prints."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from tflq.engine.api.files import load, save
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def test_a_dump_is_reduced_and_the_printed_line_shows_it(tmp_path: Path) -> None:
    model = load(MODEL)
    graph = view(model)
    value = np.random.default_rng(5).integers(-128, 128, graph.tensors[graph.inputs[0]].shape).astype(np.int8)
    trace = run(make_plan(model, PROFILES["litert-ref"]), {graph.inputs[0]: value}, keep_all=True)
    arrays = {str(t): np.array(v) for t, v in trace.values.items()}
    faulty = arrays[str(graph.op(1).outputs[0])]
    faulty[tuple(n // 2 for n in faulty.shape)] ^= 1
    np.savez(tmp_path / "dump.npz", **arrays)
    result = tflq("reduce", MODEL, "--dump", tmp_path / "dump.npz", "-o", tmp_path / "small")
    assert result.exit_code == 0, result.output
    (line,) = re.findall(r"Next: tflq (.*)", result.stdout)
    assert tflq(*shlex.split(line)).exit_code == 1
    assert (tmp_path / "small.expected.npz").exists()


def test_the_document_follows_its_schema(tmp_path: Path) -> None:
    recorded = suites.ROOT / "golden/singleop/recorded"
    result = tflq(
        "reduce",
        suites.ROOT / "golden/singleop/models/tie_conv_i8_0.tflite",
        "-o",
        tmp_path / "small",
        "--json",
        "--dump",
        recorded / "tie_conv_i8_0@litert-opt.npz",
        "--inputs",
        recorded / "tie_conv_i8_0.npz",
    )
    found = json.loads(result.stdout)
    validate(found, "reduce")
    assert (found["operators"], found["differing"]) == ([0], 1)
    assert found["outputs"][0]["shape"] == [1, 1, 1, 1]
    program, *line = shlex.split(found["next"])
    assert program == "tflq"
    assert tflq(*line).exit_code == 1


@pytest.mark.parametrize("code", [1, 6])
def test_a_check_that_always_differs_leaves_one_operator(tmp_path: Path, code: int) -> None:
    command = f"{shlex.quote(sys.executable)} -c 'raise SystemExit({code})' {{model}} {{inputs}}"
    result = tflq("reduce", MODEL, "--check", command, "-o", tmp_path / "small")
    assert result.exit_code == 0, result.output
    assert "1 operator(s)" in result.stdout


def test_a_check_that_never_differs_is_refused(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -c 'raise SystemExit(0)' {{model}}"
    assert tflq("reduce", MODEL, "--check", command, "-o", tmp_path / "small").exit_code == 2


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("-c 'raise SystemExit(1)'", "needs {model}"),
        ("""-c 'raise SystemExit("no such board")' {model} ; exit 3""", "got 3 (no such board)"),
    ],
)
def test_a_check_that_cannot_work_is_refused(tmp_path: Path, ending: str, said: str) -> None:
    result = tflq("reduce", MODEL, "--check", f"{shlex.quote(sys.executable)} {ending}", "-o", tmp_path / "small")
    assert result.exit_code == 2
    assert said in result.stderr


def test_dump_or_check_is_needed(tmp_path: Path) -> None:
    assert tflq("reduce", MODEL, "-o", tmp_path / "small").exit_code == 2


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("device") / "device.npz"
    assert tflq("run", MODEL, "--profile", "litert-opt", "--seed", 3, "--all-tensors", "-o", path).exit_code == 0
    return path


def test_the_name_may_be_that_of_the_model(tmp_path: Path, dump: Path) -> None:
    assert tflq("reduce", MODEL, "--dump", dump, "-o", tmp_path / "small.tflite").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"small.tflite", "small.npz", "small.expected.npz"}


def test_a_bundle_is_all_that_a_vendor_needs(tmp_path: Path, dump: Path) -> None:
    bundle = tmp_path / "for vendor.zip"
    done = tflq("reduce", MODEL, "--dump", dump, "--bundle", bundle)
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == [bundle.name]
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        page = archive.read("README.md").decode()
        expected = np.load(io.BytesIO(archive.read("expected.npz")))["s0_out0"]
        device = np.load(io.BytesIO(archive.read("device.npz")))["s0_out0"]
    assert names == ["README.md", "model.tflite", "device.npz", "expected.npz", "reduced.h", "reduced_test.c"]
    assert f"| 0 | 0 | {expected.item()} | {device.item()} |" in page
    assert str(MODEL.parent) not in page
    (line,) = re.findall(r"Next: (.*)", done.stdout)
    unpack, _, show = line.partition(" && ")
    subprocess.run([sys.executable, *shlex.split(unpack)[1:]], check=True)
    assert tflq(*shlex.split(show)[1:]).exit_code == 1
    folder = tmp_path / "for vendor"
    for command in re.findall(r"^tflq (.*?)(?:  #.*)?$", page, re.MULTILINE):
        words = [str(folder / word) if (folder / word).exists() else word for word in shlex.split(command)]
        assert tflq(*words).exit_code == (1 if words[0] == "verify" else 0)


def test_equal_bundles_have_equal_bytes_and_none_is_replaced(tmp_path: Path, dump: Path) -> None:
    for name in ("one.zip", "two.zip"):
        assert tflq("reduce", MODEL, "--dump", dump, "--bundle", tmp_path / name).exit_code == 0
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    before = (tmp_path / "one.zip").read_bytes()
    assert tflq("reduce", MODEL, "--dump", dump, "-o", tmp_path / "x", "--bundle", tmp_path / "one.zip").exit_code == 2
    assert (tmp_path / "one.zip").read_bytes() == before
    assert not (tmp_path / "x.tflite").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(("given", "code"), [("expected.npz", 0), ("device.npz", 1)])
def test_the_test_of_a_bundle_compiles_and_judges(given: str, code: int, tmp_path: Path, dump: Path) -> None:
    tflq("reduce", MODEL, "--dump", dump, "--bundle", tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        archive.extractall(tmp_path)
    answer = np.load(tmp_path / given)["s0_out0"].item()
    (tmp_path / "firmware.c").write_text(
        '#include <stdint.h>\n#include "reduced.h"\n'
        "int reduced_invoke(const void *const inputs[], void *const outputs[]) {\n"
        f"  (void)inputs; *(int8_t *)outputs[0] = {answer}; return 0;\n}}\n"
    )
    words = ["cc", "-Wall", "-DTFLQ_MAIN", "-o", "test", "reduced_test.c", "firmware.c"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "test"], check=False, capture_output=True).returncode == code


def test_a_check_has_a_bundle_without_device_outputs(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -c 'raise SystemExit(1)' {{model}} {{inputs}}"
    done = tflq("reduce", MODEL, "--check", command, "--bundle", tmp_path / "b.zip")
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        page = archive.read("README.md").decode()
    assert "What the device gives is not recorded" in page
    assert "tflq verify" not in page


@pytest.mark.parametrize("words", [[], ["--bundle", "x.tar"], ["--bundle", ".zip"], ["-o", ".tflite"], ["-o", "x/"]])
def test_outputs_that_have_no_name_are_refused(words: list[str], tmp_path: Path, dump: Path) -> None:
    words = [word if word.startswith("-") else f"{tmp_path}/{word}" for word in words]
    assert tflq("reduce", MODEL, "--dump", dump, *words).exit_code == 2
    assert not list(tmp_path.iterdir())


def test_names_of_tensors_are_only_text_on_the_page(tmp_path: Path, dump: Path) -> None:
    model = load(MODEL)
    graph = model.subgraphs[0]
    named = tuple(replace(t, name=f"`|<img src=x>\n# {k}") for k, t in enumerate(graph.tensors))
    (tmp_path / "evil.tflite").write_bytes(save(replace(model, subgraphs=(replace(graph, tensors=named),))))
    done = tflq("reduce", tmp_path / "evil.tflite", "--dump", dump, "--bundle", tmp_path / "b.zip")
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        rows = [line for line in archive.read("README.md").decode().splitlines() if "img" in line]
    assert rows
    assert all(row.count("|") == 5 and row.count("`") == 2 for row in rows)
