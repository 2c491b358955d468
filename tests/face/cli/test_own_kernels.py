"""Operators of the user's own on the command line: `--kernels FILE.py|NAME`."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import tflq as api
from support import suites
from support.commands import tflq
from tflq.engine.profiles import by_name
from tflq.errors import UnknownNameError
from tflq.model.ir import view
from tflq.model.surgery.tap import with_operator

EXAMPLE = str(suites.ROOT / "examples" / "own_operators.py")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of an operator that no profile has, and what a device gave for it, right and wrong."""
    folder = tmp_path_factory.mktemp("own")
    material = api.load(suites.ROOT / "golden" / "singleop" / "models" / "relu_i8_1.tflite")
    relu = view(material).op(0)
    code = replace(relu.code, builtin_code=32, name="CUSTOM", custom_code="OtterScale")
    record = replace(relu.record, options=None, custom_options=b"\2")
    api.save(replace(with_operator(material, record), operator_codes=(code,)), folder / "m.tflite")
    x = np.random.default_rng(1).integers(-128, 128, (1, 16, 16)).astype(np.int8)
    y = np.clip(x.astype(np.int32) * 2, -128, 127).astype(np.int8)
    np.savez(folder / "same.npz", **{"0": x, "1": y})
    np.savez(folder / "other.npz", **{"0": x, "1": y ^ np.int8(1)})
    return folder


def test_the_example_gives_every_verb_its_operators(place: Path) -> None:
    model, same = (str(place / name) for name in ("m.tflite", "same.npz"))
    assert tflq("run", model).exit_code == 3
    own = ("--kernels", EXAMPLE)
    ran = tflq("run", model, *own)
    assert (ran.exit_code, f"profile litert-ref+{EXAMPLE}" in ran.stdout) == (0, True), ran.output
    assert tflq("run", model, "--profile", "tflm", *own).exit_code == 0
    assert tflq("verify", model, "--golden", same, *own).exit_code == 0
    assert tflq("why", model, same, *own).exit_code == 0
    shown = tflq("inspect", model, "--profile", f"litert-ref+{EXAMPLE}")
    assert "0 of 1 " in shown.stdout  # no rule is about it


@pytest.mark.slow
def test_a_difference_in_an_own_kernel_is_nobodys_fault_yet(place: Path) -> None:
    model, other = (str(place / name) for name in ("m.tflite", "other.npz"))
    found = tflq("why", model, other, "--kernels", EXAMPLE)
    assert found.exit_code == 1
    assert "not decided: the device's, or your own kernel's" in found.stdout
    printed = found.stdout.partition("`tflq ")[2].partition("`")[0]
    assert tflq(*printed.split()).exit_code == 1, printed
    checked = tflq("verify", model, "--golden", other, "--kernels", EXAMPLE)
    assert checked.exit_code == 1
    printed = checked.stdout.partition("Next: tflq ")[2].partition("\n")[0]
    assert tflq(*printed.split()).exit_code == 1, printed


@pytest.mark.slow
def test_a_kernel_of_a_builtin_operator_is_judged_by_a_suite(tmp_path: Path) -> None:
    file, suite = tmp_path / "own.py", tmp_path / "suite.npz"
    file.write_text(
        "import tflq.engine.profiles as p\nfrom dataclasses import replace\n"
        "rows = p.PROFILES['litert-ref'].kernels['ABS']\n"
        "def wrong(node, arithmetic):\n    raise ValueError('not written yet')\n"
        "KERNELS = tuple(replace(row, prepare=wrong) for row in rows)\n"
    )
    assert tflq("conform", "make", "-o", suite, "--level", "smoke", "--shard", "3/300").exit_code == 0
    words = ("conform", "run", suite, "--target", "profile:litert-ref", "--level", "smoke")
    assert tflq(*words).exit_code == 0
    refused = tflq("conform", "run", suite, "--target", "true", "--kernels", file)
    assert (refused.exit_code, "profile:NAME" in refused.output) == (2, True)
    judged = tflq(*words, "--kernels", file)
    assert f"litert-ref+{file}" in judged.stdout, judged.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "states neither KERNELS"),
        ("x = (", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import no_such_module_of_otters", "ModuleNotFoundError"),
        ("OPERATORS = {'A': 3}", "not callable"),
        ("KERNELS = (1, 2)", "AttributeError"),
    ],
)
def test_code_that_cannot_be_used_is_misuse(place: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "own.py").write_text(text)
    done = tflq("run", place / "m.tflite", "--kernels", tmp_path / "own.py")
    assert (done.exit_code, message in done.output) == (2, True), done.output


def test_only_the_command_line_names_code(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("open('was_run', 'w')\nOPERATORS = {'OtterScale': lambda x, options: x}")
    with pytest.raises(UnknownNameError):
        by_name("litert-ref+own.py")
    for line in ('profile = "litert-ref+own.py"', '[tool.tflq.run]\nkernels = "own.py"'):
        (tmp_path / "pyproject.toml").write_text(f"[tool.tflq]\n{line}\n")
        assert tflq("run", place / "m.tflite").exit_code == 2
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "p.yaml").write_text("name: p\nbase: litert-ref+own.py\n")
    assert tflq("run", place / "m.tflite", "--profile", "p.yaml").exit_code == 2
    assert not (tmp_path / "was_run").exists()
    assert tflq("run", place / "m.tflite", "--kernels", "own.py").exit_code == 0
    assert (tmp_path / "was_run").exists()
    with pytest.raises(UnknownNameError):  # the command has ended
        by_name("litert-ref+own.py")


def test_a_package_offers_operators_by_an_entry_point(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "otter_kernels.py").write_text("OPERATORS = {'OtterScale': lambda x, options: x}\n")
    info = tmp_path / "otter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: otter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tflq.kernels]\notter = otter_kernels\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "otter" in metadata.entry_points(group="tflq.kernels").names
    assert tflq("run", place / "m.tflite", "--kernels", "otter").exit_code == 0
    assert tflq("run", place / "m.tflite", "--profile", "tflm+otter").exit_code == 0
    unknown = tflq("run", place / "m.tflite", "--kernels", "oter")
    assert (unknown.exit_code, "did you mean otter?" in unknown.output) == (2, True), unknown.output
