"""The pages of docs, executed: commands with their exit codes, what they print, Python.

A block that names TFLQ_SHARED is executed where the shared test material is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites

pytestmark = pytest.mark.slow

HOW_TO = suites.ROOT / "docs" / "how-to"
INDEX = suites.ROOT / "docs" / "questions" / "README.md"
QUESTIONS = sorted(set(INDEX.parent.glob("*.md")) - {INDEX})
PAGES = [suites.ROOT / "docs" / "tour.md", *sorted(HOW_TO.glob("*.md"))]
#: Pages about one difference each: they end in the one line that its reader needs.
ANSWERS = (
    "fully-connected-2.14-and-2.3",
    "conv-reference-and-optimized",
    "laptop-and-raspberry-pi",
    "mul-and-fc-on-cmsis-nn",
    "sum-int8",
)


@dataclass(frozen=True)
class Block:
    """One fenced block; `printed` are lines that have to be in the output of a block of commands, in this order."""

    language: str
    text: str
    printed: tuple[str, ...] = ()


def blocks(page: Path) -> Iterator[Block]:
    found = re.findall(r"^```(sh|python|text)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for number, (language, text) in enumerate(found):
        after = found[number + 1] if number + 1 < len(found) else ("", "")
        printed = after[1].splitlines() if after[0] == "text" else []
        if language != "text":
            yield Block(language, text, tuple(line.rstrip() for line in printed if line.strip() not in ("", "...")))


def commands(block: Block) -> list[str]:
    """Return the commands, one a line, unless it ends with a backslash."""
    return [line for line in re.sub(r"\\\n\s*", "", block.text).splitlines() if line.strip()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with golden/ and tools/ in it, where `tflq` is this checkout's and `python` runs the tests."""
    (tmp_path / "golden").symlink_to(suites.ROOT / "golden")
    (tmp_path / "tools").symlink_to(suites.ROOT / "tools")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("tflq", " -m tflq.face.cli.main"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(suites.ROOT))
    monkeypatch.setenv("TFLQ_SHARED", str(suites.SHARED))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def execute(command: str) -> str:
    """Return its output; require an exit code that its comment states, or 0."""
    stated = re.search(r"# exit code (\d+)(?: or (\d+))?", command)
    expected = {int(code) for code in stated.groups() if code} if stated else {0}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in expected, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def assert_printed(lines: tuple[str, ...], output: str, command: str) -> None:
    """Require each line to be printed, after the one before it. Three dots at its end match the rest of it."""
    rest = iter(line.rstrip() for line in output.splitlines())
    for line in lines:
        start, dots, _ = line.rpartition("...")
        same = (lambda printed, s=start: printed.startswith(s)) if dots else (lambda printed, s=line: printed == s)
        assert any(map(same, rest)), f"not printed, or not there: {line!r}\n{command}\n{output}"


@pytest.mark.parametrize("page", PAGES + QUESTIONS, ids=lambda page: page.stem)
def test_every_block_does_what_the_page_says(page: Path, home: Path) -> None:
    names: dict[str, Any] = {}
    executed = 0
    if re.search(r"--against|tflq record|agree.py|ai_edge_litert", page.read_text(encoding="utf-8")):
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    for block in blocks(page):
        if "TFLQ_SHARED" in block.text and suites.missing():
            continue
        executed += 1
        if block.language == "python":
            exec(block.text, names)
        else:
            output = "".join(map(execute, commands(block)))
            assert_printed(block.printed, output, block.text)
    assert executed


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_executed_on_golden_and_on_a_named_model_and_ends_in_one_line(name: str) -> None:
    page = HOW_TO / f"{name}.md"
    made = [block for block in blocks(page) if block.language == "sh"]
    assert any("$TFLQ_SHARED" in block.text for block in made)
    assert any("golden/" in block.text for block in made)
    assert len(commands(made[-1])) == 1
    assert page.read_text(encoding="utf-8").rstrip().endswith("```")


