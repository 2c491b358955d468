"""Bundles: the same bytes every time, arrays once, read sample by sample, with care; goldens made of them."""

from __future__ import annotations

import json
import os
import tracemalloc
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import numpy as np
import pytest
from click.testing import Result

import tflq
from support import commands, suites
from support.commands import validate
from tflq.comparison.goldens.golden import Golden, Observation, StoredTensor, Tolerance
from tflq.comparison.goldens.stored import is_bundle, load_golden, save_bundle, save_golden
from tflq.comparison.results import Verdict
from tflq.comparison.verification import verifying
from tflq.comparison.verification.verifying import record, verify
from tflq.errors import FileAccessError, GoldenError
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")


@pytest.fixture(scope="module")
def golden() -> Golden:
    """What LiteRT computes now."""
    return record(MODEL, samples=2, all_tensors=True)


@pytest.fixture
def bundle(golden: Golden, tmp_path: Path) -> Path:
    save_golden([golden], f"{tmp_path}/bundle/")
    return tmp_path / "bundle"


@pytest.mark.parametrize("ending", [".zip", ".npz"])
def test_a_recording_is_written_as_the_runtime_runs(
    golden: Golden, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "_MOST_SAMPLES", 1)
    made = record(MODEL, samples=2, all_tensors=True, output=tmp_path / f"live{ending}")
    save_golden([golden], tmp_path / f"kept{ending}")
    assert (tmp_path / f"live{ending}").read_bytes() == (tmp_path / f"kept{ending}").read_bytes()
    assert (made.runtime["package"], asdict(made.inputs)) == ("ai-edge-litert", asdict(golden.inputs))
    assert isinstance(made.observations, StoredTensor)
    assert verify(MODEL, made).verdict is Verdict.SAME
    assert not any(one.tensors for one in made.plain().observations)


