"""Single operators under every profile whose runtime's outputs are recorded in golden/singleop, bit by bit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.running import assert_same, run, samples_of

FOLDER = suites.ROOT / "golden" / "singleop"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
ABOUT = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
BY_PROFILE = {about["profile"]: about["outputs"] for about in ABOUT if "outputs" in about}
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


def parameters() -> list[Any]:
    """Every case; those that are known to differ must."""
    made = []
    for case in CASES:
        why = KNOWN.get((case[0], case[1].stem))
        marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
        made.append(pytest.param(*case, id=f"{case[0]}-{case[1].stem}", marks=marks))
    return made


@pytest.mark.parametrize(("profile", "model", "golden", "own"), parameters())
def test_single_operators(profile: str, model: Path, golden: Path, own: Path) -> None:
    recorded = {**np.load(golden, allow_pickle=False), **np.load(own, allow_pickle=False)}
    for inputs, outputs in samples_of(recorded):
        assert_same(run(model.read_bytes(), inputs, profile), outputs, f"{model.stem} under {profile}")


@pytest.mark.slow
@pytest.mark.parametrize("profile", SHARING)
def test_models_with_the_outputs_of_the_reference(profile: str) -> None:
    """All models that `CASES` leaves out, in one test for each profile."""
    for case in cases(telling=False):
        if case[0] == profile and case not in TELLING:
            for inputs, outputs in samples_of(dict(np.load(case[2], allow_pickle=False))):
                assert_same(run(case[1].read_bytes(), inputs, profile), outputs, f"{case[1].stem} under {profile}")


@pytest.mark.parametrize("profile", BY_PROFILE)
def test_the_reference_fails_where_outputs_differ(profile: str) -> None:
    """What tells profiles apart must tell them apart here."""
    telling = [(golden, own, model) for name, model, golden, own in TELLING if name == profile]
    assert all(the_reference_differs(*case) for case in telling)


@cache
def the_reference_differs(golden: Path, own: Path, model: Path) -> bool:
    """Whether the reference gives other outputs than those recorded in `own`."""
    recorded = {**np.load(golden, allow_pickle=False), **np.load(own, allow_pickle=False)}
    for inputs, outputs in samples_of(recorded):
        got = run(model.read_bytes(), inputs, "litert-ref")
        if any(not np.array_equal(mine, want) for mine, want in zip(got, outputs, strict=True)):
            return True
    return False
