"""docs/operators.md says what the kernel tables and the evidence say."""

from __future__ import annotations

from pathlib import Path

import op_matrix

from opfuzz.evidence import Evidence, add_model
from opfuzz.one_operator import T, build


def test_the_page_is_up_to_date() -> None:
    page = op_matrix.document(Evidence.load(op_matrix.EVIDENCE))
    assert op_matrix.TARGET.read_text(encoding="utf-8") == page, "run python tools/op_matrix.py"


def test_only_what_was_compared_is_called_exact() -> None:
    evidence = Evidence()
    model = build("ADD", [T("int8", (3,))] * 2, [T("int8", (3,))], None, 2)
    add_model(evidence, model, [3])
    lines = [line for line in op_matrix.document(evidence).splitlines() if line.startswith("| ADD |")]
    assert [line for line in lines if line.endswith("| exact |")] == ["| ADD | int8 | 2 | 1, 3–6 | exact |"]
    assert any("uint8" in line and "| – | 1–6 | – |" in line for line in lines)


def test_types_of_positions_prove_nothing_about_data() -> None:
    evidence = Evidence()
    evidence.add("TRANSPOSE", "int8 int32 -> int8", 1, 5)
    compared = {u.types for u in op_matrix.units(evidence) if u.compared}
    assert compared == {"int8"}


def test_dense_weights_prove_nothing_about_sparse_ones() -> None:
    evidence = Evidence()
    evidence.add("FULLY_CONNECTED", "float32 float32 float32 -> float32", 1, 5)
    assert not [u for u in op_matrix.units(evidence) if u.compared and "sparse" in u.types]
    evidence.add("FULLY_CONNECTED", "float32 sparse:float32 float32 -> float32", 1, 5)
    assert [u.types for u in op_matrix.units(evidence) if u.compared and "sparse" in u.types] == ["float32 (sparse)"]


def test_evidence_survives_the_disk(tmp_path: Path) -> None:
    evidence = Evidence()
    evidence.add("ADD", "int8 int8 -> int8", 1, 7)
    evidence.add("ADD", "int8 int8 -> int8", 1, 2)
    evidence.add("ADD", "int16 int16 -> int16", 2, 0)
    evidence.save(tmp_path / "evidence.json")
    again = Evidence.load(tmp_path / "evidence.json")
    assert dict(again.counts) == {("ADD", "int8 int8 -> int8", 1): 9}
    again.merge(evidence)
    assert again.counts == evidence.counts


def test_ranges() -> None:
    assert op_matrix.ranges((1, 2, 3, 5, 7, 8)) == "1–3, 5, 7–8"
    assert op_matrix.ranges(()) == "–"