@pytest.mark.parametrize("page", [*PAGES, *QUESTIONS, INDEX], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_tour_leads_to_every_page() -> None:
    tour = PAGES[0].read_text(encoding="utf-8")
    assert {page.name for page in PAGES[1:]} <= set(re.findall(r"\(how-to/([^)]+)\)", tour))
    assert "(questions/README.md)" in tour
    assert {page.name for page in QUESTIONS} == set(
        re.findall(r"\]\(([\w-]+\.md)\)", INDEX.read_text(encoding="utf-8"))
    )


# --- pages of docs/, whose commands name a reader's own files ---------------------------------------------------------

GOLDEN = suites.ROOT / "golden" / "models"


def _no_files(home: Path) -> None:
    pass


def _recordings(home: Path) -> None:
    """Write a model, and recordings of it under the names of the page."""
    import tflq

    (home / "model.tflite").write_bytes((GOLDEN / "digits_autoencoder_int8.tflite").read_bytes())
    for name in ("before", "after", "monday", "tuesday"):
        seed = int(name == "tuesday")
        tflq.record(home / "model.tflite", all_tensors=True, output=home / f"{name}.zip", samples=12, seed=seed)


def _float_model(home: Path) -> None:
    """Write a float model with its samples, labels and images, and a profile."""
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for name in ("model", "float"):
        (home / f"{name}.tflite").write_bytes((GOLDEN / "digits_mobilenet_float.tflite").read_bytes())
    with np.load(GOLDEN / "digits_test.npz") as held:
        pixels, labels = held["images"], held["labels"]
    scaled = pixels.astype(np.float32) / 16
    np.savez(home / "samples.npz", x=scaled[:24])
    np.savez(home / "evaluation.npz", x=scaled[60:90])
    np.save(home / "labels.npy", labels[60:90])
    (home / "images").mkdir()
    for k, picture in enumerate(pixels[:20]):
        images.fromarray(picture[..., 0] * 15).save(home / "images" / f"{k:02d}.png")
    (home / "npu.yaml").write_text("base: litert-ref\nabout: An NPU.\narithmetic:\n  requantize: single-rounding\n")


#: The files that each page presumes, by its name.
REFERENCE = {
    "conformance": _no_files,
    "golden-format": _recordings,
    "pages": _no_files,
    "portable": _float_model,
    "quantize": _float_model,
    "runtimes": _no_files,
}
#: Pages with commands that are not executed, and why.
NOT_EXECUTED = {
    "drop-in": "its Python is parts of a program; tests/engine/api/test_drop_in.py has whole ones",
    "proof": "its searches take an hour; tests/tools/test_search_proofs.py has short ones",
    "tour": "executed above",
}
#: Commands that are not executed, by how they begin, and why.
PASSED_OVER = {".venv/bin/pytest": "tests in a test"}


def test_every_page_with_commands_is_executed_or_says_why_not() -> None:
    pages = {page.stem for page in (suites.ROOT / "docs").glob("*.md") if any(True for _ in blocks(page))}
    assert pages == REFERENCE.keys() | NOT_EXECUTED.keys()


@pytest.mark.parametrize("name", REFERENCE)
def test_a_page_of_docs_does_what_it_says(name: str, home: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    REFERENCE[name](home)
    names = _names(home) if name == "quantize" else {}
    executed = 0
    for block in blocks(suites.ROOT / "docs" / f"{name}.md"):
        if block.language == "python":
            exec(block.text, names)
            executed += 1
        for command in commands(block) if block.language == "sh" else ():
            if not command.startswith(tuple(PASSED_OVER)):
                if name in ("quantize", "portable"):  # each command is a choice, not a step
                    command = re.sub(r"(tflq quantize \S+)", r"\1 -f", command)
                execute(command)
                executed += 1
    assert executed


def _names(home: Path) -> dict[str, Any]:
    """Return what the page's Python presumes."""
    import tflq

    with np.load(home / "samples.npz") as samples, np.load(home / "evaluation.npz") as evaluation:
        rows = [[sample[None]] for sample in samples["x"]]
        return {"tflq": tflq, "samples": rows, "evaluation": evaluation["x"], "labels": np.load(home / "labels.npy")}
