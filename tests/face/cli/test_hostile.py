"""Whatever a file holds, a verb ends with an exit code that is documented, and says it in printable text."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support import suites
from support.commands import tflq
from support.hostile import archives, hostile
from tflq.engine.api.files import load
from tflq.model.ir import view

pytestmark = pytest.mark.slow

SINGLE = suites.ROOT / "golden" / "singleop"
MODELS = sorted((SINGLE / "models").glob("*_0.tflite"))
CONV = SINGLE / "models" / "tie_conv_i8_0.tflite"
RECORDED = SINGLE / "recorded" / "tie_conv_i8_0.npz"
FLOAT = suites.ROOT / "golden" / "models" / "digits_autoencoder_float.tflite"
DOCUMENTED = frozenset({0, 1, 2, 3, 4, 5})
SEEDS = 6

#: Words of verbs that read a model, and what they write.
VERBS = {
    "inspect": "inspect {model}",
    "inspect drawn": "inspect {model} --html {out} -f",
    "inspect one": "inspect {model} --op 0",
    "inspect overflow": "inspect {model} --overflow",
    "lint": "lint {model} --target tflm --fix {out} -f",
    "lint drawn": "lint {model} --html {out} -f",
    "run": "run {model} --all-tensors -o {out} -f",
    "run drawn": "run {model} --html {out} -f",
    "profiles": "profiles effects {model} --html {out} -f",
    "prove": "prove {model} --between litert-ref litert-xnnpack --witnesses {out} -f",
    "court": "court {model} --with litert-ref,tflm-cmsis-nn-single --html {out} -f",
    "diff": "diff {model} {base} --html {out} -f",
    "extract": "extract {model} 0..1 -o {out} -f",
    "verify": "verify {model} --golden {golden} --junit {out} -f",
    "verify drawn": "verify {model} --golden {golden} --html {out} -f",
    "explain": "explain {model} --dump {golden} --html {out} -f",
    "element": "explain {model} --element 0,0,0,0 --op 0",
    "fit": "fit {model} --dump {golden} --html {out} -f",
    "compare": "compare {base} {model} --inputs {golden} --html {out} -f",
    "reduce": "reduce {model} --dump {golden} -o {out} -f",
    "quantize": "quantize {model} --calibration {golden} -o {out} -f --recipe fast",
}


def told(words: str, files: dict[str, Path], *, as_json: bool) -> int:
    """The exit code of a verb that kept to all that is promised."""
    given = [word.format(**files) for word in words.split()] + ["--json"] * as_json
    result = tflq(*given)
    assert result.exit_code in DOCUMENTED, f"{given}: {result.exit_code}\n{result.output}\n{result.exception!r}"
    assert "Traceback" not in result.output
    assert all(line.isprintable() for line in result.output.split("\n")), given
    if as_json:
        json.loads(result.stdout.encode())
    return result.exit_code


def files_of(folder: Path, model: bytes, base: Path, golden: Path) -> dict[str, Path]:
    (folder / "m.tflite").write_bytes(model)
    return {"model": folder / "m.tflite", "base": base, "golden": golden, "out": folder / "out"}


@pytest.mark.parametrize("verb", VERBS)
def test_any_model_is_told_of(verb: str, tmp_path: Path) -> None:
    codes = set()
    for number, path in enumerate(MODELS[:: len(MODELS) // 8]):
        for seed in range(SEEDS):
            files = files_of(tmp_path, hostile(load(path), 100 * number + seed), path, RECORDED)
            data = files["model"].read_bytes()
            codes.add(told(VERBS[verb], files, as_json=bool(seed % 2)))
            assert files["model"].read_bytes() == data
    assert codes - {0}, "nothing was refused"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return list(archives(RECORDED, tmp_path_factory.mktemp("archives")))


@pytest.mark.parametrize("verb", ["verify", "explain", "fit", "compare", "reduce", "quantize"])
def test_any_recording_is_told_of(verb: str, recordings: list[Path], tmp_path: Path) -> None:
    base = FLOAT if verb == "quantize" else CONV
    for number, golden in enumerate(recordings):
        before = golden.read_bytes()
        told(VERBS[verb], files_of(tmp_path, base.read_bytes(), base, golden), as_json=bool(number % 2))
        assert golden.read_bytes() == before


def test_inputs_of_any_kind_are_told_of(recordings: list[Path], tmp_path: Path) -> None:
    for number, golden in enumerate(recordings):
        files = files_of(tmp_path, CONV.read_bytes(), CONV, golden)
        told("run {model} --inputs {golden}", files, as_json=bool(number % 2))
        told("compare {base} {model} --inputs {golden} --labels {golden}", files, as_json=bool(number % 2))


def test_xml_and_pages_hold_any_name(tmp_path: Path) -> None:
    from dataclasses import replace

    from support.hostile import NAMES
    from tflq.model.flatbuf import write

    model = load(CONV)
    graph = view(model)
    for name in NAMES:
        named = replace(
            model, subgraphs=(replace(graph.record, tensors=tuple(replace(t, name=name) for t in graph.tensors)),)
        )
        files = files_of(tmp_path, write(named), CONV, RECORDED)
        assert told(VERBS["verify"], files, as_json=False) in (0, 1)
        text = files["out"].read_text(encoding="utf-8")
        ElementTree.fromstring(text)
        assert len(text) < 20000
        assert told(VERBS["explain"], files, as_json=False) in (0, 1, 3)
        page = files["out"].read_text(encoding="utf-8")
        assert "<script>alert" not in page
        assert all(line.isprintable() for line in page.split("\n"))
