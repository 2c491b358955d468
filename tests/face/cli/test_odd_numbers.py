"""Every verb ends with a documented exit code and without a traceback, whatever numbers its files hold."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.commands import tflq
from support.odd_files import odd_archives, odd_documents

SINGLE = suites.ROOT / "golden" / "singleop"
MODEL = SINGLE / "models" / "tie_conv_i8_0.tflite"
RECORDED = SINGLE / "recorded" / "tie_conv_i8_0.npz"
FLOAT = suites.ROOT / "golden" / "models" / "digits_autoencoder_float.tflite"
DOCUMENTED = frozenset({0, 1, 2, 3, 4, 5})
#: Odd values at each place of a file.
EACH = 2
THOROUGH = pytest.param(12, marks=pytest.mark.slow, id="thorough")

#: Verbs that read an archive of numbers, quick ones.
READERS = {
    "verify": "verify {model} --golden {odd}",
    "verify cumulative": "verify {model} --golden {odd} --mode cumulative --junit {out} -f",
    "explain": "explain {model} --dump {odd}",
    "fit": "fit {model} --dump {odd}",
    "golden show": "golden show {odd}",
    "golden diff": "golden diff {golden} {odd} --model {model}",
    "golden merge": "golden merge {golden} {odd} -o {out}.npz -f",
    "golden prune": "golden prune {odd} -o {out}.zip -f",
    "golden export": "golden export {odd} -o {out} --name odd -f",
    "reduce": "reduce {model} --dump {odd} -o {out} -f",
    "run": "run {model} --inputs {odd}",
    "run quantizing": "run {model} --inputs {odd} --quantize-inputs",
    "element": "explain {model} --element 0,0,0,0 --inputs {odd}",
    "compare": "compare {model} {model} --inputs {odd}",
}
#: Verbs that read samples of a float model, and labels.
SAMPLES = {
    "quantize": "quantize {float} --calibration {odd} -o {out} -f --recipe {recipe}",
    "compare": "compare {float} {float} --inputs {odd}",
    "compare labels": "compare {float} {float} --inputs {whole} --labels {odd}",
    "record": "record {float} --inputs {odd} -o {out}.npz -f",
    "run": "run {float} --inputs {odd} --mean {odd} --labels {odd}",
}


def ended(words: str, files: dict[str, Any]) -> int:
    """Run a verb and return its exit code, which is documented and comes without a traceback."""
    given = [word.format(**files) for word in words.split()]
    result = tflq(*given)
    place = f"{given}: {result.exit_code}\n{result.output}"
    assert result.exit_code in DOCUMENTED, place
    assert "Traceback" not in result.output, place
    return result.exit_code


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    return {"model": MODEL, "golden": RECORDED, "float": FLOAT, "out": tmp_path / "out", "odd": tmp_path / "odd.npz"}


@pytest.mark.parametrize("each", [EACH, THOROUGH])
@pytest.mark.parametrize("verb", READERS)
def test_archives_of_odd_numbers(verb: str, each: int, files: dict[str, Any], tmp_path: Path) -> None:
    codes = {ended(READERS[verb], files) for _ in odd_archives(RECORDED, tmp_path, random.Random(verb), each)}
    assert codes & {2, 3} or verb in ("golden show", "golden prune"), "nothing was refused"


@pytest.fixture
def samples(files: dict[str, Any], tmp_path: Path) -> Path:
    """An archive of eight images and their labels, and a recipe that takes no time."""
    images = np.load(suites.ROOT / "golden" / "models" / "digits_test.npz")
    source = tmp_path / "whole.npz"
    np.savez(source, images=images["images"][:8].astype(np.float32) / 16, y=images["labels"][:8])
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE))
    files |= {"whole": source, "recipe": tmp_path / "recipe.json"}
    return source


@pytest.mark.parametrize("each", [EACH, THOROUGH])
@pytest.mark.parametrize("verb", SAMPLES)
def test_samples_of_odd_numbers(verb: str, each: int, samples: Path, files: dict[str, Any], tmp_path: Path) -> None:
    codes = {ended(SAMPLES[verb], files) for _ in odd_archives(samples, tmp_path, random.Random(verb), each)}
    assert 2 in codes, "nothing was refused"


#: A recipe without search or check.
RECIPE = {"schema": "tflq/recipe/1", "mode": "int8", "verify": False}


def documents(source: Any, path: Path, words: str, files: dict[str, Any], chance: random.Random, each: int) -> set[int]:
    """Run a verb on odd forms of a document at a path; return the exit codes."""
    codes = set()
    for data in odd_documents(source, chance, each):
        path.write_bytes(data)
        codes.add(ended(words, files))
    return codes


@pytest.mark.parametrize("each", [EACH, THOROUGH])
def test_odd_baselines(each: int, files: dict[str, Any], tmp_path: Path) -> None:
    files["odd"] = known = tmp_path / "known.json"
    until = " --accept-until 2999-12-31 --reason odd"
    for words in (
        "verify {model} --golden {golden} --profile litert-opt --baseline {odd}",
        "lint {model} --target tflm --baseline {odd}",
    ):
        assert ended(words + until.replace(" odd", " because"), files) == 0
        assert 2 in documents(json.loads(known.read_text()), known, words, files, random.Random(words), each)


@pytest.mark.parametrize("each", [EACH, THOROUGH])
@pytest.mark.parametrize("name", ["manifest.json", "samples.jsonl"])
def test_odd_bundles(name: str, each: int, files: dict[str, Any], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    assert ended("golden prune {golden} -o {odd}/", {**files, "odd": bundle}) == 0
    place = bundle / name
    lines = place.read_text().splitlines()
    source = json.loads(lines[0]) if name == "samples.jsonl" else json.loads(place.read_text())
    rest = "" if name == "manifest.json" else "\n" + "\n".join(lines[1:]) + "\n"
    for verb in ("verify {model} --golden {odd}", "golden show {odd}", "explain {model} --dump {odd}"):
        codes = set()
        for data in odd_documents(source, random.Random(verb), each):
            place.write_bytes(data + rest.encode())
            codes.add(ended(verb, {**files, "odd": bundle}))
        assert 2 in codes


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite of three cases."""
    from tflq.devices.suites.run import SuiteOrder, make_suite

    path = tmp_path_factory.mktemp("suite") / "suite.npz"
    make_suite(str(path), SuiteOrder(every=2000))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("each", [EACH, THOROUGH])
