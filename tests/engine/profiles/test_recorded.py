"""Single operators under every profile whose runtime's outputs are recorded in golden/singleop, bit by bit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from support.running import Array, assert_same, run, samples_of

FOLDER = suites.ROOT / "golden" / "singleop"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
ABOUT = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
BY_PROFILE = {"litert-ref": {Path(entry["model"]).stem: "same" for entry in INDEX}}
BY_PROFILE |= {about["profile"]: about["outputs"] for about in ABOUT if "outputs" in about}
#: (profile, model) -> why it is known to differ
KNOWN = {(a["profile"], model): why for a in ABOUT if "outputs" in a for model, why in a.get("differs", {}).items()}
NO_OUTPUT = ("refused", "crashed", "undefined")


#: Profiles of releases that share most kernels with a later one: held against what tells them from the reference.
SHARING = tuple(name for name in BY_PROFILE if re.match(r"tflite-2\.(?!14)|litert-\d|tf-2", name))


def cases(telling: bool) -> Iterator[tuple[str, Path, Path, Path]]:
    """Profile, model, its recorded inputs and outputs, and the file whose outputs replace these.

    `telling`: only the models whose outputs are not the reference's.
    """
    for profile, outputs in BY_PROFILE.items():
        for entry in INDEX:
            file = outputs[Path(entry["model"]).stem]
            if file not in NO_OUTPUT and not (telling and file == "same"):
                golden = FOLDER / entry["golden"]
                yield profile, FOLDER / entry["model"], golden, golden if file == "same" else FOLDER / file


TELLING = list(cases(telling=True))
CASES = [case for case in cases(telling=False) if case[0] not in SHARING or case in TELLING]

model_of = cache(tflq.load)


@cache
def arrays_of(path: Path) -> dict[str, Array]:
    """Return what a file records."""
    with np.load(path, allow_pickle=False) as recorded:
        return dict(recorded)


def differing(chosen: list[tuple[str, Path, Path, Path]]) -> dict[str, str]:
    """Return the models of these cases that do not give what is recorded, and in what."""
    found = {}
    for profile, model, golden, own in chosen:
        try:
            for inputs, outputs in samples_of({**arrays_of(golden), **arrays_of(own)}):
                assert_same(run(model_of(model), inputs, profile), outputs)
        except (AssertionError, tflq.TflqError) as error:
            found[model.stem] = str(error)
    return found


@pytest.mark.parametrize("profile", BY_PROFILE)
def test_single_operators(profile: str) -> None:
    """Those known to differ must."""
    found = differing([case for case in CASES if case[0] == profile])
    known = {model for name, model in KNOWN if name == profile}
    wrong = {model: why for model, why in found.items() if model not in known}
    assert not wrong, f"{', '.join(wrong)}: {next(iter(wrong.values()))}"
    assert known <= found.keys()


@pytest.mark.slow
@pytest.mark.parametrize("profile", SHARING)
def test_models_with_the_outputs_of_the_reference(profile: str) -> None:
    """All models that `CASES` leaves out."""
    assert differing([case for case in cases(telling=False) if case[0] == profile and case not in TELLING]) == {}


def test_recorded_outputs_differ_from_those_of_the_reference() -> None:
    """Recordings that distinguish profiles must distinguish them here."""
    for profile, model, golden, own in TELLING:
        reference, theirs = arrays_of(golden), arrays_of(own)
        assert any(not np.array_equal(reference[key], theirs[key]) for key in theirs), (profile, model.stem)
