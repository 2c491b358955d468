"""Profiles and runtimes on one model: groups of equal bits, and the operators at which systems part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq as package
from support import graphs, suites
from support.commands import tflq, validate
from tflq.devices.suites.draft import T, build
from tflq.errors import InputError, OptionError, UnknownNameError, UnsupportedError

GOLDEN = suites.ROOT / "golden"
INT8 = str(GOLDEN / "models" / "digits_mobilenet_int8.tflite")
RECORDED = str(GOLDEN / "recorded" / "digits_mobilenet_int8.npz")
DECODER = str(GOLDEN / "models" / "tiny_decoder_int8.tflite")
#: Profiles of releases that compute MEAN otherwise, and of a device with single rounding.
SYSTEMS = ("litert-ref", "tflite-2.14-ref", "tflite-2.12-ref", "tflm-cmsis-nn-single", "tflm")


def bits(name: str, **given: object) -> dict[str, bytes]:
    ran = package.run(INT8, profile=name, samples=4, **given)
    return {key: value.tobytes() for key, value in ran.arrays.items()}


def test_groups_are_those_of_equal_outputs() -> None:
    """The truth is what `tflq run` gives under each profile."""
    found = package.court(INT8, SYSTEMS, samples=4)
    truth = {name: bits(name) for name in SYSTEMS}
    groups = [set(group.systems) for group in found.groups]
    assert sorted(name for group in groups for name in group) == sorted(SYSTEMS)
    for one in SYSTEMS:
        for other in SYSTEMS:
            together = any({one, other} <= group for group in groups)
            assert together == (truth[one] == truth[other]), (one, other)
    assert (found.reference, found.groups[0].has_reference) == ("litert-ref", True)
    assert "litert-ref" in found.groups[0].systems
    assert len(groups) >= 3


def same(one: Mapping[str, Any], other: Mapping[str, Any], tensors: tuple[int, ...]) -> bool:
    """Return whether two systems give the same bits for some tensors in every sample; they have no constants."""
    keys = [key for k in range(4) for t in tensors if (key := f"s{k}_t{t}") in one]
    return all(np.array_equal(one[key], other[key]) for key in keys)


def test_they_part_where_they_have_equal_inputs_and_other_outputs() -> None:
    found = package.court(INT8, SYSTEMS, samples=4)
    tensors = {name: package.run(INT8, profile=name, samples=4, all_tensors=True).arrays for name in SYSTEMS}
    parted = set()
    for parting in found.partings:
        for first, second in combinations(parting.parts, 2):
            parted |= {(parting.index, frozenset(pair)) for pair in product(first, second)}
    assert parted
    for index, operator in enumerate(package.load(INT8).subgraphs[0].operators):
        for one, other in combinations(SYSTEMS, 2):
            values = tensors[one], tensors[other]
            expected = same(*values, operator.inputs) and not same(*values, operator.outputs)
            assert ((index, frozenset((one, other))) in parted) == expected, (index, one, other)


def test_numbers_decide_nothing() -> None:
    """One system against many is the reference all the same, and is described as such."""
    many = ["tflite-2.12-ref", "tflite-2.11-ref"]
    found = package.court(INT8, [*many, "litert-ref"], samples=4)
    assert found.groups[0].systems == ("litert-ref",)
    assert found.groups[1].systems == tuple(many)
    assert found.groups[1].leaves is not None
    assert found.groups[1].leaves.op == "MEAN"
    assert found.alone == ("litert-ref",)
    without = package.court(INT8, many, samples=4)
    assert (without.reference, without.verdict) == (many[0], "same")


def test_fewer_than_two_systems_are_no_agreement() -> None:
    found = package.court(INT8, ["litert-ref", "tf-1.15-ref"])
    assert (found.verdict, list(found.failed)) == ("nothing compared", ["tf-1.15-ref"])
    assert "RESIZE_BILINEAR" in found.failed["tf-1.15-ref"]
    assert tflq("court", INT8, "--with", "litert-ref").exit_code == 3
    nobody = package.court(INT8, ["tf-1.15-ref", "tf-1.15-opt"])
    assert (nobody.verdict, nobody.groups, nobody.reference) == ("nothing compared", (), "")
    assert tflq("court", INT8, "--with", "tf-1.15-ref").exit_code == 3


def test_a_runtime_is_in_the_group_of_its_profile() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    found = package.court(INT8, ["litert-ref", "runtime:litert-ref", "tflite-2.12-ref"], samples=4)
    assert found.groups[0].systems == ("litert-ref", "runtime:litert-ref")
    assert found.apart_from_profile == ()


def test_a_runtime_that_is_not_its_profile_is_named() -> None:
    found = package.court(INT8, ["litert-ref", "tflite-2.12-ref"], samples=4)
    first, second = found.groups
    other = replace(found, groups=(first, replace(second, systems=(*second.systems, "runtime:litert-ref"))))
    assert other.apart_from_profile == ("runtime:litert-ref",)


def test_a_missing_runtime_is_named_if_it_was_asked_for() -> None:
    found = package.court(INT8, ["litert-ref", "tflm", "runtime:tflite-runtime-ref"])
    if "runtime:tflite-runtime-ref" not in found.failed:
        pytest.skip("tflite-runtime is installed")
    assert "tflite-runtime" in found.failed["runtime:tflite-runtime-ref"]
    assert found.verdict == "same"


def test_recorded_inputs_are_taken() -> None:
    found = package.court(INT8, ["litert-ref", "tflm-cmsis-nn-single"], RECORDED)
    assert found.inputs.source == RECORDED
    assert found.samples >= 1


def test_models_with_signatures_or_state() -> None:
    with pytest.raises(OptionError, match="2 signatures"):
        package.court(DECODER, ["litert-ref", "tflm"])
    with pytest.raises(UnsupportedError, match="tflq session"):
        package.court(DECODER, ["litert-ref", "litert-opt"], signature="decode")
    with pytest.raises(UnknownNameError):
        package.court(DECODER, ["litert-ref"], signature="nothing")


def test_nan_of_any_payload_is_one_value(tmp_path: Path) -> None:
    model = build("NEG", [T("float32", (2,))], [T("float32", (2,))])
    given = np.array([0x7FC00001, 0x3F800000], np.uint32).view(np.float32)
    found = package.court(model, ["litert-ref", "litert-opt", "tflm"], [given])
    assert found.verdict == "same"


@pytest.mark.parametrize("name", ["nobody", "runtime:nobody", "profile.yaml", "runtime:", "openvino precision=f8"])
def test_an_unknown_system_is_refused(name: str) -> None:
    done = tflq("court", INT8, "--with", f"litert-ref,{name}")
    assert done.exit_code == 2, done.output


def test_the_document_follows_its_schema_and_a_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "court.html"
    done = tflq("court", INT8, "--with", ",".join((*SYSTEMS, "tf-1.15-ref")), "--samples", 4, "--json", "--html", page)
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    validate(document, "court")
    assert "Where systems with the same inputs part" in page.read_text()
    assert "the number of systems decides nothing" in page.read_text()
    assert "those of the first sample that differs" in page.read_text()
    assert "first sample" not in tflq("court", INT8, "--with", ",".join(SYSTEMS)).output


def test_a_model_without_operators_or_inputs_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        package.court(INT8, ["litert-ref", "tflm"], [np.zeros(3, np.int8)])
    assert tflq("court", tmp_path / "nothing.tflite").exit_code == 2


def test_the_formula_decides_and_no_majority(tmp_path: Path) -> None:
    device = tmp_path / "device.yaml"
    device.write_text("rows: [{op: CONV_2D, requantizer: {mantissa: 1, shortened: cut off}}]", encoding="utf-8")
    found = package.court(INT8, [str(device), "litert-ref"], samples=2)
    first = found.partings[0]
    assert (first.op, first.ruling is not None) == ("CONV_2D", True)
    assert [first.parts[k] for k in first.ruling.at_fault] == [(str(device),)]
    # Three of four are wrong together, and are named.
    copies = [tmp_path / f"copy{k}.yaml" for k in range(2)]
    for copy in copies:
        copy.write_text(device.read_text(encoding="utf-8"), encoding="utf-8")
    found = package.court(INT8, [str(device), *map(str, copies), "litert-ref"], samples=2)
    first = found.partings[0]
    assert len(first.parts[0]) == 3
    assert first.ruling.at_fault == (0,)


def test_systems_that_round_differently_are_not_wrong() -> None:
    found = package.court(INT8, ["litert-ref", "tflm-cmsis-nn-single", "tflite-2.12-ref"], samples=4)
    rulings = [parting.ruling for parting in found.partings if parting.op in ("CONV_2D", "DEPTHWISE_CONV_2D", "MEAN")]
    assert rulings
    assert all(ruling is not None and ruling.at_fault == () for ruling in rulings)
    assert all("round differently" in ruling.reason for ruling in rulings)


def test_where_the_reference_kernel_is_far_from_the_formula_nobody_is_at_fault(tmp_path: Path) -> None:
    x, y = T("int16", (64,), 0.1, 0), T("int16", (64,), 1 / 128, 0)
    model = tmp_path / "exp.tflite"
    model.write_bytes(build("EXP", [x], [y], ("ExpOptions", {})))  # results beyond the codes, which its table wraps
    device = tmp_path / "device.yaml"
    device.write_text("rows: [{op: EXP, floats: {}}]", encoding="utf-8")
    found = package.court(model, [str(device), "litert-ref"], samples=4)
    (ruling,) = [parting.ruling for parting in found.partings]
    assert ruling is not None
    assert ruling.at_fault == ()
    assert "does not decide" in ruling.reason


def test_a_system_without_an_output_is_in_no_group() -> None:
    """XNNPACK never writes a dequantized constant, even as an output of the model."""
    pytest.importorskip("ai_edge_litert")
    weights = T("int8", (1, 8), 0.5, 0, value=np.arange(8, dtype=np.int8).reshape(1, 8))
    tensors = [T("float32", (1, 8)), weights, T("float32", (1, 8)), T("float32", (1, 8))]
    ops = [graphs.Op("DEQUANTIZE", [1], [2], version=2), graphs.Op("SUB", [0, 2], [3], ("SubOptions", {}))]
    model = graphs.build(graphs.Graph(tensors, [0], [2, 3], ops))
    found = package.court(model, ("litert-ref", "runtime:litert-xnnpack"))
    assert found.verdict == "nothing compared"
    assert "gives no value of output" in found.failed["runtime:litert-xnnpack"]
