"""Models that every runtime accepts and agrees on hold no breach, but for those listed here with their reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import suites

from tflq.lint import lint

#: case -> {rule: why it is right to find it}
JUSTIFIED = {
    "singleop/mul_i16_0": {
        "operator-version": "its maker wrote version 1 for int16, for which 4 is due; no runtime looks"
    },
    "digits_unet_int16x8": {
        "operator-version": "TensorFlow's converter gives int16 MAX_POOL_2D version 2; its own version table says 3"
    },
}


def test_models_that_all_runtimes_agree_on_hold_no_breach(shared: Path) -> None:
    agreed = [c for c in suites.suite_models() if all(v == "same" for v in c.entry.get("profiles", {}).values())]
    assert len(agreed) > 100
    found = {case.id: {f.rule for f in lint(case.model).findings} for case in agreed}
    assert {name: rules for name, rules in found.items() if rules} == {
        k: set(v) for k, v in JUSTIFIED.items() if k in found
    }


@pytest.mark.parametrize("name", sorted(p.stem for p in (suites.ROOT / "golden/models").glob("*.tflite")))
def test_the_projects_own_models_hold_no_breach(name: str) -> None:
    found = {f.rule for f in lint(suites.ROOT / f"golden/models/{name}.tflite").findings}
    assert found == set(JUSTIFIED.get(name, {}))
