"""A profile is compared as it would be on the processor that the runtime ran on."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build
from tflq.comparison.goldens.golden import counterpart, match
from tflq.engine.profiles import PROFILES

HERE = {"platform": "Linux x86_64", "vectors": "AVX-512 VNNI", "first_level_cache": 49152}


def test_the_first_level_cache_is_the_runtimes() -> None:
    profile, note = match(PROFILES["litert-opt"], HERE)
    assert (profile.arithmetic.first_level_cache, note) == (49152, "")
    assert PROFILES["litert-opt"].arithmetic.first_level_cache == 32768


def test_another_vector_extension_is_noted_where_it_matters() -> None:
    assert "AVX2; here: AVX-512 VNNI" in match(PROFILES["litert-xnnpack-avx2"], HERE)[1]
    assert match(PROFILES["litert-xnnpack-avx2"], {**HERE, "vectors": "AVX2"})[1] == ""
    assert match(PROFILES["litert-xnnpack"], HERE)[1] == ""
    assert match(PROFILES["litert-xnnpack"], {})[1] == ""
    assert match(PROFILES["litert-ref"], HERE)[1] == ""


@pytest.mark.parametrize("name", ["litert-opt-arm64", "tflm", "spec"])
def test_profiles_of_other_processors_stay_as_they_are(name: str) -> None:
    assert match(PROFILES[name], HERE) == (PROFILES[name], "")


def test_deep_float_products_are_verified_on_any_processor() -> None:
    """Sums of 1,501 products, which Eigen cuts by the size of the first-level cache."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    weights = np.random.default_rng(2).standard_normal((8, 1501)).astype(np.float32)
    inputs = [T("float32", (4, 1501)), T("float32", weights.shape, value=weights), None]
    model = build("FULLY_CONNECTED", inputs, [T("float32", (4, 8))], ("FullyConnectedOptions", {}))
    assert tflq.verify(model, against="litert-opt").verdict.value == "same"


def test_the_profile_is_that_of_the_processors_vector_extension() -> None:
    litert = {"name": "litert-xnnpack", "package": "ai-edge-litert", "version": "2.3.0", **HERE}
    assert counterpart(litert)[0].name == "litert-xnnpack"
    assert counterpart({**litert, "vectors": "AVX-512"})[0].name == "litert-xnnpack"
    assert counterpart({**litert, "vectors": "AVX2"})[0].name == "litert-xnnpack-avx2"
    assert counterpart({**litert, "name": "litert-opt"})[0].name == "litert-opt"
    nightly = {**litert, "package": "ai-edge-litert-nightly", "version": "2.4.0.dev20261026"}
    assert counterpart(nightly)[0].name == "litert-2.4-xnnpack"


@pytest.mark.parametrize("version", ["2.7.0", "2.14.0"])
def test_a_release_without_profile_is_compared_with_the_nearest_of_its_package(version: str) -> None:
    facts = {"name": "tflite-runtime-xnnpack", "package": "tflite-runtime", "version": version, "platform": "x86_64"}
    profile, note = counterpart(facts)
    assert profile.name == "tflite-2.12-xnnpack"
    assert version in note
    assert "no profile" in note


@pytest.mark.parametrize(("delegated", "expected"), [([0], "tflite-2.14-opt"), ([1], "tflite-2.12-xnnpack")])
def test_a_recording_without_delegated_operators_is_of_built_in_kernels(delegated: list[int], expected: str) -> None:
    recorded = {"name": "tflite-runtime-xnnpack", "package": "tflite-runtime", "version": "2.14.0", "platform": ""}
    profile, note = counterpart({**recorded, "delegated": delegated})
    assert (profile.name, bool(note)) == (expected, delegated == [1])
