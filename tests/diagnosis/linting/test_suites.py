"""Models on which all runtimes that take them agree hold no breach, but for those listed here with their reason."""

from __future__ import annotations

from pathlib import Path

from support import suites
from support.each import each
from tflq.diagnosis.linting.lint import lint

#: (rule, why it is right to find it) -> cases
JUSTIFIED = {
    ("operator-version", "TensorFlow's converter writes the versions of int8 for int16; its own table asks for more"): (
        "digits_unet_int16x8",
        "zip/avg_pool/002_int16x8",
        "zip/avg_pool/003_int16x8",
        "zip/conv_bias_relu6/005_int16x8",
        "zip/einsum/014_int16x8",
        "zip/embedding_lookup/008_int16x8",
        "zip/gather/014_int16x8",
        "zip/identify_dilated_conv1d/015_int16x8",
        "zip/max_pool/003_int16x8",
        "zip/tensor_list_get_item/016_int16x8",
        "zip/transpose/011_int16x8",
    ),
    ("operator-version", "its maker wrote version 1 for int16, for which 4 is due; no runtime looks"): (
        "singleop/mul_i16_0",
    ),
    ("float-between", "TensorFlow's converter keeps it in float32 between integer operators; it has an int8 kernel"): (
        "zip/floor_div/010_int8",
        "zip/floor_mod/010_int8",
        "zip/floor_mod/012_int8",
        "zip/splitv/011_int8",
    ),
    ("usable-scale", "calibrated on zeros only: scales of zero or subnormal ones, so that the codes mean nothing"): (
        "zip/control_dep/004_int16x8",
        "zip/gelu/012_int16x8",
    ),
    ("coarse-operand", "calibrated on zeros: an operand's scale is far below the output's"): (
        "real/litert/matmul_quant",
    ),
    ("equal-scale", "codes of a constant of another scale are copied to the output, where they mean another value"): (
        "zip/eye/013_int8",
        "zip/one_hot/013_int8",
        "zip/sparse_to_dense/011_int8",
        "zip/sparse_to_dense/012_int8",
    ),
}


def justified() -> set[tuple[str, str]]:
    """(case, rule)."""
    return {(case, rule) for (rule, _), cases in JUSTIFIED.items() for case in cases}


def agreed(case: suites.Case) -> bool:
    """Whether all runtimes that take the model give the same outputs."""
    taken = [how for how in case.entry.get("profiles", {}).values() if how != "refused"]
    return bool(taken) and all(how == "same" for how in taken)


def test_models_that_all_runtimes_agree_on_hold_no_breach(shared: Path) -> None:
    cases = [case for case in suites.suite_models() if agreed(case)]
    assert len(cases) > 500
    found = {(case.id, finding.rule) for case in cases for finding in lint(case.model).findings}
    assert found == {pair for pair in justified() if "/" in pair[0]}


@each("name", sorted(p.stem for p in (suites.ROOT / "golden/models").glob("*.tflite")))
def test_the_projects_own_models_hold_no_breach(name: str) -> None:
    found = {(name, f.rule) for f in lint(suites.ROOT / f"golden/models/{name}.tflite").findings}
    assert found == {pair for pair in justified() if pair[0] == name}
