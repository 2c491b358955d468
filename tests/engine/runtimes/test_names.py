"""Names of runtimes: in any case, after "runtime:", and of one release."""

from __future__ import annotations

import pytest

from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import RUNTIMES, by_name, named
from tflq.errors import RuntimeMissing, UnknownNameError

ANSWER = dict.fromkeys(("python", "numpy", "platform", "cpu", "vectors", "first_level_cache"), "") | {"delegated": []}


#: Runtimes whose latest release has a profile.
PROFILED = [name for name in RUNTIMES if name.startswith("litert") or not name.endswith("xnnpack")]


def answer(version: str) -> dict[str, object]:
    return {**ANSWER, "package": "ai-edge-litert", "version": version}


@pytest.mark.parametrize(
    ("name", "known", "release"),
    [
        ("LiteRT-Ref", "litert-ref", ""),
        ("runtime:litert-opt", "litert-opt", ""),
        ("litert-2.4-ref", "litert-ref", "2.4"),
        ("tflite-2.14-xnnpack", "tflite-runtime-xnnpack", "2.14"),
        ("tf-2.5-opt", "tensorflow-opt", "2.5"),
    ],
)
def test_a_name(name: str, known: str, release: str) -> None:
    assert (named(name).name, named(name).release) == (known, release)


@pytest.mark.parametrize("name", ["litert-2.4", "litert-2.4-fast", "tflm-1.0-ref", "spec", ""])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError):
        named(name)


def test_another_release_is_refused_when_it_runs() -> None:
    chosen = by_name("litert-2.4-ref")
    assert chosen.described(answer("2.4.0.dev20261026")).version == "2.4.0.dev20261026"
    with pytest.raises(RuntimeMissing, match=r"release 2\.4 is asked for, here is ai-edge-litert 2\.3\.0"):
        chosen.described(answer("2.3.0"))
    assert by_name("litert-ref").described(answer("2.3.0")).version == "2.3.0"


@pytest.mark.parametrize("name", PROFILED)
def test_a_runtimes_name_names_a_profile(name: str) -> None:
    assert profile_by_name(name).name