def test_odd_suites(each: int, suite: Path, files: dict[str, Any], tmp_path: Path) -> None:
    with np.load(suite) as found:
        arrays = dict(found)
    document = json.loads(arrays["suite"].tobytes())
    document["cases"] = document["cases"][:3]
    codes = set()
    for data in odd_documents(document, random.Random(0), each):
        np.savez(files["odd"], **{**arrays, "suite": np.frombuffer(data, np.uint8)})
        codes.add(ended("conform run {odd} --target profile:tflm", files))
    assert 2 in codes
    for _ in odd_archives(suite, tmp_path, random.Random(1), 1):
        codes.add(ended("conform run {odd} --target profile:tflm", files))


@pytest.mark.parametrize("each", [EACH, THOROUGH])
def test_odd_work_folders(each: int, suite: Path, files: dict[str, Any], tmp_path: Path) -> None:
    files |= {"suite": suite, "work": tmp_path / "work"}
    words = "conform run {suite} --target profile:litert-ref --work {work}"
    assert ended(words, files) == 0
    place = tmp_path / "work" / "record.json"
    assert documents(json.loads(place.read_text()), place, words, files, random.Random(0), each) >= {2}
    place.unlink()
    assert ended(words, files) == 2
    assert ended("conform check {suite} {work}", files) == 2


@pytest.mark.slow
@pytest.mark.parametrize("each", [EACH, THOROUGH])
@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_odd_recipes(ending: str, each: int, samples: Path, files: dict[str, Any], tmp_path: Path) -> None:
    from tflq.quantization.recipe_files import plain, read_recipe

    files |= {"odd": samples, "recipe": tmp_path / f"odd.{ending}"}
    whole = {"schema": "tflq/recipe/1", **plain(read_recipe("fast"))}
    words = "quantize {model} --calibration {odd} -o {out} -f --recipe {recipe}"  # the model is no float model
    assert documents(whole, files["recipe"], words, files, random.Random(ending), each) <= {2, 3}


