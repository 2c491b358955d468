"""The device that mistakes are planted in: without a mistake it gives what runtimes were seen to give, bit by bit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device.description import RIGHT, Device
from device.mistakes import MISTAKES
from device.operators import OPERATORS, compute, has
from device.runtimes import RUNTIMES, as_computed_by
from device.scaling import FIXED, fixed
from device.site import Site, site_of
from device.truths import is_cause
from support import suites
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import CARRIER, TensorType, view

pytestmark = pytest.mark.slow

FOLDER = suites.ROOT / "golden" / "singleop"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
RECORDED = {name: FOLDER / f"{name}.json" for name in RUNTIMES if (FOLDER / f"{name}.json").exists()}
NETWORKS = sorted((suites.ROOT / "golden" / "models").glob("digits_*int*.tflite"))


def sites(path: Path) -> Iterator[Site]:
    model = load(path)
    for index in range(len(view(model).ops)):
        site = site_of(model, index)
        if site is not None and has(site):
            yield site


def files_of(runtime: str) -> dict[str, str]:
    """By model: "same" as the reference, or the file with the runtime's own outputs."""
    if runtime == "litert-ref":
        return {Path(entry["model"]).stem: "same" for entry in INDEX}
    outputs: dict[str, str] = json.loads(RECORDED[runtime].read_text(encoding="utf-8"))["outputs"]
    return outputs


@pytest.mark.parametrize("runtime", ["litert-ref", *RECORDED])
def test_recorded_outputs_are_reproduced(runtime: str) -> None:
    seen: Counter[str] = Counter()
    for entry in INDEX:
        file = files_of(runtime)[Path(entry["model"]).stem]
        path, golden = FOLDER / entry["model"], FOLDER / entry["golden"]
        if file in ("refused", "crashed", "undefined"):
            continue
        recorded = {**np.load(golden), **({} if file == "same" else np.load(FOLDER / file))}
        inputs, outputs = (view(load(path)).inputs, view(load(path)).outputs)
        for site in sites(path):
            device = as_computed_by(runtime, site)
            if device is None or outputs != (site.output.tensor,):
                continue
            values = {t: recorded[f"s0_in{i}"] for i, t in enumerate(inputs)}
            np.testing.assert_array_equal(compute(site, device, values), recorded["s0_out0"], f"{runtime} {path.stem}")
            seen[site.op] += 1
    assert sum(seen.values()) >= 40
    assert len(seen) >= 7


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_operators_of_networks_are_what_the_profile_computes(path: Path) -> None:
    model = load(path)
    graph, rng = view(model), np.random.default_rng(3)
    sample = {}
    for tensor in graph.inputs:
        spec = graph.tensors[tensor]
        assert isinstance(spec.type, TensorType)
        limits: Any = np.iinfo(CARRIER[spec.type])
        sample[tensor] = rng.integers(limits.min, limits.max, spec.shape, endpoint=True).astype(CARRIER[spec.type])
    values = run(make_plan(model, by_name("litert-ref")), sample, keep_all=True).values
    found = list(sites(path))
    assert found
    for site in found:
        np.testing.assert_array_equal(
            compute(site, RIGHT, values), values[site.output.tensor], f"{path.stem} {site.index}"
        )


def test_roundings_at_ties_and_below_zero() -> None:
    """Accumulators times one half: every rounding's own answer, worked out by hand."""
    half, exponent = fixed(0.5)
    assert (half, exponent) == (1 << 30, 0)
    totals = np.array([-3, -1, 1, 3])
    expected = {
        "floor": [-2, -1, 0, 1],
        "towards zero": [-1, 0, 0, 1],
        "half up": [-1, 0, 1, 2],
        "half even": [-2, 0, 0, 2],
        "half away": [-2, -1, 1, 2],
        "twice": [-1, 0, 1, 2],
        "up twice": [-1, 0, 1, 2],
        "sixteen bits": [-1, 0, 1, 2],
    }
    assert set(expected) == set(FIXED)
    for name, rounding in FIXED.items():
        np.testing.assert_array_equal(rounding(totals, half, exponent), expected[name], name)


def test_every_mistake_can_be_made_somewhere_and_changes_the_device() -> None:
    places = [site for entry in INDEX for site in sites(FOLDER / entry["model"])]
    places += [site for path in NETWORKS for site in sites(path)]
    assert {site.op for site in places} == set(OPERATORS)
    for mistake in MISTAKES:
        assert any(mistake.can_be_made(site) for site in places), mistake.name
        assert mistake.made_by(RIGHT) != RIGHT, mistake.name
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)


def test_a_cause_is_known_by_its_name() -> None:
    assert is_cause("listed", "bias missing", "bias missing")
    assert is_cause("listed", "rounds twice", "rounds twice (output.pipeline)")
    assert not is_cause("listed", "bias missing", "bias scaled by 1/2, towards zero")
    assert is_cause("profile", "tflm", "tflm")
    assert not is_cause("profile", "tflm", "tflm+single-rounding")
    assert Device() == RIGHT
