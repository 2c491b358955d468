"""Real runs of drawn models, and recordings of models that have given operators."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from opfuzz.case import Case
from opfuzz.remote import Ran, Remote
from support import suites
from support.live import LITERT
from support.processors import own
from support.running import Array, samples_of

#: The resolvers of the live runtime that each profile stands for: the second where the first lacks the operator.
RESOLVERS = {
    "litert-ref": ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    "litert-opt": ("BUILTIN_WITHOUT_DEFAULT_DELEGATES",),
    own("litert-xnnpack"): ("BUILTIN",),
}
SINGLE = suites.ROOT / "golden" / "singleop"


@dataclass(frozen=True)
class Recording:
    """A model with the inputs and outputs of one sample, recorded from a profile's runtime."""

    path: Path
    inputs: list[Array]
    outputs: list[Array]


@cache
def runtime(*resolvers: str) -> Remote:
    """LiteRT with a resolver and perhaps a fallback, in a process that all tests of this one share."""
    try:
        return Remote([sys.executable], LITERT, resolvers[0], fallback=" ".join(resolvers[1:]))
    except (EOFError, OSError):
        pytest.skip("ai-edge-litert is not installed")


def live_outputs(case: Case, profile: str) -> list[list[Array]] | None:
    """Outputs of every sample in the runtime itself; None where it refuses the model, or ends."""
    ran = runtime(*RESOLVERS[own(profile)]).run(case)
    return ran.outputs if isinstance(ran, Ran) else None


def recordings(profile: str, ops: frozenset[str]) -> Iterator[Recording]:
    """Recorded single operators of golden/, then models of the shared suites, that have one of these operators."""
    about = SINGLE / f"{profile}.json"
    own_outputs = json.loads(about.read_text(encoding="utf-8"))["outputs"] if about.is_file() else {}
    for entry in json.loads((SINGLE / "index.json").read_text(encoding="utf-8")):
        own = own_outputs.get(Path(entry["model"]).stem)
        if ops & set(entry["ops"]) and own not in ("refused", "crashed", "undefined", None):
            arrays = dict(np.load(SINGLE / entry["golden"], allow_pickle=False))
            if own != "same":
                arrays |= dict(np.load(SINGLE / own, allow_pickle=False))
            yield from (Recording(SINGLE / entry["model"], i, o) for i, o in samples_of(arrays))
    yield from _shared(profile, ops)


def _shared(profile: str, ops: frozenset[str]) -> Iterator[Recording]:
    name = {"litert-xnnpack": "litert-xnn"}.get(profile, profile.replace("litert-xnnpack-", "litert-xnn-"))
    for suite in () if suites.missing() else ("zip", "real"):
        folder = suites.SHARED / "suites" / suite
        for entry in json.loads((folder / "index.json").read_text(encoding="utf-8")):
            own = entry.get("profiles", {}).get(name)
            if ops & set(entry["ops"]) and own not in ("refused", "crashed", "undefined", None):
                arrays = dict(np.load(folder / entry["golden"], allow_pickle=False))
                if own != "same":
                    arrays |= dict(np.load(folder / own, allow_pickle=False))
                yield from (Recording(folder / entry["model"], i, o) for i, o in samples_of(arrays))