#: Values of keys of [tool.tflq] as TOML has them.
TOML = (
    *("7", "-1.5", "nan", "inf", "true", '"x"', "[]", "[7]", "{}", "{ a = 1 }", "[[1], {}]"),
    *("2027-03-31", "12:00:00", "9" * 30, '"\\u0000"'),
)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["verify {model} --golden {golden}", "run {model}", "lint {model}"])
def test_odd_configurations(verb: str, files: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place, name = tmp_path / "pyproject.toml", verb.split()[0]
    texts = [f"tool = {value}" for value in TOML] + [f"tool.tflq = {value}" for value in TOML]
    for key in ("profile", "inputs", "baseline", "tolerances", "samples", "seed", "mode", "target", "json", name):
        texts += [f"[tool.tflq]\n{key} = {value}" for value in TOML]
        texts += [f"[tool.tflq.{name}]\n{key} = {value}" for value in TOML]
    texts += ["[tool.tflq", "a = 1\na = 2", "[[tool]]\ntflq = 1", "[[tool.tflq]]\nseed = 1", "x = " + "[" * 5000]
    for text in texts:
        place.write_text(text)
        ended(verb, files)


#: Files of a folder or beside it that hold a tensor in another form.
FORMS: dict[str, Callable[[Path], object]] = {
    "c": lambda p: p.with_suffix(".c").write_text("const int8_t t1[3] = {1, 99999999999999999999, -1e400};"),
    "text": lambda p: p.with_suffix(".c").write_text("const float t1[] = {nan, inf, 0x1p99999, 'a', };"),
    "sizes": lambda p: p.with_suffix(".c").write_text("int8_t t1[-5][99999999999999] = {1};"),
    "raw": lambda p: p.with_suffix(".bin").write_bytes(b"\xff" * 7),
    "npy": lambda p: np.save(p.with_suffix(".npy"), np.full((2, 2), np.nan)),
    "objects": lambda p: np.save(p.with_suffix(".npy"), np.array([{}, 1], object), allow_pickle=True),
    "text npy": lambda p: np.save(p.with_suffix(".npy"), np.array(["a"])),
    "empty npy": lambda p: np.save(p.with_suffix(".npy"), np.zeros((0, 9))),
    "nothing": lambda p: p.with_suffix(".npy").write_bytes(b""),
}


@pytest.mark.parametrize("form", FORMS)
def test_odd_dumps_in_folders(form: str, files: dict[str, Any], tmp_path: Path) -> None:
    for name in ("t1", "t3", "99999", "other"):
        folder = tmp_path / name
        folder.mkdir()
        FORMS[form](folder / name)
        for verb in ("explain", "fit", "reduce"):
            more = " -o {out} -f" if verb == "reduce" else ""
            assert ended(f"{verb} {{model}} --dump {{odd}}{more}", {**files, "odd": folder}) in DOCUMENTED
        (only,) = folder.iterdir()
        ended("explain {model} --dump {odd}", {**files, "odd": only})
        ended("run {model} --inputs {odd}", {**files, "odd": only})


#: Options that take numbers, by verbs that have them.
OPTIONS = {
    "explain {model} --dump {golden}": ("--sample", "--op", "--element"),
    "fit {model} --dump {golden}": ("--sample",),
    "run {model}": ("--samples", "--seed", "--mean", "--std"),
    "record {model} -o {out}.npz -f": ("--samples", "--seed"),
    "verify {model} --golden {golden}": ("--tolerance", "--accept-until"),
    "golden prune {golden} -o {out}.npz -f": ("--samples",),
    "golden export {golden} -o {out} --name odd -f": ("--samples",),
    "conform make -o {out}.npz -f --level smoke": ("--jobs",),
    "conform run {golden} --target profile:tflm": ("--shard", "--max-refused", "--batch"),
    "reduce {model} --dump {golden} -o {out} -f": ("--sample", "--seed"),
}
WORDS = (
    *("9" * 5000, "-" + "9" * 5000, "9" * 25, "-1", "nan", "-inf", "1e999", "٣x", "", "x\x1b", "2027-13-45"),
    *("1/" + "9" * 5000, "0:" + "9" * 5000, "9:1:2", "CONV_2D=" + "9" * 5000, "CONV_2D=-1", "*=nan", "0,,x"),
)


@pytest.mark.slow
@pytest.mark.parametrize("verb", OPTIONS)
def test_odd_words_of_options(verb: str, files: dict[str, Any]) -> None:
    given = [word.format(**files) for word in verb.split()]
    for option in OPTIONS[verb]:
        for word in WORDS:
            result = tflq(*given, option, word)
            assert result.exit_code in DOCUMENTED, (option, word[:40], result.output[-300:])