def test_many_samples_of_a_live_runtime_are_compared_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches, with the report of one batch; no folder stays, not even if the comparison fails."""
    kept: list[str] = []

    class Folder(TemporaryDirectory[str]):
        def __enter__(self) -> str:
            kept.append(self.name)
            return super().__enter__()

    whole = verify(MODEL, "litert-ref", samples=5, profile="litert-xnnpack").to_dict()
    monkeypatch.setattr(verifying, "_MOST_SAMPLES", 2)
    monkeypatch.setattr(verifying, "TemporaryDirectory", Folder)
    assert verify(MODEL, "litert-ref", samples=5, profile="litert-xnnpack").to_dict() == whole
    with pytest.raises(tflq.TflqError, match="NO_SUCH"):
        verify(MODEL, "litert-ref", samples=5, tolerances={"NO_SUCH": 1})
    assert len(kept) == 2
    assert not any(map(os.path.exists, kept))


def test_equal_goldens_give_equal_bytes_and_every_array_comes_back(golden: Golden, tmp_path: Path) -> None:
    places = [f"{tmp_path}/a.zip", f"{tmp_path}/b.zip"]
    for place in places:
        save_golden([golden], place)
    assert Path(places[0]).read_bytes() == Path(places[1]).read_bytes()
    read = load_golden(places[0])
    assert (read.model_sha256, read.tensors, len(read.observations)) == (
        golden.model_sha256,
        golden.tensors,
        len(golden.observations),
    )
    for one, other in zip(read.observations, golden.observations, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(one.outputs, other.outputs, strict=True))
        assert one.tensors.keys() == other.tensors.keys()
        assert all(np.array_equal(one.tensors[t], other.tensors[t]) for t in other.tensors)


def test_the_manifest_is_as_its_schema_has_it_and_arrays_are_stored_once(golden: Golden, bundle: Path) -> None:
    validate(json.loads((bundle / "manifest.json").read_text()), "golden")
    twice = replace(golden, observations=(*golden.observations, *golden.observations))
    save_bundle(bundle.parent / "twice.zip", [twice])
    with zipfile.ZipFile(bundle.parent / "twice.zip") as archive:
        arrays = [name for name in archive.namelist() if name.startswith("data/")]
    assert len(arrays) == len(set(arrays)) == len(list((bundle / "data").iterdir()))


def test_a_folder_an_archive_and_a_url_verify_alike(golden: Golden, bundle: Path) -> None:
    pytest.importorskip("fsspec", reason="the extra remote is not installed")
    places = [str(bundle), f"{bundle}.zip", "memory://goldens/a", "memory://goldens/a.zip"]
    for place in places:
        save_golden([golden], place if place != str(bundle) else f"{place}/")
        report = verify(MODEL, place)
        assert (report.verdict, report.compared) == (Verdict.SAME, verify(MODEL, golden).compared)
        assert report.golden == place


@pytest.mark.parametrize("name", ["large/", "large.npz"])
def test_what_is_read_is_not_kept(tmp_path: Path, name: str) -> None:
    count, size = 60, 1 << 20
    rng = np.random.default_rng(0)

    def read(k: int, whole: bool) -> Observation:
        value = rng.integers(0, 256, size, np.uint8)
        return Observation((value,), (value,), MappingProxyType({3: value} if whole else {}))

    large = Golden(StoredTensor(count, read), True, tflq.comparison.goldens.golden.InputFacts("random", 0, count), {})
    tracemalloc.start()
    path = f"{tmp_path}/{name}"
    save_golden([large], path)
    for seen in load_golden(path, on_demand=True).observations:
        assert seen.tensors[3].size == size
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < count * size / 2
    assert sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()) > count * size


DAMAGE = {
    "no manifest": lambda b: (b / "manifest.json").write_text("{}"),
    "another schema": lambda b: _edit(b, schema="other/1"),
    "samples of another number": lambda b: _edit(b, samples=99),
    "a tolerance without a reason": lambda b: _edit(b, tolerances=[{"operator": "*", "steps": 1}]),
    "a day that is none": lambda b: _edit(
        b, tolerances=[{"operator": "*", "steps": 1, "reason": "x", "expires": "soon"}]
    ),
    "a line that is none": lambda b: (b / "samples.jsonl").write_text("7\n"),
    "a digest with a path": lambda b: _rename(b, "../../etc/passwd"),
    "a digest of nothing": lambda b: _rename(b, "0" * 32),
    "an array that was changed": lambda b: _flip(b),
    "an array that is a pipe": lambda b: _pipe(b),
    "an array that is cut": lambda b: _cut(b),
}


def _edit(bundle: Path, **facts: object) -> None:
    path = bundle / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def _rename(bundle: Path, to: str) -> None:
    path = bundle / "samples.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["inputs"][0] = to
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _first(bundle: Path) -> Path:
    row = json.loads((bundle / "samples.jsonl").read_text().splitlines()[0])
    return bundle / "data" / f"{row['inputs'][0]}.npy"


def _flip(bundle: Path) -> None:
    data = bytearray(_first(bundle).read_bytes())
    data[-1] ^= 1
    _first(bundle).write_bytes(data)


def _cut(bundle: Path) -> None:
    _first(bundle).write_bytes(_first(bundle).read_bytes()[:-5])


def _pipe(bundle: Path) -> None:
    _first(bundle).unlink()
    os.mkfifo(_first(bundle))


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_bundle_is_refused(name: str, bundle: Path) -> None:
    DAMAGE[name](bundle)
    assert is_bundle(bundle)
    with pytest.raises(GoldenError, match="bundle"):
        verify(MODEL, bundle)


def test_a_folder_of_something_else_is_left_alone(golden: Golden, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("x")
    with pytest.raises(FileAccessError, match="something else"):
        save_golden([golden], tmp_path / "mine")
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_failure_leaves_the_old_bundle_and_nothing_else(golden: Golden, bundle: Path) -> None:
    before = (bundle / "manifest.json").read_bytes()

    def parts():  # type: ignore[no-untyped-def]
        yield golden
        raise RuntimeError("the runtime crashed")

    with pytest.raises(RuntimeError):
        save_golden(parts(), bundle)
    assert (bundle / "manifest.json").read_bytes() == before
    assert [p.name for p in bundle.parent.iterdir()] == ["bundle"]


@pytest.mark.parametrize(("expires", "verdict"), [("2999-12-31", Verdict.CLOSE), ("2001-01-01", Verdict.DIFFERS)])
def test_a_tolerance_holds_until_its_day(expires: str, verdict: Verdict, golden: Golden, tmp_path: Path) -> None:
    first = golden.observations[0]
    output = first.outputs[0].copy()
    output.flat[0] += -1 if output.flat[0] > 0 else 1
    last = view(tflq.load(MODEL)).outputs[0]
    changed = replace(first, outputs=(output,), tensors=MappingProxyType({**first.tensors, last: output}))
    tolerances = (Tolerance("*", 1, "known since the last release", expires),)
    save_golden([replace(golden, observations=(changed,), tolerances=tolerances)], tmp_path / "g.zip")
    report = verify(MODEL, tmp_path / "g.zip")
    assert report.verdict == verdict
    assert any("known since the last release" in note for note in report.notes) == (verdict == Verdict.DIFFERS)


def test_a_verb_records_shows_merges_and_prunes(golden: Golden, tmp_path: Path, bundle: Path) -> None:
    whole = tmp_path / "whole.zip"
    golden.save(tmp_path / "old.npz")
    assert tflq_("merge", tmp_path / "old.npz", bundle, "-o", whole).exit_code == 0
    assert len(load_golden(whole).observations) == len(golden.observations)  # the second has nothing new
    assert tflq_("merge", bundle, "-o", whole).exit_code == 2  # there already
    assert tflq_("prune", whole, "-o", f"{tmp_path}/small/", "--samples", "0:1", "--drop-tensors").exit_code == 0
    small = json.loads(tflq_("show", tmp_path / "small", "--json").stdout)
    assert (small["manifest"]["samples"], small["manifest"]["tensors"]) == (1, False)
    assert small["different"] == len(list((tmp_path / "small" / "data").iterdir())) == 2
    assert "sample" in tflq_("show", bundle).stdout
    assert tflq_("prune", whole, "-o", tmp_path / "x.zip", "--samples", "90:").exit_code == 2
    other = replace(golden, model_sha256="0" * 64)
    save_golden([other], tmp_path / "other.zip")
    assert "another model" in tflq_("merge", bundle, tmp_path / "other.zip", "-o", tmp_path / "y.zip").output


@pytest.mark.slow
def test_recordings_that_differ_name_the_operator(golden: Golden, bundle: Path, tmp_path: Path) -> None:
    graph = view(tflq.load(MODEL))
    index = len(graph.ops) // 2
    tensor = graph.op(index).outputs[0]
    first = golden.observations[0]
    value = first.tensors[tensor].copy()
    value.flat[5] += -1 if value.flat[5] > 0 else 1
    changed = replace(first, tensors=MappingProxyType({**first.tensors, tensor: value}))
    save_golden([replace(golden, observations=(changed, *golden.observations[1:]))], tmp_path / "after.zip")
    words = ("diff", bundle, tmp_path / "after.zip", "--model", MODEL)
    result = tflq_(*words, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    validate(document, "golden-diff")
    changed_ops = [o["index"] for o in document["operators"] if o["drifted"] == "changed"]
    assert changed_ops[0] == index
    assert f"{index}" in tflq_(*words).stdout
    assert tflq_("diff", bundle, bundle, "--model", MODEL).exit_code == 0
    golden.save(tmp_path / "same.npz")
    assert tflq_("diff", bundle, tmp_path / "same.npz", "--model", MODEL).exit_code == 0


def tflq_(*words: object) -> Result:
    return commands.tflq("golden", *words)
