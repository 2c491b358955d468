"""What is written is what is read, and the same values always give the same bytes."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from support import flatbuf_models as models
from support.flatbuf_structure import differences
from support.suites import suite_models
from tflq.errors import FormatError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Buffer, Model, Operator, Record, Subgraph, TensorSpec, TensorType

HAND_MADE = [models.leaky_relu, models.convolution, models.rich, models.outside]


@pytest.mark.parametrize("suite", ["real", "zip", "singleop"])
def test_every_model_of_the_suites_survives(suite: str, shared: Path) -> None:
    for case in suite_models(suite):
        model = read(case.model.read_bytes())
        content = write(model)
        again = read(content)
        assert not list(differences(model, again, case.id))
        assert write(again) == content


@pytest.mark.parametrize("suite", ["real", "zip", "singleop"])
def test_the_suites_operators_are_named_as_their_index_names_them(suite: str, shared: Path) -> None:
    for case in suite_models(suite):
        model = read(case.model.read_bytes())
        codes = [[model.operator_codes[op.opcode_index] for op in graph.operators] for graph in model.subgraphs]
        main, everywhere = ({c.custom_code or c.name for c in part} for part in (codes[0], chain(*codes)))
        # Some entries name the main graph's operators only, the others those of all graphs.
        assert set(case.entry["ops"]) in (main, everywhere), case.id


@pytest.mark.parametrize("make", HAND_MADE)
def test_hand_made_models_survive(make: Callable[[], Model]) -> None:
    content = write(make())
    assert not list(differences(make(), read(content)))
    assert write(make()) == content == write(read(content))


def test_every_option_table_survives_with_every_field() -> None:
    for model in models.option_models():
        assert not list(differences(model, read(write(model))))


def test_the_order_of_a_records_fields_does_not_matter() -> None:
    fields = dict(models.filled("VarHandleOptions").fields)
    backwards = dict(reversed(fields.items()))
    assert list(fields) != list(backwards)
    one, other = (write(_with_options(Record("VarHandleOptions", each))) for each in (fields, backwards))
    assert one == other


def test_constants_are_read_only_views_of_the_file() -> None:
    content = write(models.convolution())
    weights = read(content).buffers[1].data
    assert weights is not None
    assert not weights.flags.writeable
    assert np.shares_memory(weights, np.frombuffer(content, np.uint8))


def test_a_mapped_file_is_read_in_place(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(write(models.convolution()))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    model = read(mapped)
    assert not list(differences(models.convolution(), model))
    assert np.shares_memory(model.buffers[1].data, np.frombuffer(mapped, np.uint8))


@pytest.mark.parametrize("max_inside", [1 << 31, 0])
def test_constants_lie_at_multiples_of_sixteen(max_inside: int) -> None:
    content = write(models.convolution(), max_inside=max_inside)
    start = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
    places = [b.data.__array_interface__["data"][0] - start for b in read(content).buffers if b.data is not None]
    assert len(places) == 3
    assert all(place % 16 == 0 for place in places)


def test_constants_beyond_the_bound_go_outside_the_tables() -> None:
    model = models.convolution()
    moved = read(write(model, max_inside=0))
    assert [b.external for b in moved.buffers] == [False, True, True, True, False]
    for before, after in zip(model.buffers, moved.buffers, strict=True):
        assert (before.data is None) == (after.data is None)
        if before.data is not None and after.data is not None:
            assert before.data.tobytes() == after.data.tobytes()


def test_outside_bytes_that_buffers_share_are_stored_once() -> None:
    shared = np.zeros(1 << 16, np.uint8)
    model = Model(3, (), (), (Buffer(), Buffer(shared, external=True), Buffer(shared, external=True)))
    content = write(model)
    assert len(content) < 2 * shared.size
    assert not list(differences(model, read(content)))


def test_operator_codes_fill_both_fields_as_the_converter_does() -> None:
    from flatbuffers.table import Table

    for name, byte in [("ADD", 0), ("LEAKY_RELU", 98), ("CUMSUM", 127), ("STABLEHLO_CASE", 127)]:
        content = bytearray(write(Model(3, (models.code(name),), (), ())))
        code = _first_operator_code(content)
        stored = Table.GetVOffsetTSlot(code, 4, 0)
        assert (content[code.Pos + stored] if stored else 0) == byte
        assert read(content).operator_codes[0].name == name


def _first_operator_code(content: bytearray):  # type: ignore[no-untyped-def]
    from flatbuffers import number_types
    from flatbuffers.table import Table

    root = Table(content, int.from_bytes(content[:4], "little"))
    vector = root.Vector(root.Offset(6))
    return Table(content, vector + root.Get(number_types.UOffsetTFlags, vector))


def _with_options(options: Record) -> Model:
    return Model(3, (), (Subgraph((), (), (), (Operator(0, (), (), options),)),), ())


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        (Model(-1, (), (), ()), "Model.version"),
        (Model(3, (), (), (Buffer(), "no buffer")), "Buffer"),  # type: ignore[arg-type]
        (Model(3, (), (Subgraph((TensorSpec("t", TensorType.INT8, (1 << 40,)),), (), (), ()),), ()), "Tensor.shape"),
        (Model(3, (), (Subgraph((), (0.5,), (), ()),), ()), "SubGraph.inputs"),  # type: ignore[arg-type]
        (Model(3, (), (), (), description="\ud800"), "Model.description"),
        (Model(3, (), (), (), external_buffers=(Record("Buffer"),)), "ExternalBuffer"),
        (Model(3, (), (), (), external_buffers=(Record("ExternalBuffer", {"colour": 1}),)), "ExternalBuffer.colour"),
        (_with_options(Record("AddOptions", {"pot_scale_int16": 2})), "AddOptions.pot_scale_int16"),
        (_with_options(Record("Buffer")), "builtin_options"),
    ],
)
def test_a_value_that_does_not_fit_its_field_is_refused(broken: Model, place: str) -> None:
    with pytest.raises(FormatError, match=place):
        write(broken)
